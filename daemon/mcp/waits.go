package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

type waitsIn struct {
	Resource string `json:"resource,omitempty" jsonschema:"only requests to this API"`
	Ticket   string `json:"ticket,omitempty" jsonschema:"only the request with this ticket"`
	Agent    string `json:"agent,omitempty" jsonschema:"another agent to look at; leave it out for yourself"`
}

type waitsOut struct {
	Waiting []waits  `json:"waiting" jsonschema:"requests in the queue, in their order"`
	More    int      `json:"more" jsonschema:"waiting requests that are not listed"`
	Chain   []string `json:"chain" jsonschema:"from you to the agent that is held; each waits for the next; empty: no agent holds you"`
	Because string   `json:"because" jsonschema:"why the last agent of the chain is held"`
	Trouble []state  `json:"trouble" jsonschema:"APIs that are failing, degraded or paused"`
}

type waits struct {
	Resource    string     `json:"resource"`
	Ticket      string     `json:"ticket"`
	Agent       string     `json:"agent"`
	Class       string     `json:"class"`
	Model       string     `json:"model"`
	Place       int        `json:"place" jsonschema:"in the queue; 1 is next"`
	Limit       string     `json:"limit" jsonschema:"the limit in the way; empty: none"`
	Reason      string     `json:"reason"`
	HeldBy      []string   `json:"held_by" jsonschema:"who uses most of that limit"`
	HeldUntil   *time.Time `json:"held_until" jsonschema:"when the last unanswered ticket that holds the limit ends; null: time alone makes room"`
	ExpectedInS *int64     `json:"expected_in_s" jsonschema:"seconds until its turn, estimated; null: it depends on when others are done"`
	ExpectedAt  *time.Time `json:"expected_at"`
}

type state struct {
	Resource string `json:"resource"`
	State    string `json:"state"`
	Reason   string `json:"reason"`
	EndsInS  *int64 `json:"ends_in_s" jsonschema:"null: not known"`
}

// waits answers why_am_i_waiting.
func (s *server) waits(ctx context.Context, q waitsIn) (waitsOut, string, error) {
	out := waitsOut{Waiting: []waits{}, Chain: []string{}, Trouble: []state{}}
	agent, _, list, err := s.about(ctx, q.Agent, q.Resource)
	if err != nil {
		return out, "", err
	}
	now := time.Now()
	for i := range list {
		r := &list[i]
		if inspect.IsTrouble(r.State) { // the queue does not show it
			out.Trouble = append(out.Trouble, state{r.Name, r.State, words(r.Reason), in(r.Until, now)})
		}
		if r.AllWaiting() == 0 {
			continue
		}
		queue, err := s.Gate.Why(ctx, r.Name)
		if err != nil {
			return out, "", err
		}
		for j := range queue {
			w := &queue[j]
			switch {
			case q.Ticket != "" && w.Ticket != q.Ticket, q.Ticket == "" && agent != "" && w.Agent != agent:
			case len(out.Waiting) == maxWaiting:
				out.More++
			default:
				out.Waiting = append(out.Waiting, waitsOf(r.Name, w, now))
			}
		}
	}
	if agent != "" && q.Ticket == "" {
		work, err := s.Gate.StartNewWork(ctx, agent)
		if err != nil {
			return out, "", err
		}
		if len(work.Chain) > 1 { // otherwise the agent is limited itself, which the queue shows
			out.Chain, out.Because = work.Chain, words(work.Reason)
		}
	}
	return out, out.sentence(agent, q.Ticket, now), nil
}

func waitsOf(resource string, w *inspect.Waiting, now time.Time) waits {
	return waits{
		Resource: resource, Ticket: w.Ticket, Agent: w.Agent, Class: w.Class, Model: w.Model, Place: w.Position, Limit: w.Limit,
		Reason: show.Waits(w.Reason, w.Limit, w.Scope), HeldBy: append([]string{}, w.HeldBy...), HeldUntil: w.HeldUntil, ExpectedInS: in(w.ExpectedAt, now), ExpectedAt: w.ExpectedAt,
	}
}

func (o *waitsOut) sentence(agent, ticket string, now time.Time) string {
	var lines []string
	for i := range o.Waiting[:min(len(o.Waiting), said)] {
		w := &o.Waiting[i]
		text := fmt.Sprintf("%s waits for %s at place %d: %s", word(w.Agent), word(w.Resource), w.Place, words(w.Reason))
		if len(w.HeldBy) > 0 {
			text += ", used by " + plain.Names(w.HeldBy, ", ", 3, 80)
		}
		if w.HeldUntil != nil {
			text += "; their unanswered tickets end " + show.In(w.HeldUntil, now) + " at the latest"
		}
		if w.ExpectedAt != nil {
			text += "; expected to go " + show.In(w.ExpectedAt, now)
		}
		lines = append(lines, text+".")
	}
	if more := len(o.Waiting) + o.More - len(lines); more > 0 {
		lines = append(lines, show.Some(int64(more), "more request waits.", "more requests wait."))
	}
	switch {
	case len(o.Waiting) > 0:
	case ticket != "":
		lines = append(lines, word(ticket)+" does not wait: it was granted, given up or refused.")
	case agent != "":
		lines = append(lines, "No request of "+word(agent)+" waits.")
	default:
		lines = append(lines, "No request waits.")
	}
	if len(o.Chain) > 1 {
		lines = append(lines, "Held through "+plain.Names(o.Chain, " > ", 8, 80)+": "+o.Because+".")
	}
	for i := range o.Trouble {
		lines = append(lines, o.Trouble[i].sentence())
	}
	return strings.Join(lines, "\n")
}

func (x *state) sentence() string {
	text := fmt.Sprintf("%s is %s: %s", word(x.Resource), x.State, strings.TrimSuffix(x.Reason, "."))
	if x.EndsInS != nil {
		text += fmt.Sprintf(" (ends in %s)", show.Span(time.Duration(*x.EndsInS)*time.Second))
	}
	return text + "."
}
