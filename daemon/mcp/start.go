package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/store"
)

type startIn struct {
	Resource string `json:"resource,omitempty" jsonschema:"the API that the work needs, such as anthropic; leave it out for the one that you use most"`
	Model    string `json:"model,omitempty" jsonschema:"the model that the work needs"`
	Agent    string `json:"agent,omitempty" jsonschema:"another agent to ask for; leave it out for yourself"`
}

type startOut struct {
	Start    bool     `json:"start" jsonschema:"true: start; false: finish what you have begun and ask again later"`
	Reason   string   `json:"reason" jsonschema:"why not; empty: nothing is in the way"`
	AskInS   *int64   `json:"ask_in_s" jsonschema:"seconds after which it is worth asking again; null: not known, or you may start"`
	Resource string   `json:"resource" jsonschema:"the API that was looked at; empty: none"`
	Chain    []string `json:"chain" jsonschema:"from you to the agent that is held; each waits for the next"`
	Notes    []string `json:"notes" jsonschema:"what to know before you start"`
}

// long is the shortest window that takes too long to wait for in the queue.
const long = 10 * time.Minute

// start answers may_i_start_new_work. It checks the fleet, the resource and the budgets, in this order.
func (s *server) start(ctx context.Context, q startIn) (startOut, string, error) {
	out := startOut{Start: true, Chain: []string{}, Notes: []string{}}
	agent, err := s.agent(q.Agent)
	if err != nil {
		return out, "", err
	}
	st, err := s.Gate.Status(ctx)
	if err != nil {
		return out, "", err
	}
	now, a := time.Now(), agentOf(&st, agent)
	if q.Resource == "" && a != nil {
		q.Resource = a.Resource
	}
	if agent != "" {
		work, err := s.Gate.StartNewWork(ctx, agent)
		if err != nil {
			return out, "", err
		}
		if !work.Start {
			out.no(words(work.Reason), nil, now)
			out.Chain = append(out.Chain, work.Chain...)
		}
	}
	if q.Resource != "" {
		r, err := pick(st.Resources, q.Resource)
		if err != nil {
			return out, "", err
		}
		out.Resource = r.Name
		s.room(&out, r, a, agent, q.Model, now)
	} else {
		for i := range st.Resources {
			if r := &st.Resources[i]; inspect.IsTrouble(r.State) {
				x := state{r.Name, r.State, words(r.Reason), in(r.Until, now)}
				out.note(x.sentence())
			}
		}
	}
	for _, b := range budgetsOf(&st, agent, a) {
		switch {
		case b.RemainingUSD > 0:
		case b.Over == sluice.OverDeny:
			out.no(fmt.Sprintf("the budget %s is used up", word(b.Name)), b.ResetsAt, now)
		default:
			out.note(fmt.Sprintf("The budget %s is used up (%s).", word(b.Name), b.Over))
		}
	}
	return out, out.sentence(), nil
}

// room checks whether a resource has room for new work.
func (s *server) room(out *startOut, r *inspect.ResourceStatus, a *inspect.AgentStatus, agent, model string, now time.Time) {
	user := ""
	if a != nil {
		user = a.User
	}
	for _, g := range r.Gates {
		if g.Phase == "paused" && (g.Scope == "" || model != "" && g.Scope == "model="+model) {
			out.no(fmt.Sprintf("%s is paused: %s", word(strings.TrimSpace(r.Name+" "+model)), words(g.Cause)), g.Until, now)
		}
	}
	switch {
	case r.State == inspect.StateFailing && (r.FailingModel == "" || r.FailingModel == model), r.BillingStop, r.State == inspect.StateDegraded && r.Outage != nil && r.Outage.Mode == store.FailClosed.String():
		out.no(fmt.Sprintf("%s is %s: %s", word(r.Name), r.State, words(r.Reason)), r.Until, now)
	case out.Start && inspect.IsTrouble(r.State):
		out.note(fmt.Sprintf("%s is %s: %s.", word(r.Name), r.State, strings.TrimSuffix(words(r.Reason), ".")))
	}
	for i := range r.Limits {
		l := &r.Limits[i]
		switch {
		case l.Limit <= 0 || !counts(l, agent, user, model):
		case l.Binds && l.Remaining > 0 && (l.Light == "red" || l.Light == "amber" && s.Caller.Lower):
			out.no(fmt.Sprintf("%s: the light of the limit %s is %s, %s of %s %s are left", word(r.Name), word(l.Name), l.Light,
				show.Count(max(l.Remaining, 0)), show.Count(l.Limit), word(l.Unit)), l.ResetAt, now)
		case l.Remaining <= 0 && (l.Binds || l.WindowMS >= long.Milliseconds()):
			out.no(fmt.Sprintf("%s: the limit %s is used up", word(r.Name), word(l.Name)), l.ResetAt, now)
		}
	}
	if n := r.AllWaiting(); n > 0 {
		out.note(fmt.Sprintf("%s for %s.", show.Some(int64(n), "request waits", "requests wait"), word(r.Name)))
	}
}

// no records a reason why new work has to wait. The first reason becomes the answer, further ones become notes. AskInS
// is the time until all reasons are over.
func (o *startOut) no(reason string, until *time.Time, now time.Time) {
	later := in(until, now)
	if o.Start {
		o.Start, o.Reason, o.AskInS = false, reason, later
		return
	}
	o.note("Also: " + reason + ".")
	if later != nil && (o.AskInS == nil || *later > *o.AskInS) {
		o.AskInS = later
	}
}

// note adds a note, up to ten.
func (o *startOut) note(text string) {
	if len(o.Notes) < 10 {
		o.Notes = append(o.Notes, text)
	}
}

func (o *startOut) sentence() string {
	text := "Yes, you may start new work."
	if !o.Start {
		text = "No, start no new work now: " + strings.TrimSuffix(o.Reason, ".")
		if len(o.Chain) > 1 {
			text += " (" + plain.Names(o.Chain, " > ", 8, 80) + ")"
		}
		text += "."
		if o.AskInS != nil {
			text += fmt.Sprintf(" Ask again in %s.", show.Span(time.Duration(*o.AskInS)*time.Second))
		}
	}
	return strings.Join(append([]string{text}, o.Notes...), "\n")
}
