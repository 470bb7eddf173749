package proof_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// A crowd is callers of all classes on a pool that keeps something for somebody in every way there is: light, shares,
// reserve, pace, breaker. It is played in virtual time; the pool is served when it asks for it, and at no other time.
type crowd struct {
	rng     *rand.Rand
	pool    *pool.Pool
	spec    store.Spec
	now     store.Time
	events  queue // plan is an index into tickets
	tickets []crowdTicket
	byID    map[store.ID]int32
	waiting int
	last    [4]store.Time // when a class was granted something last, or began to wait
	longest [4]store.Time // without a grant, while one of the class waited
	inLine  [4]int
	again   bool // who is done asks again
	ends    store.Time
	failure error
}

type crowdTicket struct {
	op    store.Op
	class uint8
	state store.State
}

const (
	crowdAsks kind = iota
	crowdAnswers
	crowdCloses
	crowdBeats
	crowdLooks
)

// crowdSpec draws a pool with floors.
func crowdSpec(rng *rand.Rand) store.Spec {
	sp := store.Spec{
		Name: "p", Order: []store.Order{store.Fair, store.Fair, store.FIFO, store.Strict}[rng.IntN(4)], MaxWaiting: 100_000,
		Classes:  []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}, {Name: "p3", Weight: 1 + rng.Int64N(1000)}}[:1+rng.IntN(4)],
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Shares:   rng.IntN(3) > 0, Pace: rng.IntN(3) > 0,
		Lease: []time.Duration{0, time.Second, time.Hour, -1}[rng.IntN(4)],
	}
	if rng.IntN(3) > 0 {
		sp.Light = store.Light{Green: rng.Int64N(1000), Static: rng.IntN(3) == 0, All: rng.IntN(3) == 0}
		sp.Light.Red = rng.Int64N(sp.Light.Green + 1)
	}
	if rng.IntN(2) == 0 {
		sp.Breaker = store.Breaker{Within: 2 * time.Minute, Samples: 3 + rng.IntN(10), Open: rng.IntN(2) == 0}
	}
	if rng.IntN(3) == 0 {
		sp.Reserve = rng.Int64N(1000)
	}
	for i := range 1 + rng.IntN(4) {
		l := store.Limit{
			Name: fmt.Sprint("l", i), Unit: "u", Size: 1 + rng.Int64N(60), Guard: store.Guard(rng.IntN(3)),
			Kind: []store.Kind{store.Fixed, store.Fixed, store.Rolling, store.Bucket, store.Concurrency}[rng.IntN(5)],
			Per:  []store.Scope{0, 0, store.PerModel, store.PerAgent}[rng.IntN(4)],
		}
		switch l.Kind {
		case store.Fixed:
			l.Window = logUniform(rng, time.Minute, 2*time.Hour)
			l.Reset = sim.Epoch + store.Time(rng.Int64N(l.Window.Microseconds()))
		case store.Rolling, store.Bucket:
			l.Window = logUniform(rng, time.Second, 20*time.Minute)
		}
		if l.Kind == store.Bucket {
			l.Burst = 1 + rng.Int64N(l.Size)
		}
		sp.Limits = append(sp.Limits, l)
	}
	return sp
}

func newCrowd(seed uint64, sp func(*rand.Rand) store.Spec) (*crowd, error) {
	c := &crowd{rng: rand.New(rand.NewPCG(seed, 99)), now: sim.Epoch, byID: map[store.ID]int32{}}
	c.spec = sp(c.rng)
	var err error
	c.pool, err = pool.New(c.spec, c.now)
	return c, err
}

// recovery is how long all limits together take to give back everything.
func (c *crowd) recovery() time.Duration {
	tr := trace{spec: c.spec}
	return tr.recovery() + time.Minute
}

// request adds one that asks at a time.
func (c *crowd) request(at store.Time, class uint8, large bool) {
	op := store.Op{
		Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("agent", c.rng.IntN(5)), Class: class, Wait: -1,
		TTL: time.Hour, Model: fmt.Sprint("model", c.rng.IntN(2)), Emergency: class == 0 && c.rng.IntN(10) == 0,
	}
	for i, l := range c.spec.Limits {
		most := l.Size
		if l.Kind == store.Bucket {
			most = l.Burst
		}
		switch k := c.rng.IntN(10); {
		case k < 2:
		case k < 8 || !large:
			op.Amounts = append(op.Amounts, store.Amount{Limit: c.spec.Limits[i].Name, N: 1})
		default:
			op.Amounts = append(op.Amounts, store.Amount{Limit: c.spec.Limits[i].Name, N: 1 + c.rng.Int64N(most)})
		}
	}
	c.tickets = append(c.tickets, crowdTicket{op: op, class: class})
	c.events.push(event{at: at, plan: int32(len(c.tickets) - 1), kind: crowdAsks})
}

// run plays until nothing is left to happen, or the end.
func (c *crowd) run(end store.Time) {
	for c.failure == nil {
		next := end + 1
		if c.events.len() > 0 {
			next = c.events.first().at
		}
		wake := c.pool.Wake()
		if wake != 0 && wake <= c.now {
			c.failure = fmt.Errorf("at %v the pool wants to be woken at %v", since(c.now), since(wake))
			return
		}
		if wake == 0 && c.events.len() == 0 || min(next, end) >= end && (wake == 0 || wake > end) {
			return
		}
		if wake != 0 && wake < next {
			c.doze(wake)
			c.now = wake
			c.apply(nil)
			continue
		}
		c.doze(next)
		c.now = next
		c.happen(c.events.pop())
	}
}

// lookAgain is how late somebody may be woken. What several floors on several meters keep from several classes changes
// in more ways than anybody works out: who is kept back is looked at again after this long at the latest.
const lookAgain = 10_000_000

// doze looks whether somebody could have gone before the pool wanted to be woken.
func (c *crowd) doze(until store.Time) {
	if c.waiting == 0 || until-c.now < 2 || c.rng.IntN(4) > 0 {
		return
	}
	c.now += 1 + store.Time(c.rng.Int64N(int64(until-c.now-1)))
	before, line := c.waiting, c.pool.Snapshot(c.now).Queue
	c.apply([]store.Op{{Kind: store.OpLaunch}}) // which makes it look
	if c.waiting == before || until-c.now <= lookAgain {
		return
	}
	c.failure = fmt.Errorf("%d could go at %v, and nobody would have woken them before %v; in line were", before-c.waiting, since(c.now), since(until))
	for _, w := range line {
		t := &c.tickets[c.byID[w.ID]]
		c.failure = fmt.Errorf("%w\n  class %d %s %s %v: %v on %s until %v; %v now", c.failure, w.Class, w.Agent, w.Model,
			t.op.Amounts, w.Reason.Code, w.Reason.Limit, since(w.Reason.At), t.state)
	}
}

func (c *crowd) apply(ops []store.Op) {
	c.pool.Apply(c.now, ops)
	told := slices.Clone(c.pool.Decided())
	for k := 0; k < len(told); k++ {
		id := told[k]
		poll := []store.Op{{Kind: store.OpPoll, ID: id}}
		i, mine := c.byID[id]
		c.pool.Apply(c.now, poll)
		told = append(told, c.pool.Decided()...)
		if !mine || poll[0].Result.State != store.Granted {
			c.failure = fmt.Errorf("told of %v, which is %v", id, poll[0].Result.State)
			return
		}
		t := &c.tickets[i]
		c.waiting--
		c.inLine[t.class]--
		c.granted(i)
	}
	c.check()
}

// check looks at the ledger: nothing is ever over its size.
func (c *crowd) check() {
	if c.rng.IntN(8) > 0 {
		return
	}
	s := c.pool.Snapshot(c.now)
	for _, l := range s.Limits {
		if l.Used > l.Size || l.Used < 0 || l.Outstanding < 0 || l.Outside < 0 {
			c.failure = fmt.Errorf("at %v limit %s of %q: %d used of %d, %d outstanding, %d outside",
				since(c.now), l.Limit, l.Scope, l.Used, l.Size, l.Outstanding, l.Outside)
		}
	}
	for _, w := range s.Queue {
		if w.Reason.At != 0 && w.Reason.At <= c.now {
			c.failure = fmt.Errorf("at %v one waits (%v) until %v, which has been", since(c.now), w.Reason.Code, since(w.Reason.At))
		}
	}
}

func (c *crowd) granted(i int32) {
	t := &c.tickets[i]
	t.state = store.Granted
	c.longest[t.class] = max(c.longest[t.class], c.now-c.last[t.class])
	c.last[t.class] = c.now
	c.events.push(event{at: c.now + 1 + store.Time(c.rng.Int64N(3_000_000)), plan: i, kind: crowdAnswers})
}

func (c *crowd) happen(e event) {
	t := &c.tickets[max(e.plan, 0)]
	switch e.kind {
	case crowdAsks:
		ops := []store.Op{t.op}
		if c.inLine[t.class] == 0 {
			c.last[t.class] = c.now
		}
		c.apply(ops)
		t = &c.tickets[e.plan]
		t.op.ID = ops[0].Result.ID
		c.byID[t.op.ID] = e.plan
		switch t.state = ops[0].Result.State; t.state {
		case store.Granted:
			c.granted(e.plan)
		case store.Waiting:
			c.waiting++
			c.inLine[t.class]++
		default:
			c.failure = fmt.Errorf("refused: %+v", ops[0].Result)
		}
	case crowdAnswers:
		op := store.Op{Kind: store.OpAnswer, ID: t.op.ID, Verdict: store.VerdictOK}
		for i, l := range c.spec.Limits {
			if n, _ := store.AmountOf(t.op.Amounts, &c.spec.Limits[i]); l.Kind == store.Fixed && n > 0 && c.spec.Breaker.Samples > 0 {
				op.Observed = append(op.Observed, c.state(i, t))
			}
		}
		c.apply([]store.Op{op})
		if c.rng.IntN(20) == 0 {
			c.apply([]store.Op{{Kind: store.OpCancel, ID: t.op.ID}})
		}
		c.events.push(event{at: c.now + store.Time(c.rng.Int64N(2_000_000)), plan: e.plan, kind: crowdCloses})
	case crowdCloses:
		op := store.Op{Kind: store.OpClose, ID: t.op.ID}
		if c.rng.IntN(4) == 0 { // it used less than was thought
			for _, a := range t.op.Amounts {
				op.Amounts = append(op.Amounts, store.Amount{Limit: a.Limit, N: (a.N + 1) / 2})
			}
		}
		c.apply([]store.Op{op})
		if c.again && c.now < c.ends {
			c.request(c.now+1, t.class, false)
		}
	case crowdBeats:
		if c.spec.Lease >= 0 {
			kind := store.OpHeartbeat
			if c.rng.IntN(6) == 0 {
				kind = store.OpLeave
			}
			c.apply([]store.Op{{Kind: kind, Agent: fmt.Sprint("agent", c.rng.IntN(5)), Class: uint8(c.rng.IntN(len(c.spec.Classes)))}})
		}
	}
}

// state is what a truthful provider says of a stock.
func (c *crowd) state(i int, t *crowdTicket) store.Observed {
	o := store.Observed{Limit: c.spec.Limits[i].Name, Size: c.spec.Limits[i].Size, Remaining: -1, ResetIn: -1}
	for _, l := range c.pool.Snapshot(c.now).Limits {
		if l.Limit == o.Limit && (l.Scope == "" || l.Scope == "model="+t.op.Model) {
			o.Remaining = max(l.Size-l.Used, 0)
		}
	}
	return o
}

// Whatever is kept for others, everyone who waits goes in the end, at the moment at which it can and not when somebody
// happens to look; no window is ever over its size, and when all is over nothing is charged.
func TestFloorsNeverBlockForEver(t *testing.T) {
	t.Parallel()
	granted := 0
	seeds := []uint64{5718} // once something was kept from the first in line, those behind it could go, and nobody woke them
	for seed := range uint64(traces(t, 300)) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		c, err := newCrowd(seed, crowdSpec)
		if err != nil {
			t.Fatal(err)
		}
		n := 3 + c.rng.IntN(60)
		span := logUniform(c.rng, time.Second, time.Hour).Microseconds()
		for range n {
			c.request(c.now+store.Time(c.rng.Int64N(span)), uint8(c.rng.IntN(len(c.spec.Classes))), true)
		}
		for range c.rng.IntN(10) {
			c.events.push(event{at: c.now + store.Time(c.rng.Int64N(span)), kind: crowdBeats})
		}
		end := c.now.Add(time.Duration(span)*time.Microsecond + time.Duration(n)*2*c.recovery())
		c.run(end)
		for i := range c.tickets {
			if c.tickets[i].state != store.Granted && c.failure == nil {
				c.failure = fmt.Errorf("%d wait for ever: %+v", c.waiting, c.pool.Snapshot(end).Queue[0])
			}
		}
		c.now = max(c.now, end).Add(2*c.recovery() + time.Hour)
		c.pool.Serve(c.now)
		s := c.pool.Snapshot(c.now)
		for _, l := range s.Limits {
			if (l.Used != 0 || l.Outstanding != 0 || s.InFlight != 0) && c.failure == nil {
				c.failure = fmt.Errorf("%d used and %d outstanding of limit %s when all is over", l.Used, l.Outstanding, l.Limit)
			}
		}
		if c.failure != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, c.failure, c.spec)
		}
		granted += n
	}
	t.Logf("%d requests went", granted)
}

// With all classes asking for more than there is, each of them gets something in any three windows.
func TestNoClassStarves(t *testing.T) {
	t.Parallel()
	var worst float64
	for seed := range uint64(traces(t, 60)) {
		c, err := newCrowd(seed, func(rng *rand.Rand) store.Spec {
			sp := crowdSpec(rng)
			sp.Order = store.Order([]store.Order{store.Fair, store.FIFO}[rng.IntN(2)])
			sp.Light.All = false                          // that leaves a flow to the highest class, if it wants it all
			if sp.Light.Green > 400 || sp.Reserve > 400 { // what is reserved for the highest is not a share
				sp.Light, sp.Reserve = store.Light{Green: 200, Red: 50, Static: sp.Light.Static}, 100
			}
			for i := range sp.Classes {
				sp.Classes[i].Weight = max(sp.Classes[i].Weight, 20) % 100
				sp.Classes[i].Weight = max(sp.Classes[i].Weight, 20)
			}
			for i := range sp.Limits {
				sp.Limits[i].Size = max(sp.Limits[i].Size, 20)
				sp.Limits[i].Burst = sp.Limits[i].Burst / 2 * 2
				if sp.Limits[i].Per == store.PerAgent {
					sp.Limits[i].Per = 0
				}
			}
			return sp
		})
		if err != nil {
			t.Fatal(err)
		}
		c.again, c.ends = true, c.now.Add(8*c.recovery())
		for class := range c.spec.Classes {
			for range 4 {
				c.request(c.now+store.Time(c.rng.Int64N(1_000_000)), uint8(class), false)
			}
		}
		c.limitEvents(4000)
		if c.failure != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, c.failure, c.spec)
		}
		for class := range c.spec.Classes {
			if c.inLine[class] > 0 {
				c.longest[class] = max(c.longest[class], c.now-c.last[class])
			}
			gap := float64(c.longest[class]) / float64(c.recovery().Microseconds())
			worst = max(worst, gap)
			most := 3.0
			if c.spec.Pace { // lower classes together have a burst and the rate, and the highest class takes what it wants
				most = 4 * float64(len(c.spec.Classes))
			}
			if gap > most {
				t.Fatalf("seed %d: class %d had nothing for %v, and all limits together come back in %v\n%+v\n%+v", seed, class, c.longest[class].Sub(0), c.recovery(), c.spec, c.pool.Snapshot(c.now).Limits)
			}
		}
	}
	t.Logf("at worst a class had nothing for %.2f of the time in which all limits come back", worst)
}

// limitEvents plays until so many requests have been made, or the end.
func (c *crowd) limitEvents(n int) {
	for end := c.now; end < c.ends && len(c.tickets) < n && c.failure == nil; {
		end = min(c.now+(c.ends-c.now)/8+1_000_000, c.ends)
		c.run(end)
		c.now = max(c.now, end)
	}
}

// Lower classes press all the time, and answers tell what remains: the quota lasts until its reset, and little of it is
// left then.
func TestBreakerMakesEveryQuotaLast(t *testing.T) {
	t.Parallel()
	for seed := range uint64(traces(t, 60)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		size := []int64{60, 100, 300, 1000, 5000, 10_000}[rng.IntN(6)]
		window := []time.Duration{10 * time.Minute, 30 * time.Minute, time.Hour, 5 * time.Hour, 24 * time.Hour}[rng.IntN(5)]
		// Too quick is gone before three answers have come, too slow leaves too few of them in two minutes.
		lasts := logUniform(rng, 20*time.Second, min(window/2, time.Duration(size)*20*time.Second))
		g := glide{size: size, window: window, gap: store.Time(lasts.Microseconds() / size), latency: 50_000 + store.Time(rng.Int64N(1_000_000))}
		if err := g.play(rng); err != nil {
			t.Errorf("seed %d: %d in %v, asked for in %v, answered after %v: %v", seed, size, window, lasts, g.latency.Sub(0), err)
		}
	}
}

// glide is one quota and its lower classes, who want all of it long before its reset.
type glide struct {
	size         int64
	window       time.Duration
	gap, latency store.Time
}

func (g *glide) play(rng *rand.Rand) error {
	sp := store.Spec{
		Name: "p", MaxWaiting: 100_000, Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Breaker:  store.Breaker{Within: 2 * time.Minute, Samples: 10},
		Limits:   []store.Limit{{Name: "quota", Unit: "requests", Kind: store.Fixed, Size: g.size, Window: g.window, Reset: sim.Epoch.Add(g.window)}},
	}
	p, err := pool.New(sp, sim.Epoch)
	if err != nil {
		return err
	}
	reset := sim.Epoch.Add(g.window)
	var events queue
	ids := map[int32]store.ID{}
	sent, n := int64(0), int32(0)
	var emptyAt store.Time
	granted := func(now store.Time, i int32) {
		if sent++; sent == g.size {
			emptyAt = now
		}
		events.push(event{at: now + g.latency/2 + store.Time(rng.Int64N(int64(g.latency))), plan: i, kind: crowdAnswers})
	}
	waiting := map[store.ID]int32{}
	apply := func(now store.Time, ops []store.Op) {
		p.Apply(now, ops)
		told := slices.Clone(p.Decided())
		for k := 0; k < len(told); k++ {
			i := waiting[told[k]]
			delete(waiting, told[k])
			p.Apply(now, []store.Op{{Kind: store.OpPoll, ID: told[k]}})
			told = append(told, p.Decided()...)
			granted(now, i)
		}
	}
	events.push(event{at: sim.Epoch + 2_000_000, kind: crowdAsks})
	for {
		var now store.Time
		next := events.first().at
		if w := p.Wake(); w != 0 && w < next {
			if now = w; now >= reset {
				break
			}
			apply(now, nil)
			continue
		}
		if now = next; now >= reset {
			break
		}
		switch e := events.pop(); e.kind {
		case crowdAsks:
			if len(waiting) < 3 { // who is held asks no more
				op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", Class: uint8(1 + rng.IntN(2)), Wait: -1, TTL: time.Hour}
				op.Amounts = []store.Amount{{Unit: "requests", N: 1}}
				ops := []store.Op{op}
				apply(now, ops)
				n++
				ids[n] = ops[0].Result.ID
				if ops[0].Result.State == store.Granted {
					granted(now, n)
				} else {
					waiting[ops[0].Result.ID] = n
				}
			}
			events.push(event{at: now + g.gap, kind: crowdAsks})
		case crowdAnswers:
			apply(now, []store.Op{{
				Kind: store.OpAnswer, ID: ids[e.plan], Verdict: store.VerdictOK,
				Observed: []store.Observed{{Limit: "quota", Size: g.size, Remaining: g.size - sent, ResetIn: reset.Sub(now)}},
			}, {Kind: store.OpClose, ID: ids[e.plan]}})
			delete(ids, e.plan)
		}
	}
	// The last one may go half a step of the line before its end.
	if early := reset.Sub(emptyAt); emptyAt != 0 && early > max(g.window/8, 3*g.window/time.Duration(g.size)) {
		return fmt.Errorf("it was gone %v before its reset", early)
	}
	if sent < g.size*9/10 {
		return fmt.Errorf("%d were used", sent)
	}
	return nil
}
