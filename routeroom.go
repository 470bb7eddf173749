package sluice

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// room says whether a request would be granted now, and otherwise when.
type room struct {
	open    bool
	wait    time.Duration
	unknown bool // the wait is unknown
	why     string
}

// roomFor asks the pool and the budgets what Try would return for a request, without taking anything. The state may be
// old by within where reading it takes long.
func (r *resource) roomFor(ctx context.Context, req Request, within time.Duration) (room, error) {
	req.Resource, req.Cost = r.name, r.expected(ctx, &req)
	err := r.foresee(ctx, &req, within)
	var e *Error
	switch o := r.outage(); {
	case o != nil && !r.settings.passing && !r.observe: // it may have been noticed only now
		return room{open: o.Mode == store.FailOpen.String(), unknown: true, why: "the store cannot be reached"}, nil
	case err == nil:
		return room{open: true}, nil
	case !errors.As(err, &e) || !errors.Is(e, ErrNotNow) && !errors.Is(e, ErrBudget) && !errors.Is(e, ErrCapacity):
		return room{}, err
	}
	m := room{why: e.why, unknown: e.RetryAt.IsZero()}
	if !m.unknown {
		m.wait = max(time.Until(e.RetryAt), time.Millisecond)
	}
	return m, nil
}

// foresee returns the error that Try would return for a request.
func (r *resource) foresee(ctx context.Context, req *Request, within time.Duration) error {
	if r.observe {
		return nil
	}
	if r.budgets != nil {
		if paid, err := r.foreseePaid(ctx, req, within); paid {
			return err
		}
	}
	return r.foreseeAny(ctx, req, within)
}

// foreseeAny is foresee without budgets, for the best of several keys.
func (r *resource) foreseeAny(ctx context.Context, asked *Request, within time.Duration) error {
	if r.windows.unread() {
		r.readWindows(ctx)
	}
	req, keys := *asked, asked.Keys[:min(len(asked.Keys), store.MaxForeseen)]
	req.Priced = "" // fill would remember that it was requested
	ops := make([]store.Op, max(len(keys), 1))
	for i := range ops {
		if len(keys) > 0 {
			req.Key = keys[i]
		}
		ops[i].Kind = store.OpAcquire
		if err := r.fill(&ops[i], &req); err != nil {
			return err
		}
	}
	r.late.wait(ctx) // as in ask
	judge := store.Can(r.pool).Foreseer
	if judge == nil {
		return &Error{Err: ErrNotNow, Resource: r.name, Agent: req.Agent, why: "the store cannot foresee its decisions"}
	}
	if err := judge.Foresee(ctx, ops, within); err != nil {
		return r.failed(ctx, &req, err)
	}
	next, first, unknown := 0, time.Time{}, false
	read := func() error {
		res := &ops[next].Result
		if next++; res.State == store.Granted {
			return nil
		}
		err := r.refused(ctx, &req, 0, &ops[next-1])
		if e, ok := errors.AsType[*Error](err); ok && errors.Is(e, ErrNotNow) {
			unknown = unknown || e.RetryAt.IsZero()
			if first.IsZero() || e.RetryAt.Before(first) {
				first = e.RetryAt
			}
		}
		return err
	}
	if len(keys) == 0 {
		return read()
	}
	req.Keys = keys
	_, err := r.eachKey(&req, read)
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(e, ErrNotNow) { // a waiting request takes the first key with room
		if e.RetryAt = first; unknown {
			e.RetryAt = time.Time{}
		}
	}
	return err
}

// averages caches what requests usually cost, by model and unit.
type averages struct {
	mu    sync.Mutex
	since time.Time
	usual map[string]map[string]int64
}

const (
	roomsFor = 200 * time.Millisecond // how old the state may be for the choices of a proxy, which every request asks for
	usualFor = 10 * time.Second
	usualOf  = 10 * time.Minute // the period that the average covers
)

// expected returns the cost of a request, with the recent average of its model for units that it does not state.
func (r *resource) expected(ctx context.Context, req *Request) []Amount {
	m := &r.averages
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since.IsZero() || time.Since(m.since) > usualFor {
		m.since, m.usual = time.Now(), r.usualCosts(ctx, r.pool.Now())
	}
	cost := slices.Clip(req.Cost)
	for _, unit := range r.counts {
		stated := slices.ContainsFunc(cost, func(a Amount) bool { return a.Unit == unit })
		if n := m.usual[req.Model][unit]; n > 0 && unit != Requests && unit != Work && !stated {
			cost = append(cost, Amount{unit, n})
		}
	}
	return cost
}

// usualCosts computes the average cost of requests, by model and unit. It is empty if the store keeps no history.
func (r *resource) usualCosts(ctx context.Context, now store.Time) map[string]map[string]int64 {
	out := map[string]map[string]int64{}
	recorder := store.Can(r.pool).Recorder
	if recorder == nil {
		return out
	}
	h, err := recorder.History(ctx, now.Add(-usualOf))
	if err != nil {
		return out
	}
	sent := map[string]int64{}
	for i := range h.Periods {
		p := &h.Periods[i]
		if out[p.Model] == nil {
			out[p.Model] = map[string]int64{}
		}
		sent[p.Model] += p.Sent
		for k, unit := range h.Units {
			if k < len(p.Amounts) {
				out[p.Model][unit] += p.Amounts[k]
			}
		}
	}
	for model, units := range out {
		for unit, sum := range units {
			units[unit] = (sum + sent[model] - 1) / max(sent[model], 1)
		}
	}
	return out
}
