package proof_test

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// judgeOf returns the provider's count of limit l for a plan.
func (w *world) judgeOf(l int, p *plan) *judge {
	s := scope{limit: l}
	switch w.spec.Limits[l].Per {
	case store.PerAgent:
		s.of = p.agent
	case store.PerModel:
		s.of = p.model
	}
	j := w.judges[s]
	if j == nil {
		j = newJudge(&w.spec.Limits[l], w.phase[l])
		w.judges[s] = j
	}
	return j
}

// count puts a cost before the provider.
func (w *world) count(i, l int, cost int64) {
	if w.unjudged[l] || cost == 0 {
		return
	}
	j := w.judgeOf(l, &w.plans[i])
	if j.arrive(w.now, w.calls[i].ends, cost) {
		return
	}
	w.tally.refused++
	w.logf("        #%d refused by %s", i, j.limit.Name)
	if w.judging && !w.tally.lost {
		w.fail("#%d: limit %q (%v) refuses %d: state %+v", i, j.limit.Name, j.limit.Kind, cost, j.rule.State(w.now))
	}
}

// arrive is the moment a request reaches the provider.
func (w *world) arrive(i int) {
	c, p := &w.calls[i], &w.plans[i]
	work := max(p.work, p.header)
	if w.binding(p) { // such a charge ends with the ticket, so the work has to
		work = min(work, c.held.Add(w.ttl)-w.now)
	}
	c.ends = w.now + max(work, 0)
	for l := range w.spec.Limits {
		if !w.spec.Limits[l].Late || p.fate == spends {
			w.count(i, l, min(p.cost[l], p.used[l]))
		}
	}
	switch p.fate {
	case mute, spends:
		c.over = true
	case closesUnanswered:
	default:
		w.after(min(p.header, c.ends-w.now), evMake, i)
	}
	w.after(c.ends-w.now, evFinish, i)
}

// binding reports that a plan takes from a limit that counts until the end of the
// provider's work.
func (w *world) binding(p *plan) bool {
	for l := range w.spec.Limits {
		if p.cost[l] > 0 && (w.spec.Limits[l].Late || w.spec.Limits[l].Kind == store.Concurrency) {
			return true
		}
	}
	return false
}

// finish is the end of the provider's work.
func (w *world) finish(i int) {
	c, p := &w.calls[i], &w.plans[i]
	for l := range w.spec.Limits {
		switch {
		case w.spec.Limits[l].Late && p.fate != spends:
			w.count(i, l, p.used[l])
		case w.spec.Limits[l].Kind == store.Concurrency && p.cost[l] > 0 && !w.unjudged[l]:
			w.judgeOf(l, p).rule.Done(w.now, p.cost[l])
		}
	}
	if !c.over {
		w.after(p.back+p.tail, evClose, i)
	}
}

// statement is what the provider says of its fixed windows: times in whole seconds of
// its own clock.
func (w *world) statement(i int) []store.Observed {
	p := &w.plans[i]
	var seen []store.Observed
	for l := range w.spec.Limits {
		if w.spec.Limits[l].Kind != store.Fixed || p.cost[l] == 0 || !w.stated || p.silent {
			continue
		}
		st := w.judgeOf(l, p).rule.State(w.now)
		o := store.Observed{
			Limit: w.spec.Limits[l].Name, Size: -1, Remaining: -1,
			ResetIn: time.Duration((st.Reset+w.clock)/1e6-(w.now+w.clock)/1e6) * time.Second,
		}
		if p.full && !w.unjudged[l] {
			o.Size, o.Remaining = st.Size, st.Remaining
		}
		seen = append(seen, o)
	}
	return seen
}

func (w *world) answer(i int) {
	c, p := &w.calls[i], &w.plans[i]
	op := store.Op{Kind: store.OpAnswer, ID: c.id, Verdict: store.VerdictOK, Observed: c.seen}
	if p.throttled {
		op.Verdict, op.RetryAfter = store.VerdictThrottled, 2*time.Second
	}
	r := w.apply(op)
	if r.State == store.Granted {
		w.headers.add(w.now - c.granted)
		w.bounds = append(w.bounds, w.now-c.granted)
		if w.headers.slow {
			w.tally.slow++
			if w.quick {
				w.tally.lost = true
			}
		}
	}
	if p.twice {
		w.apply(op)
	}
}

func (w *world) close(i int) {
	c, p := &w.calls[i], &w.plans[i]
	c.over = true
	op := store.Op{Kind: store.OpClose, ID: c.id}
	for l := range w.spec.Limits {
		if w.spec.Limits[l].Late || p.used[l] < p.cost[l] {
			op.Amounts = append(op.Amounts, store.Amount{Limit: w.spec.Limits[l].Name, N: p.used[l]})
		}
	}
	w.apply(op)
	if p.twice {
		w.apply(op)
	}
}

// headers follows how long answers take to begin, as a pool does, to know whether a
// trace stays among those with quick headers.
type headers struct {
	last []store.Time
	bar  store.Time
	slow bool
}

func (h *headers) add(d store.Time) {
	if h.last = append(h.last, d); len(h.last) > 16 {
		h.last = h.last[1:]
	}
	sorted := slices.Sorted(slices.Values(h.last))
	h.slow = sorted[(len(sorted)-1)/2] > h.bar
}
