package mock

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Units that package sim does not have.
const (
	places     = "places"  // requests in progress
	unitSearch = "search"  // GitHub's limit on searches
	unitGraph  = "graphql" // GitHub's limit on GraphQL, in points
	unitCount  = "count_tokens"
)

// maxRules bounds the counters per key and model. Beyond it, further keys and models share one counter per limit.
const maxRules = 100_000

// amount is how much of a unit a request takes.
type amount struct {
	unit string
	n    int64
}

// ask states what one request needs from the limits.
type ask struct {
	key   fingerprint
	class string // class of models; limits per model count it separately
	// takes lists what the request uses when it arrives.
	takes []amount
	// produces is set if the request uses output tokens while it is answered. Their number is unknown on arrival, so
	// the request only needs room for one.
	produces bool
}

// needs returns how much of a unit must be free for the request to be accepted. 0: the request does not use the unit.
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

// stated is the state of one limit, for the headers of a response.
type stated struct {
	limit *sim.Limit
	sim.State
}

// decision says whether a request is accepted, and why not.
type decision struct {
	at       store.Time
	accepted bool
	limit    *sim.Limit // limit that refused the request
	used     int64      // used amount of that limit
	need     int64      // amount of that limit that the request needs
	// back is the time until the limit has room; 0: unknown.
	back   time.Duration
	states []stated // visible limits that the request uses, in order
}

// wholeSeconds returns a duration in whole seconds, rounded up, as headers state it.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// retryAfter states when to retry, if that is known.
func (d *decision) retryAfter(h http.Header) {
	if d.back > 0 {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(d.back), 10))
	} else if d.limit.Unit == places {
		h.Set("Retry-After", "1")
	}
}

type ruleKey struct {
	limit int
	key   fingerprint
	class string
}

// book counts what requests have taken from every limit. It decides one arrival at a time and reads the clock under its
// lock. So arrival times never go backwards.
type book struct {
	limits []sim.Limit
	now    func() store.Time

	mu      sync.Mutex
	last    store.Time
	rules   map[ruleKey]sim.Rule
	windows map[ruleKey]*window // per limit on requests
	worst   int64
}

func newBook(limits []sim.Limit, now func() store.Time) *book {
	return &book{limits: limits, now: now, rules: map[ruleKey]sim.Rule{}, windows: map[ruleKey]*window{}}
}

// moment returns the current time, or the previous one if the clock went back. The caller holds the lock.
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

// arrive accepts or refuses a request. It takes from all limits that the request uses, or from none.
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
	if !watched { // no limit on requests: use a minute
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

// look returns the state of the limits that a request uses, without taking anything.
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

// done ends an accepted request: its slots in limits on concurrency are free again.
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

// worstWindow returns the most requests of one key that were accepted in any window of the limit's length.
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
