package mock

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Units besides those of package sim.
const (
	places     = "places"  // requests that are being served
	unitSearch = "search"  // GitHub's limit on searches
	unitGraph  = "graphql" // GitHub's limit on GraphQL, in points
	unitCount  = "count_tokens"
)

// maxRules bounds the counts that are kept by key and model. Further ones share one count.
const maxRules = 100_000

// amount is how much of a unit a request takes.
type amount struct {
	unit string
	n    int64
}

// ask is what one request needs from the limits.
type ask struct {
	key   fingerprint
	class string // class of models; limits per model count it separately
	// takes is what the request takes on arrival.
	takes []amount
	// produces is set if the request takes output tokens while it is answered. Their number is not known in advance,
	// so there has to be room for one.
	produces bool
}

// needs returns what must be free of a unit, or 0 if the request does not use it.
func (a *ask) needs(unit string) int64 {
	if unit == sim.OutputTokens && a.produces {
		return 1
	}
	return a.takesOf(unit)
}

func (a *ask) takesOf(unit string) int64 {
	for _, t := range a.takes {
		if t.unit == unit {
			return t.n
		}
	}
	return 0
}

// stated is what a response states about one limit.
type stated struct {
	limit *sim.Limit
	sim.State
}

// decision is the result of a request's arrival.
type decision struct {
	at       store.Time
	accepted bool
	limit    *sim.Limit // the limit that refused it
	used     int64      // of that limit
	need     int64      // of that limit
	// back is the time until there is room; 0: unknown.
	back   time.Duration
	states []stated // of the limits that are not hidden, in their order
}

// retryAfter returns back in whole seconds, as headers state it.
func (d *decision) retryAfter() int64 { return int64((d.back + time.Second - 1) / time.Second) }

type ruleKey struct {
	limit int
	key   fingerprint
	class string
}

// book holds what was taken from every limit. Arrivals are decided one after the other, at the time of the lock. So
// none is earlier than the one before it.
type book struct {
	limits []sim.Limit
	now    func() store.Time

	mu      sync.Mutex
	last    store.Time
	rules   map[ruleKey]sim.Rule
	windows map[ruleKey]*window // of limits on requests
	worst   int64
}

func newBook(limits []sim.Limit, now func() store.Time) *book {
	return &book{limits: limits, now: now, rules: map[ruleKey]sim.Rule{}, windows: map[ruleKey]*window{}}
}

// moment returns the current time, or the previous one if the clock went back. The lock is held.
func (b *book) moment() store.Time {
	b.last = max(b.last, b.now())
	return b.last
}

func (b *book) keyOf(i int, a *ask) ruleKey {
	k := ruleKey{limit: i, key: a.key}
	if b.limits[i].PerModel {
		k.class = a.class
	}
	if _, there := b.rules[k]; !there && len(b.rules) >= maxRules {
		return ruleKey{limit: i, class: "(others)"}
	}
	return k
}

func (b *book) rule(i int, a *ask) sim.Rule {
	k := b.keyOf(i, a)
	r := b.rules[k]
	if r == nil {
		r = b.limits[i].Rule()
		b.rules[k] = r
	}
	return r
}

// arrive decides a request. It takes from all limits that the request uses, or from none.
func (b *book) arrive(a *ask) decision {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.moment()
	d := decision{at: t, accepted: true}
	latest := t
	for i := range b.limits {
		need := a.needs(b.limits[i].Unit)
		if need == 0 {
			continue
		}
		r := b.rule(i, a)
		if e := r.Earliest(t, need); e > latest {
			latest, d.accepted, d.limit, d.need = e, false, &b.limits[i], need
			s := r.State(t)
			d.used = s.Size - s.Remaining
		}
	}
	if !d.accepted && latest != sim.Never {
		d.back = latest.Sub(t)
	}
	if d.accepted {
		b.take(t, a)
	}
	d.states = b.states(t, a)
	return d
}

func (b *book) take(t store.Time, a *ask) {
	watched := a.takesOf(sim.Requests) == 0
	for i := range b.limits {
		l := &b.limits[i]
		n := a.takesOf(l.Unit)
		if n == 0 {
			continue
		}
		b.rule(i, a).Take(t, n)
		if l.Unit == sim.Requests {
			b.watch(t, b.keyOf(i, a), l.Window)
			watched = true
		}
	}
	if !watched { // no limit states its window
		b.watch(t, ruleKey{limit: -1, key: a.key}, time.Minute)
	}
}

// watch records an accepted request for the worst window.
func (b *book) watch(t store.Time, k ruleKey, length time.Duration) {
	if b.windows[k] == nil && len(b.windows) >= maxRules {
		k = ruleKey{limit: k.limit}
	}
	w := b.windows[k]
	if w == nil {
		w = &window{length: store.Time(length.Microseconds())}
		b.windows[k] = w
	}
	b.worst = max(b.worst, w.add(t))
}

// look returns what is left of the limits that a request uses.
func (b *book) look(a *ask) (at store.Time, _ []stated) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.moment()
	return t, b.states(t, a)
}

func (b *book) states(t store.Time, a *ask) []stated {
	var all []stated
	for i := range b.limits {
		if l := &b.limits[i]; !l.Hidden && a.needs(l.Unit) > 0 {
			all = append(all, stated{l, b.rule(i, a).State(t)})
		}
	}
	return all
}

// produce counts output tokens when they are produced.
func (b *book) produce(a *ask, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.moment()
	for i := range b.limits {
		if b.limits[i].Unit == sim.OutputTokens {
			b.rule(i, a).Take(t, n)
		}
	}
}

// done records that an accepted request is over.
func (b *book) done(a *ask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.moment()
	for i := range b.limits {
		if n := a.takesOf(b.limits[i].Unit); n > 0 {
			b.rule(i, a).Done(t, n)
		}
	}
}

// worstWindow returns the most requests that one key was granted in any window of the limit's length.
func (b *book) worstWindow() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.worst
}

// forget restarts the search for the worst window. Amounts taken from the limits stay taken.
func (b *book) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worst = 0
	clear(b.windows)
}
