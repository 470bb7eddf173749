package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/show"
)

// waitingJSON is a waiting request, with a cheaper model that could be used instead.
type waitingJSON struct {
	Resource string `json:"resource"`
	inspect.Waiting
	CheaperModel *string `json:"cheaper_model"` // has room; nil if none is known
}

// whyJSON lists the waiting requests, the recent refusals, and the agents that should start no new work because of
// others.
type whyJSON struct {
	Waiting []waitingJSON `json:"waiting"`
	Refused []refusedJSON `json:"refused"`
	// States are the resources that are failing, degraded, paused or queueing, and why.
	States []stateJSON `json:"states"`
	// Windows lists the windows of subscriptions.
	Windows []windowJSON `json:"windows"`
	inspect.Backpressure
}

// stateJSON is the state of a resource.
type stateJSON struct {
	Resource string     `json:"resource"`
	State    string     `json:"state"`
	Reason   string     `json:"reason"`
	Until    *time.Time `json:"until"`
}

// whose selects waiting requests: all, those of one agent, or one.
type whose struct{ agent, ticket string }

func newWhy() *cobra.Command {
	var of whose
	cmd := &cobra.Command{
		Use:   "why [RESOURCE] [--agent A] [--ticket T]",
		Short: "Show who waits, for which limit, and until when",
		Long: `Why lists waiting requests in order: the limit in the way, who holds it, and when each is expected to
go. A resource, an agent or a ticket selects some. The list is empty when nothing waits.

Failing, degraded and paused resources come first, with the reason. Held by names the agents that used
most of the limit. Times are estimates; there is none where it depends on other requests. Then follow
agents that should start no new work, with the chain to the limited agent, and requests refused on this
machine, or by the daemon whose store is used, within the last hour.`,
		Example:           "  sluice why\n  sluice why github --agent indexer\n  sluice why --json | jq '.waiting[0].reason'",
		Args:              atMost(1),
		ValidArgsFunction: completeShown,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := readWaiting(cmd, args, of, time.Now())
			if err != nil {
				if of != (whose{}) {
					return err
				}
				if w, err = readStates(cmd, args, err); err != nil {
					return err
				}
				return printResult(cmd, w, func(s *screen) {
					s.states(w)
					s.line("Only the store knows which requests wait.")
				})
			}
			return printResult(cmd, w, func(s *screen) {
				s.states(w)
				s.windows(w.Windows)
				s.waiting(w.Waiting, of)
				s.held(w.Held)
				s.cycles(w.Cycles)
				s.refused(w.Refused)
			})
		},
	}
	cmd.Flags().StringVar(&of.agent, "agent", "", "only what this agent, `NAME`, waits for")
	cmd.Flags().StringVar(&of.ticket, "ticket", "", "only this `TICKET`")
	completeFlag(cmd, "agent", completeAgents)
	completeFlag(cmd, "ticket", completeWaiting)
	return cmd
}

func emptyWhy() *whyJSON {
	return &whyJSON{
		Waiting: []waitingJSON{}, Refused: []refusedJSON{}, States: []stateJSON{}, Windows: []windowJSON{},
		Backpressure: inspect.Backpressure{Held: []inspect.Held{}, Cycles: [][]string{}},
	}
}

// addState adds the state of a resource, unless requests pass or there are none.
func (w *whyJSON) addState(r *inspect.ResourceStatus) {
	if r.State != inspect.StateIdle && r.State != inspect.StateFlowing {
		w.States = append(w.States, stateJSON{r.Name, r.State, r.Reason, r.Until})
	}
}

// readStates returns only the states of resources, or of the named one, from a daemon whose own store is out of reach: it
// knows these. It returns err, the outcome of reading the rest, if there is no such daemon or resource.
func readStates(cmd *cobra.Command, names []string, err error) (*whyJSON, error) {
	var st inspect.Status
	if orOfDaemon(cmd, err, &st) != nil {
		return nil, err
	}
	out, found := emptyWhy(), len(names) == 0
	for i := range st.Resources {
		if r := &st.Resources[i]; len(names) == 0 || r.Name == names[0] {
			out.addState(r)
			found = true
		}
	}
	if !found {
		return nil, err
	}
	return out, nil
}

func readWaiting(cmd *cobra.Command, args []string, of whose, now time.Time) (*whyJSON, error) {
	for _, flag := range []string{"agent", "ticket"} {
		if f := cmd.Flags().Lookup(flag); f.Changed && f.Value.String() == "" {
			return nil, &failure{code: exitUsage, message: "--" + flag + " is empty", hint: "give a name, or leave the flag out"}
		}
	}
	return reading(cmd, withRouted(cmd, args), func(ctx context.Context, s *session) (*whyJSON, error) {
		out, cheaper := emptyWhy(), api.CheaperModels{Gate: s.gate}
		names := args
		if len(names) == 0 {
			names = s.resourceNames()
		}
		if of.ticket != "" {
			if _, err := s.gate.Ticket(of.ticket); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			r, err := s.gate.Resource(ctx, name)
			if err != nil {
				return nil, err
			}
			if of == (whose{}) {
				out.addState(&r)
			}
			if of.ticket == "" {
				out.Windows = append(out.Windows, windowsOf(&r)...)
			}
			waiting, err := s.gate.Why(ctx, name)
			if err != nil {
				return nil, err
			}
			for _, w := range waiting {
				if of.means(&w) {
					out.Waiting = append(out.Waiting, waitingJSON{Resource: name, Waiting: w, CheaperModel: cheaper.Find(ctx, name, &w)})
				}
			}
		}
		if of.ticket == "" {
			var err error
			if out.Backpressure, err = s.gate.Backpressure(ctx, of.agent); err != nil {
				return nil, err
			}
		}
		var err error
		if out.Refused, err = s.refused(ctx, names, of, now); err != nil {
			s.warnOfLog(err)
		}
		return out, nil
	})
}

func (of whose) means(w *inspect.Waiting) bool {
	return (of.agent == "" || w.Agent == of.agent) && (of.ticket == "" || w.Ticket == of.ticket)
}

// states shows which resources are in trouble, and why. Those with waiting requests are left to the queue.
func (s *screen) states(w *whyJSON) {
	shown := false
	for i := range w.States {
		x := &w.States[i]
		waits := slices.ContainsFunc(w.Waiting, func(one waitingJSON) bool { return one.Resource == x.Resource })
		if x.State != inspect.StateQueueing || !waits {
			r := inspect.ResourceStatus{State: x.State, Reason: x.Reason, Until: x.Until}
			s.line("%s is %s: %s", s.Paint(show.Bold, s.Text(x.Resource, nameWidth)), s.Paint(show.Resource(x.State), x.State), s.because(&r))
			shown = true
		}
	}
	if shown {
		s.line("")
	}
}

// waiting shows the queue.
func (s *screen) waiting(list []waitingJSON, of whose) {
	if len(list) == 0 {
		switch {
		case of.ticket != "":
			s.line("%s does not wait: it was granted, given up or refused.", s.Text(of.ticket, nameWidth))
		case of.agent != "":
			s.line("%s does not wait for anything.", s.Text(of.agent, nameWidth))
		default:
			s.line("No request waits.")
		}
		return
	}
	s.table(s.queue(list))
	s.unanswered(list)
	var cheaper []string
	for _, w := range list {
		if w.CheaperModel != nil && !slices.Contains(cheaper, *w.CheaperModel) {
			cheaper = append(cheaper, *w.CheaperModel)
		}
	}
	if len(cheaper) > 0 {
		s.line("\ncheaper models with room: %s", s.Names(cheaper, ", ", 6, nameWidth))
	}
}

// held shows which agents should start no new work because of others.
func (s *screen) held(list []inspect.Held) {
	if len(list) == 0 {
		return
	}
	s.line("\nshould start no new work")
	t := &show.Table{Indent: "  ", Columns: []show.Column{{Head: "agent", Least: 8}, {Head: "waits for", Least: 12}, {Head: "because of", Least: 12, Drop: 1}}}
	for i := range list {
		h := &list[i]
		t.Add(show.Cell{Text: s.Text(h.Agent, nameWidth)}, show.Cell{Text: s.Names(h.Chain[1:], " > ", chainNames, nameWidth), Colour: show.Amber},
			show.Cell{Text: s.Text(h.Reason, textWidth)})
	}
	s.table(t)
}

// heldBy says who holds what a request waits for, and for how long at most.
func (s *screen) heldBy(w *waitingJSON) string {
	by := s.Names(w.HeldBy, ", ", 3, nameWidth)
	if left := show.Left(w.HeldUntil, s.now); left != "" {
		by += " for at most " + left
	}
	return by
}

// unanswered says what to do about unanswered tickets that hold a limit.
func (s *screen) unanswered(list []waitingJSON) {
	var said []string
	for i := range list {
		w := &list[i]
		of := w.Resource + " " + w.Limit
		if w.HeldUntil == nil || w.Reason != "limit" || slices.Contains(said, of) {
			continue
		}
		said = append(said, of)
		text := fmt.Sprintf("Unanswered tickets hold the limit %s of %s: %s.", w.Limit, w.Resource, policy.CloseTickets(w.HeldBy))
		for _, line := range s.wrap(s.Text(text, 500), 0) {
			s.line("%s", line)
		}
	}
}

// queue returns the table of waiting requests.
func (s *screen) queue(list []waitingJSON) *show.Table {
	t := &show.Table{Columns: []show.Column{
		{Head: "#", Right: true}, {Head: "resource", Least: 8}, {Head: "agent", Least: 8}, {Head: "class"},
		{Head: "expected in", Right: true}, {Head: "why", Least: 16}, {Head: "held by", Least: 8, Drop: 1}, {Head: "ticket", Drop: 2},
	}}
	for i := range list {
		w := &list[i]
		expected := show.Cell{Text: show.Left(w.ExpectedAt, s.now)}
		if expected.Text == "" {
			expected = show.Cell{Text: "?", Colour: show.Dim}
		}
		t.Add(
			show.Cell{Text: fmt.Sprint(w.Position)}, show.Cell{Text: s.Text(w.Resource, nameWidth)}, show.Cell{Text: s.Text(w.Agent, nameWidth)},
			show.Cell{Text: s.Text(w.Class, 12)}, expected, show.Cell{Text: s.Text(show.Waits(w.Reason, w.Limit, w.Scope), 80)},
			show.Cell{Text: s.heldBy(w)}, show.Cell{Text: s.Text(w.Ticket, nameWidth), Colour: show.Dim},
		)
	}
	return t
}
