package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/inspect"
)

// agentsJSON is the output of agents with --json, in the same form as in the status.
type agentsJSON struct {
	Store  string                `json:"store"`
	Agents []inspect.AgentStatus `json:"agents"`
	Cycles [][]string            `json:"cycles"`
}

func newAgents() *cobra.Command {
	return &cobra.Command{
		Use:   "agents",
		Short: "List live agents with lease, allocation, use and dependencies",
		Long: `Agents lists every live agent. An agent is live while it holds a lease, and for one lease length
after a request. It shows each agent's share of the resource that it uses most. Agents without a lease show no lease
time.

An agent is active, waiting (for its turn), limited (held by a limit or pause for longer than a
moment) or held (should start no new work, because an agent that it waits for is limited; the
chain leads there).`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := reading(cmd, nil, func(ctx context.Context, s *session) (st inspect.Status, err error) {
				if st, err = s.gate.Status(ctx); err == nil {
					s.nameUsers(st.Agents, time.Now())
				}
				return st, err
			})
			if err != nil {
				return err
			}
			return printResult(cmd, agentsJSON{st.Store, st.Agents, st.Cycles}, func(s *screen) { s.allAgents(&st) })
		},
	}
}

func (s *screen) allAgents(st *inspect.Status) {
	if len(st.Agents) == 0 {
		s.line("No agent is live: no agent holds a lease, and none has asked for a while.")
		s.line("One appears here with sluice run, or when it asks: sluice acquire RESOURCE --agent NAME")
	} else {
		t := s.agents(st.Agents)
		t.Indent = ""
		s.table(t)
	}
	s.cycles(st.Cycles)
}
