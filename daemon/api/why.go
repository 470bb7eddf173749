package api

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Bounds on how many waiting requests are listed.
const (
	defaultListed = 1000
	maxListed     = 10_000
	maxCheaper    = 32 // requests for which to look for a cheaper model
)

// Waiting is a request in a queue.
type Waiting struct {
	Resource string `json:"resource"`
	inspect.Waiting
	// CheaperModel does the same tasks for less and has room; nil if there is none.
	CheaperModel *string `json:"cheaper_model"`
}

// State is the state of a resource in trouble: failing, degraded, paused or queueing.
type State struct {
	Resource string     `json:"resource"`
	State    string     `json:"state"`
	Reason   string     `json:"reason"`
	Until    *time.Time `json:"until"`
}

// why lists waiting requests. If they are too many, it lists the next ones, equally many of each resource.
func (a *API) why(c *call) error {
	q := c.r.URL.Query()
	most, err := number(q.Get("limit"), "limit", defaultListed, 1, maxListed)
	if err != nil {
		return err
	}
	refused, err := truth(q.Get("refused"), "refused")
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	names, total, states, err := a.queues(ctx, q.Get("resource"))
	if err != nil {
		return err
	}
	agent, ticket := q.Get("agent"), q.Get("ticket")
	lists, found := make([][]inspect.Waiting, len(names)), 0
	for i, name := range names {
		some, err := a.Why(ctx, name)
		if err != nil {
			return err
		}
		for _, w := range some {
			if (agent == "" || agent == w.Agent) && (ticket == "" || ticket == w.Ticket) {
				lists[i] = append(lists[i], w)
			}
		}
		found += len(lists[i])
	}
	if agent != "" || ticket != "" {
		total = found // the total is unknown for the far end of a long queue
	}
	out := struct {
		Waiting []Waiting `json:"waiting"`
		More    int       `json:"more"`
		States  []State   `json:"states"`
		// Refused lists the requests that the gate has lately refused, the latest first; nil unless asked for, because it
		// takes a search of the event log.
		Refused any `json:"refused"`
		inspect.Backpressure
	}{Waiting: []Waiting{}, States: states, Backpressure: inspect.Backpressure{Held: []inspect.Held{}, Cycles: [][]string{}}}
	if refused {
		out.Refused = []any{}
	}
	if ticket == "" { // otherwise the question is about one request
		if out.Backpressure, err = a.Gate.Backpressure(ctx, agent); err != nil {
			return err
		}
		if refused && a.Rejected != nil {
			out.Refused = a.Rejected(q.Get("resource"), agent)
		}
	}
	a.nameLog(c)
	cheaper := CheaperModels{Gate: a.Gate}
	for i, n := range nextOnes(lists, most) {
		for _, w := range lists[i][:n] {
			out.Waiting = append(out.Waiting, Waiting{names[i], w, cheaper.Find(ctx, names[i], &w)})
		}
	}
	out.More = max(total, found) - len(out.Waiting)
	return c.reply(out)
}

// queues returns the names of the resources with a queue, the total number of waiting requests, and the states: of one
// resource, or of all.
func (a *API) queues(ctx context.Context, resource string) (names []string, total int, states []State, err error) {
	states = []State{}
	var all []inspect.ResourceStatus
	if resource != "" {
		var s inspect.ResourceStatus
		err := a.at(ctx, resource, func(g *sluice.Gate) (err error) {
			s, err = g.Resource(ctx, resource)
			return err
		})
		if err != nil {
			return nil, 0, states, err
		}
		all = []inspect.ResourceStatus{s}
	} else {
		s, err := a.Status(ctx)
		if err != nil {
			return nil, 0, states, err
		}
		all = s.Resources
	}
	for i := range all {
		n := all[i].AllWaiting()
		if n > 0 || resource != "" {
			names, total = append(names, all[i].Name), total+n
		}
		if r := &all[i]; r.State != inspect.StateIdle && r.State != inspect.StateFlowing {
			states = append(states, State{r.Name, r.State, r.Reason, r.Until})
		}
	}
	return names, total, states, nil
}

// nextOnes returns how many entries to take of each list, most in total. It takes them round robin, so that no list
// gets more than another that still has some.
func nextOnes(lists [][]inspect.Waiting, most int) []int {
	take := make([]int, len(lists))
	for more := true; more && most > 0; {
		more = false
		for i := range lists {
			if take[i] < len(lists[i]) && most > 0 {
				take[i]++
				most--
				more = true
			}
		}
	}
	return take
}

// CheaperModels finds cheaper models for waiting requests. It caches the results, because a queue is mostly of few agents
// and models.
type CheaperModels struct {
	Gate  *sluice.Gate
	known map[sought]*string
}

type sought struct{ resource, model, agent, class string }

// Find returns a cheaper model that does the same tasks and has room for the request; nil if there is none or it is
// unknown.
func (m *CheaperModels) Find(ctx context.Context, resource string, w *inspect.Waiting) *string {
	key := sought{resource, w.Model, w.Agent, w.Class}
	name, known := m.known[key]
	if known || w.Model == "" || len(m.known) >= maxCheaper {
		return name
	}
	if found, err := m.Gate.CheaperModel(ctx, sluice.Request{Resource: resource, Model: w.Model, Agent: w.Agent, Class: w.Class}); err == nil && found != "" {
		name = &found
	}
	if m.known == nil {
		m.known = map[sought]*string{}
	}
	m.known[key] = name
	return name
}
