package sim_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// contact is a crowd that meets a provider whose limit is not known and never stated. It runs the pool itself, in
// virtual time.
type contact struct {
	pool    *pool.Pool
	now     store.Time
	rng     *rand.Rand
	limit   sim.Rule
	latency time.Duration // of accepted requests; refusals take a tenth, at most 20 ms
	tail    time.Duration // mean of a random delay on top
	hints   time.Duration // refusals state when to come back in multiples of it, rounded up
	spread  time.Duration // how long a process takes at most to collect a grant and send
	events  []contactEvent
	waiting map[store.ID]func() // what to do when a ticket is decided

	accepted, flying int
	refused          []store.Time
	first            time.Duration // the pause that the first refusal asks for
	late             time.Duration // how much longer than usual the last answer took
}

type contactEvent struct {
	at  store.Time
	run func()
}

func newContact(limit sim.Rule, latency time.Duration, processes int, seed uint64, limits ...store.Limit) *contact {
	c := &contact{now: sim.Epoch, rng: rand.New(rand.NewPCG(seed, 1)), waiting: map[store.ID]func(){}, limit: limit, latency: latency, spread: time.Millisecond, hints: time.Second}
	if processes > 1 {
		c.spread = 15 * time.Millisecond
	}
	p, err := pool.New(store.Spec{
		Name: "api", MaxWaiting: 100_000, Classes: []store.Class{{Name: "p0", Weight: 1}}, Limits: limits,
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}, c.now)
	if err != nil {
		panic(err)
	}
	c.pool = p
	return c
}

func (c *contact) after(d time.Duration, run func()) {
	c.events = append(c.events, contactEvent{c.now.Add(d), run})
}

func (c *contact) do(op store.Op) store.Result {
	ops := []store.Op{op}
	c.pool.Apply(c.now, ops)
	c.collect()
	return ops[0].Result
}

// ask queues a request for a model.
func (c *contact) ask(agent int, model string) {
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("a", agent), Model: model, Wait: -1, TTL: time.Hour}
	op.Amounts = []store.Amount{{Unit: sim.Requests, N: 1}}
	if r := c.do(op); r.State == store.Granted {
		c.send(r.ID, agent, model)
	} else {
		c.after(0, func() { c.watch(r.ID, agent, model) })
	}
}

// watch sends a request when it is granted.
func (c *contact) watch(id store.ID, agent int, model string) {
	if r := c.do(store.Op{Kind: store.OpPoll, ID: id}); r.State == store.Granted {
		c.send(id, agent, model)
		return
	}
	c.waiting[id] = func() { c.watch(id, agent, model) }
}

// collect lets the processes poll the tickets that were decided.
func (c *contact) collect() {
	for _, id := range c.pool.Decided() {
		if run := c.waiting[id]; run != nil {
			delete(c.waiting, id)
			c.after(time.Duration(c.rng.Int64N(int64(c.spread))), run)
		}
	}
}

func (c *contact) send(id store.ID, agent int, model string) {
	c.flying++
	c.after(time.Duration(c.rng.Int64N(int64(c.spread))), func() {
		back := c.limit.Earliest(c.now, 1)
		if back <= c.now {
			c.limit.Take(c.now, 1)
			late := time.Duration(c.rng.ExpFloat64() * float64(c.tail))
			c.after(c.latency+late, func() {
				c.flying--
				c.accepted++
				c.late = late
				c.do(store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK})
				c.do(store.Op{Kind: store.OpClose, ID: id})
			})
			return
		}
		hint := (back.Sub(c.now) + c.hints - 1) / c.hints * c.hints
		c.after(min(c.latency/10, 20*time.Millisecond), func() {
			if len(c.refused) == 0 {
				c.first = hint
			}
			c.flying--
			c.refused = append(c.refused, c.now)
			c.do(store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictThrottled, RetryAfter: hint, Scope: store.PerModel})
			c.do(store.Op{Kind: store.OpClose, ID: id})
			c.ask(agent, model) // while the pool is held, a retry joins the queue at once
		})
	})
}

// until runs events until done.
func (c *contact) until(done func() bool) {
	for n := 0; !done() && n < 1_000_000; n++ {
		next := store.Time(0)
		if len(c.events) > 0 {
			slices.SortStableFunc(c.events, func(a, b contactEvent) int { return cmp.Compare(a.at, b.at) })
			next = c.events[0].at
		}
		if wake := c.pool.Wake(); wake != 0 && (next == 0 || wake < next) {
			c.now = max(c.now, wake)
			c.pool.Serve(c.now)
			c.collect()
			continue
		}
		if next == 0 {
			panic("nothing will happen any more")
		}
		e := c.events[0]
		c.events = c.events[1:]
		c.now = max(c.now, e.at)
		e.run()
	}
}

// largestLater returns the most refusals within a second, after those of the first second.
func (c *contact) largestLater() (largest int) {
	size, rounds := 0, 0
	for i, at := range c.refused {
		if i == 0 || at.Sub(c.refused[i-1]) > time.Second {
			rounds, size = rounds+1, 0
		}
		if size++; rounds > 1 {
			largest = max(largest, size)
		}
	}
	return largest
}

// idealTime is how long n requests take whose callers know the limit.
func idealTime(limit sim.Rule, n int, latency time.Duration) time.Duration {
	at := sim.Epoch
	for range n {
		at = limit.Earliest(at, 1)
		limit.Take(at, 1)
	}
	return at.Sub(sim.Epoch) + latency
}

var unknown = store.Limit{Name: "requests", Unit: "requests", Kind: store.Rolling, Window: time.Minute, Per: store.PerModel}

// Three times as many requests as a limit allows come at once, and no response states it. Few are refused, and later
// only one at a time. The ideal for the time is that of callers who know the limit, plus the pause that the first
// refusal asks for. A fixed window whose resets are not known costs two latencies more.
func TestFirstContactWithAnUnknownLimit(t *testing.T) {
	sizes := []struct {
		size   int64
		window time.Duration
	}{{5, 5}, {10, 5}, {20, 5}, {20, 10}, {30, 15}, {10, 30}, {10, 60}, {60, 60}, {100, 60}}
	for _, kind := range []store.Kind{store.Bucket, store.Rolling, store.Fixed} {
		for _, l := range sizes {
			for _, latency := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond} {
				for _, processes := range []int{1, 4} {
					for seed := range uint64(12) {
						limit := sim.Limit{Name: "requests", Kind: kind, Unit: sim.Requests, Size: l.size, Burst: l.size, Window: l.window * time.Second}
						limit.Phase = time.Duration(seed%4) * limit.Window / 4
						n := 3 * int(l.size)
						c := newContact(limit.Rule(), latency, processes, seed, unknown)
						c.tail = []time.Duration{0, latency / 5, latency / 2}[seed%3]
						if seed >= 6 {
							c.hints = time.Millisecond
						}
						for i := range n {
							c.ask(i, "m")
						}
						c.until(func() bool { return c.accepted == n })
						took, ideal := c.now.Sub(sim.Epoch)-c.late, idealTime(limit.Rule(), n, latency)+c.first+3*c.tail
						if kind == store.Fixed {
							ideal += 2 * latency
						}
						if most := map[bool]int{true: 3, false: 5}[latency < time.Second/10]; took > ideal*13/10 || len(c.refused) > most || c.largestLater() > 1 {
							t.Errorf("%v of %d per %v, latency %v to %v, hints in %v, %d processes, seed %d: %d refused, at once later %d, in %v, want at most 1.3 times %v",
								kind, l.size, limit.Window, latency, latency+c.tail, c.hints, processes, seed, len(c.refused), c.largestLater(), took, ideal)
						}
					}
				}
			}
		}
	}
}

// Slow calls before a burst say nothing about how many may go at once. With one each 30 s, the burst on 60 in a minute took half an
// hour instead of three minutes, because all calls since the first were taken for one window.
func TestSlowCallsBeforeABurst(t *testing.T) {
	for _, kind := range []store.Kind{store.Bucket, store.Rolling, store.Fixed} {
		for _, l := range []struct{ size, window int64 }{{10, 5}, {20, 20}, {60, 60}, {100, 60}} {
			for _, every := range []time.Duration{10 * time.Second, 30 * time.Second} {
				for seed := range uint64(4) {
					limit := sim.Limit{Name: "requests", Kind: kind, Unit: sim.Requests, Size: l.size, Burst: l.size, Window: time.Duration(l.window) * time.Second}
					c := newContact(limit.Rule(), 500*time.Millisecond, 1, seed, unknown)
					c.tail = 100 * time.Millisecond
					slow, n := int(5*time.Minute/every), 3*int(l.size)
					for i := range slow {
						c.after(time.Duration(i)*every, func() { c.ask(0, "m") })
					}
					c.after(5*time.Minute, func() {
						for i := range n {
							c.ask(i, "m")
						}
					})
					c.until(func() bool { return c.accepted == slow+n })
					took, ideal := c.now.Sub(sim.Epoch)-5*time.Minute, idealTime(limit.Rule(), n, c.latency)
					if took > ideal+limit.Window+limit.Window/2 || len(c.refused) > 3 {
						t.Errorf("%v of %d per %v after a call each %v, seed %d: %d refused, in %v, ideal %v", kind, l.size, limit.Window, every, seed, len(c.refused), took, ideal)
					}
				}
			}
		}
	}
}

// What one model's response states opens no other model, and what is stated of a day or of tokens opens no minute.
// Eighty requests for opus come at once, after one that was answered.
func TestWhatIsKnownDoesNotOpenWhatIsNot(t *testing.T) {
	day := store.Limit{Name: "day", Unit: "requests", Kind: store.Bucket, Window: 24 * time.Hour, Per: store.PerModel}
	tokens := store.Limit{Name: "tokens", Unit: "tokens", Kind: store.Bucket, Window: time.Minute, Per: store.PerModel, Estimated: true}
	for name, first := range map[string]struct {
		model string
		limit int
		opens bool
	}{
		"another model":     {"sonnet", 0, false},
		"the day":           {"opus", 1, false},
		"tokens":            {"opus", 2, false},
		"the limit, itself": {"opus", 0, true},
	} {
		limit := sim.Limit{Name: "requests", Kind: store.Bucket, Unit: sim.Requests, Size: 50, Burst: 50, Window: time.Minute}
		c := newContact(limit.Rule(), 500*time.Millisecond, 1, 1, unknown, day, tokens)
		op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "first", Model: first.model, Wait: -1, TTL: time.Hour}
		op.Amounts = []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 1}}
		r := c.do(op)
		stated := store.Observed{Limit: []string{unknown.Name, day.Name, tokens.Name}[first.limit], Size: 40, Remaining: 39, ResetIn: -1}
		c.do(store.Op{Kind: store.OpAnswer, ID: r.ID, Verdict: store.VerdictOK, Observed: []store.Observed{stated}})
		c.do(store.Op{Kind: store.OpClose, ID: r.ID})
		for i := range 80 {
			c.ask(i, "opus")
		}
		c.until(func() bool { return c.now.Sub(sim.Epoch) > time.Second/2 })
		if opened := c.flying+c.accepted > 5; opened != first.opens || len(c.refused) > 0 {
			t.Errorf("%s: %d refused and %d sent within half a second", name, len(c.refused), c.flying+c.accepted)
		}
	}
}
