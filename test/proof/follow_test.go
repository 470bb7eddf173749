package proof_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// stater is a provider whose limit the configuration does not state. Its responses do, and what they state is true.
type stater struct {
	kind     store.Kind
	size     int64
	window   time.Duration
	rounding int  // of resets, see [stater.state]
	late     bool // responses are made at the end of the work, not when the request arrives
	silent   int  // of 100 responses state nothing
	rule     sim.Rule
	rng      *rand.Rand

	callers       int
	cost          int64
	request, work time.Duration // longest delays
	think         time.Duration // longest time between two calls of a caller

	pool          *pool.Pool
	now           store.Time
	events        queue
	ids           map[store.ID]int
	calls         []following
	started       int // callers besides the first
	sent, refused int
}

// following is what a caller of a stater does now.
type following struct {
	id      store.ID
	cost    int64
	refused bool
	seen    []store.Observed
}

func newStater(seed uint64) *stater {
	rng := rand.New(rand.NewPCG(seed, 5))
	s := &stater{
		kind: []store.Kind{store.Bucket, store.Rolling, store.Fixed}[rng.IntN(3)], rng: rng, ids: map[store.ID]int{},
		size: int64(math.Exp(rng.Float64() * math.Log(300))), window: logUniform(rng, 500*time.Millisecond, 3*time.Minute),
		rounding: rng.IntN(4), late: rng.IntN(2) == 0, silent: []int{0, 0, 5, 10}[rng.IntN(4)],
		callers: 1 + rng.IntN(80), cost: 1,
		request: logUniform(rng, time.Millisecond, time.Second), work: logUniform(rng, time.Millisecond, 3*time.Second),
		think: []time.Duration{0, 0, 100 * time.Millisecond, 3 * time.Second, 30 * time.Second}[rng.IntN(5)],
	}
	if rng.IntN(2) == 0 {
		s.window = []time.Duration{time.Second, 10 * time.Second, 30 * time.Second, time.Minute, time.Hour}[rng.IntN(5)]
	}
	if rng.IntN(3) == 0 {
		s.cost = 20
		s.size *= 20
	}
	s.rule = sim.Limit{Kind: s.kind, Size: s.size, Burst: s.size, Window: s.window, Phase: time.Duration(rng.Int64N(int64(s.window)))}.Rule()
	return s
}

func (s *stater) String() string {
	return fmt.Sprintf("%v of %d per %v, rounding %d, late %t, silent %d, %d callers, cost %d, request %v, work %v, think %v",
		s.kind, s.size, s.window, s.rounding, s.late, s.silent, s.callers, s.cost, s.request, s.work, s.think)
}

func (s *stater) after(d store.Time, k kind, i int) {
	s.events.push(event{at: s.now + d, kind: k, plan: int32(i)})
}

func (s *stater) delay(most time.Duration) store.Time {
	return store.Time(s.rng.Int64N(most.Microseconds() + 1))
}

// run plays the callers until end.
func (s *stater) run(t interface{ Fatalf(string, ...any) }, end time.Duration) {
	s.now = sim.Epoch
	spec := store.Spec{
		Name: "p", MaxWaiting: 100_000, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Limits:   []store.Limit{{Name: "requests", Kind: store.Bucket, Unit: "u", Window: time.Minute}},
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
	}
	var err error
	if s.pool, err = pool.New(spec, s.now); err != nil {
		t.Fatalf("%v", err)
	}
	s.calls = make([]following, s.callers)
	s.after(0, evAsk, 0) // the others begin when a response has stated the limit
	for s.now < sim.Epoch.Add(end) {
		wake := s.pool.Wake()
		if s.events.len() == 0 && wake == 0 {
			t.Fatalf("%v: nothing will ever happen at %v", s, since(s.now))
		}
		if s.events.len() == 0 || wake != 0 && wake < s.events.first().at {
			s.now = max(wake, s.now)
			s.apply()
			continue
		}
		e := s.events.pop()
		s.now = e.at
		s.handle(int(e.plan), e.kind)
	}
}

func (s *stater) apply(ops ...store.Op) store.Result {
	s.pool.Apply(s.now, ops)
	for _, id := range s.pool.Decided() {
		s.after(0, evCollect, s.ids[id])
	}
	if len(ops) == 0 {
		return store.Result{}
	}
	return ops[0].Result
}

func (s *stater) handle(i int, k kind) {
	c := &s.calls[i]
	switch k {
	case evAsk:
		c.cost = s.cost
		if s.cost > 1 {
			c.cost = min(1+s.rng.Int64N(2*s.cost), s.size)
		}
		op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", Wait: -1, TTL: 10 * time.Minute}
		op.Amounts = []store.Amount{{Unit: "u", N: c.cost}}
		r := s.apply(op)
		c.id = r.ID
		s.ids[r.ID] = i
		s.took(i, r)
	case evCollect:
		s.took(i, s.apply(store.Op{Kind: store.OpPoll, ID: c.id}))
	case evArrive:
		c.refused = !sim.Admit(s.rule, s.now, c.cost)
		if s.sent++; c.refused {
			s.refused++
		}
		work := s.delay(s.work)
		if s.late {
			s.after(work, evMake, i)
		} else {
			c.seen = s.state()
			s.after(work+s.delay(s.request), evAnswer, i)
		}
	case evMake:
		c.seen = s.state()
		s.after(s.delay(s.request), evAnswer, i)
	case evAnswer:
		op := store.Op{Kind: store.OpAnswer, ID: c.id, Verdict: store.VerdictOK, Observed: c.seen}
		if c.refused {
			op.Verdict = store.VerdictThrottled
		}
		s.apply(op)
		s.apply(store.Op{Kind: store.OpClose, ID: c.id})
		delete(s.ids, c.id)
		for ; s.started < len(s.calls)-1 && len(c.seen) > 0; s.started++ {
			s.after(s.delay(s.think), evAsk, 1+s.started)
		}
		s.after(s.delay(s.think), evAsk, i)
	}
}

func (s *stater) took(i int, r store.Result) {
	if r.State == store.Granted {
		s.after(s.delay(s.request), evArrive, i)
	}
}

// state is what a response states. Resets are in milliseconds; or they are times in whole seconds, rounded up, less the
// response's date, rounded down; or both are rounded down; or they are in milliseconds, and known to be.
func (s *stater) state() []store.Observed {
	if s.rng.IntN(100) < s.silent {
		return nil
	}
	st := s.rule.State(s.now)
	o := store.Observed{Limit: "requests", Size: st.Size, Remaining: st.Remaining}
	switch s.rounding {
	case 0, 3:
		o.ResetIn = ((st.Reset - s.now + 999) / 1000 * 1000).Sub(0)
	case 1:
		o.ResetIn = ((st.Reset+999_999)/1_000_000*1_000_000 - s.now/1_000_000*1_000_000).Sub(0)
	default:
		o.ResetIn = (st.Reset/1_000_000*1_000_000 - s.now/1_000_000*1_000_000).Sub(0)
	}
	if s.rounding == 3 {
		o.Slop = 50 * time.Millisecond
	}
	return []store.Observed{o}
}

// Whatever a provider counts that states its limit truly, at most two requests are refused.
func TestAProviderThatStatesItsLimitRefusesAtMostTwo(t *testing.T) {
	t.Parallel()
	var played, sent, refused int
	for seed := range tape.Seeds(t, traces(t, 1000)) {
		s := newStater(seed)
		s.run(t, 2*time.Minute)
		played, sent, refused = played+1, sent+s.sent, refused+s.refused
		if s.refused > 2 {
			t.Errorf("seed %d: %v: %d of %d refused", seed, s, s.refused, s.sent)
		}
	}
	t.Logf("%d traces, %d sent, %d refused", played, sent, refused)
}
