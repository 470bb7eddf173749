package main

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store/remotestore"
)

func newStatus() *cobra.Command {
	var line bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show each resource and agent",
		Long: `Status shows every resource: its state and why, waiting requests and requests in flight, pauses with
their remaining time, and the use of each limit; and every live agent. Pools in the store that only
another configuration names are shown and marked.

Light is green, amber (only the highest class proceeds) or red (only an emergency does). sluice top
shows the same live.`,
		Example: "  sluice status\n  sluice status --json | jq '.resources[] | {name, light, paused_until}'\n  sluice status --line",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if line {
				return statusLine(cmd)
			}
			var classes []string
			var turnedAway map[string]int
			st, err := reading(cmd, nil, func(ctx context.Context, s *session) (st inspect.Status, err error) {
				classes = s.classNames()
				if st, err = s.gate.Status(ctx); err == nil {
					s.nameModels(&st, time.Now())
					s.nameUsers(st.Agents, time.Now())
					turnedAway = s.countRefused(ctx, s.resourceNames(), time.Now())
					s.addPast(&st)
				}
				return st, err
			})
			if err = orOfDaemon(cmd, err, &st); err != nil {
				return err
			}
			return printResult(cmd, st, func(s *screen) {
				s.turnedAway = turnedAway
				s.status(&st, classes)
			})
		},
	}
	cmd.Flags().BoolVar(&line, "line", false, "print one line for prompts and status bars, within 2 s")
	return cmd
}

// orOfDaemon returns err, the outcome of reading st. If the store is a daemon whose own store is out of reach, it reads st
// from the daemon instead, which knows its state, and returns nil.
func orOfDaemon(cmd *cobra.Command, err error, st *inspect.Status) error {
	if err == nil || asFailure(err).code != exitUnavailable {
		return err
	}
	f := config.Default()
	if name := configName(cmd, nil); name != "" {
		if f, _ = loadConfig(name); f == nil {
			return err
		}
	}
	at, failed := placeOf(cmd, f)
	if failed != nil || !strings.HasPrefix(at.url, "http") {
		return err
	}
	text, failed := remotestore.Status(cmd.Context(), at.url)
	if failed != nil || json.Unmarshal(text, st) != nil {
		return err
	}
	return nil
}

// namedWithin is how old a send may be for its model's requested name to be shown.
const namedWithin = time.Hour

// nameModels adds the names that clients used for models. The store knows only the models, so the names come from this
// machine's event log. On an error status goes on without them.
func (s *session) nameModels(st *inspect.Status, now time.Time) {
	names, err := eventlog.Requested(s.dir, now.Add(-namedWithin), s.ours()...)
	if err != nil {
		s.warnOfLog(err)
	}
	for i := range st.Resources {
		r := &st.Resources[i]
		for model, name := range names[r.Name] {
			r.Model(model).Requested = name
		}
	}
}

// nameUsers adds the users of agents without a lease, of which the store knows none.
func (s *session) nameUsers(agents []inspect.AgentStatus, now time.Time) {
	if !slices.ContainsFunc(agents, func(a inspect.AgentStatus) bool { return !a.Leased }) {
		return
	}
	userOf := s.lastUsers(now)
	for i := range agents {
		if a := &agents[i]; !a.Leased {
			a.User = cmp.Or(userOf(a.Name), a.User)
		}
	}
}

// lastUsers returns a function that gives the user for whom an agent last asked. Like the requested names of models, users
// come from this machine's event log. An agent for which it has none keeps the configured user.
func (s *session) lastUsers(now time.Time) func(agent string) string {
	userOf, err := eventlog.Users(s.dir, now.Add(-namedWithin), s.ours()...)
	if err != nil {
		s.warnOfLog(err)
	}
	return userOf
}

// readStatus returns the status of all resources and agents.
func readStatus(cmd *cobra.Command) (inspect.Status, error) {
	return reading(cmd, nil, func(ctx context.Context, s *session) (inspect.Status, error) { return s.gate.Status(ctx) })
}
