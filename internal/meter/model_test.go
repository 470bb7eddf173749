package meter

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
)

const (
	unbound = int64(math.MaxInt64)
	second  = int64(1_000_000)
	minute  = 60 * second
	day     = 24 * hour
)

// entry is a charge in the model. It stands for a range: from is the bound by first
// principles, until the latest that the documentation of the meter allows, and so
// with the amounts.
type entry struct {
	amount, most int64
	from, until  int64
	with         *entry // settled on top of this one, and bounded with it at the latest
	open         bool   // concurrency: not closed
}

func (e *entry) last() int64 {
	if e.with != nil {
		return e.with.until
	}
	return e.until
}

// model computes what is used from a plain list of charges.
type model struct {
	d       Def
	size    int64
	n, w    int64 // the meter's own rate, at most 0.1% below size per window
	lo, hi  int64 // a reset of a fixed window that is known
	entries []*entry
}

// least is the room that is taken at t by first principles.
func (m *model) least(t int64) int64 {
	var used int64
	switch {
	case m.d.Kind == Concurrency:
		for _, e := range m.entries {
			if e.open {
				used += e.amount
			}
		}
	case m.d.Kind == Bucket:
		return m.bucket(t, m.size, m.d.Window, func(e *entry) (int64, int64) { return e.amount, e.from })
	case m.hi != 0:
		for _, e := range m.entries {
			if e.from >= m.opened(t) {
				used += e.amount
			}
		}
	default:
		for _, e := range m.entries {
			if e.from > t-m.d.Window {
				used += e.amount
			}
		}
	}
	return used
}

// most is what the meter may count at t at the most: what counts a slice earlier,
// or where there are no slices exactly what counts.
func (m *model) most(t int64) int64 {
	var used int64
	switch {
	case m.d.Kind == Concurrency:
		return m.least(t)
	case m.d.Kind == Bucket:
		return m.bucket(t, m.n, m.w, func(e *entry) (int64, int64) { return e.most, e.last() })
	case m.hi != 0:
		for _, e := range m.entries {
			if e.last() >= m.opened(t) {
				used += e.most
			}
		}
	default:
		for _, e := range m.entries {
			if e.last() == unbound || e.last() > t-m.d.Slice-m.d.Window {
				used += e.most
			}
		}
	}
	return used
}

// opened returns the earliest moment at which the window of time t can have begun.
func (m *model) opened(t int64) int64 {
	k := (t-m.hi)/m.d.Window - 1 // below it, whichever way the division rounds
	for m.hi+k*m.d.Window <= t {
		k++
	}
	return m.lo + (k-1)*m.d.Window
}

// bucket lets every charge drain at n per w from its bound on, and returns what is
// left and what is outstanding at t, rounded up.
func (m *model) bucket(t, n, w int64, of func(*entry) (amount, bound int64)) int64 {
	type fill struct{ amount, at int64 }
	var fills []fill
	var outstanding int64
	for _, e := range m.entries {
		if amount, bound := of(e); bound > t {
			outstanding += amount
		} else if amount > 0 {
			fills = append(fills, fill{amount, bound})
		}
	}
	slices.SortFunc(fills, func(x, y fill) int { return int(x.at - y.at) })
	var level, last int64 // in 1/w
	drain := func(to int64) {
		if to-last > level/n {
			level = 0
		} else {
			level = max(level-(to-last)*n, 0)
		}
		last = to
	}
	for _, f := range fills {
		drain(f.at)
		level += f.amount * w
	}
	drain(t)
	return outstanding + ceilDiv(level, w)
}

// rig drives a meter and its model through the same events.
type rig struct {
	d     Def
	m     Meter
	r     *Ring
	now   int64
	model model
	live  []*ticket
}

type ticket struct {
	Charge
	granted int64
	entry   *entry
	settled bool
}

// windows are the lengths that are tried, some of which no size divides. 0 is any other.
var windows = []int64{second, 1000, 20_000, 999_983, 4 * second, 5 * second, 7_777_777, minute, hour, day, 0}

func newRig(t *tape.Tape) *rig {
	kind := tape.Of(t, "kind", Bucket, Bucket, Rolling, Fixed, Concurrency)
	guard := tape.Of(t, "guard", Auto, Strict, Off)
	window := tape.Of(t, "window", windows...)
	if window == 0 {
		window = t.Int("any window", 1000, day)
	}
	slack := t.Int("slack", 0, tape.Of(t, "longest slack", 0, second, hour))
	size := tape.Of[int64](t, "size", 5, 7, 80, 97, 5000, 2_000_000, 0)
	if size == 0 {
		size = t.Int("any size", 1, 2_000_000)
	}
	return startRig(t, kind, guard, window, slack, size)
}

// startRig sets a meter up, at a time and with what else is drawn.
func startRig(t *tape.Tape, kind Kind, guard Guard, window, slack, size int64) *rig {
	d, err := Compile(kind, guard, time.Duration(window)*time.Microsecond, time.Duration(slack)*time.Microsecond)
	if err != nil {
		t.Fatalf("%v", err)
	}
	d.Late = tape.Of(t, "late", false, false, true)
	x := &rig{d: d, now: tape.Of(t, "start", int64(epoch), 0)}
	if x.now == 0 {
		x.now = t.Int("any start", 1, day)
	}
	if d.NeedsRing() {
		x.r = new(Ring)
	}
	var burst, reset int64
	if kind == Bucket {
		burst = t.Int("burst", 1, 2*size)
		if _, _, err := Rate(size, window, burst); err != nil {
			burst = size
		}
	}
	if kind == Fixed && t.Bool("phase known") {
		reset = max(x.now+t.Int("reset", -3*window, 3*window), 1)
	}
	if err := x.m.Start(&x.d, x.r, x.now, size, burst, reset); err != nil {
		t.Fatalf("%v", err)
	}
	x.model = model{d: d, size: size, n: x.m.N, w: x.m.W}
	switch {
	case kind != Fixed:
	case guard == Off:
		x.model.lo, x.model.hi = reset+window, reset+window // not 0: known
	case reset != 0 && window >= 4*1_200_000 && window >= 2*d.Slack:
		x.model.lo, x.model.hi = reset-1_200_000, reset+1_200_000
	}
	return x
}

func (x *rig) advance(dt int64) {
	x.now += dt
	x.m.Advance(&x.d, x.r, x.now)
}

// placedUntil returns when a placed charge begins to come back at the latest.
func (x *rig) placedUntil(mark int64) int64 {
	if x.d.Kind == Bucket {
		return (mark/x.d.Slice + 1) * x.d.Slice
	}
	return mark
}

func (x *rig) take(amount int64, slow bool) *ticket {
	k := &ticket{granted: x.now, entry: &entry{amount: amount, most: amount, from: unbound, until: unbound, open: true}}
	k.Charge = x.m.Take(&x.d, x.r, x.now, amount, slow)
	switch {
	case x.d.Kind == Concurrency || x.d.Late:
	case x.d.Guard == Off:
		k.entry.from, k.entry.until = x.now, x.now
	case x.d.Guard == Auto && slow:
		k.entry.from = x.now + SlackOf(&x.d, x.r)
		k.entry.until = x.placedUntil(k.entry.from)
	}
	x.model.entries = append(x.model.entries, k.entry)
	x.live = append(x.live, k)
	return k
}

func (x *rig) bind(k *ticket) {
	x.m.Bind(&x.d, x.r, x.now, &k.Charge)
	k.entry.from = min(k.entry.from, x.now)
	k.entry.until = min(k.entry.until, x.now)
}

func (x *rig) spend(k *ticket) {
	if k.entry.from == unbound && x.d.Kind != Concurrency {
		switch bound := min(k.granted+SlackOf(&x.d, x.r), x.now+x.m.Brief(&x.d, x.r)); {
		case x.d.Guard == Off:
			k.entry.from, k.entry.until = x.now, x.now
		case x.d.Guard == Auto && x.now >= bound:
			k.entry.from, k.entry.until = bound, x.now
		case x.d.Guard == Auto:
			k.entry.from, k.entry.until = bound, x.placedUntil(bound)
		}
	}
	x.m.Spend(&x.d, x.r, x.now, k.granted, &k.Charge)
}

// shrink takes an amount out of the model: all of it by first principles; of a bucket's
// charge that has begun to drain at least what cannot have drained since its bound.
func (x *rig) shrink(k *ticket, amount int64) {
	e := k.entry
	back := amount
	if x.d.Kind == Bucket && e.until <= x.now {
		drained := amount
		if dt := x.now - e.from; dt < math.MaxInt64/x.m.N/2 {
			drained = min(amount, ceilDiv(dt*x.m.N, x.m.W))
		}
		back -= drained
	}
	if e.until == unbound || x.d.Kind == Bucket || x.now < e.until+3*x.d.Window {
		e.most -= back
	}
	e.amount -= amount
}

func (x *rig) settle(k *ticket, actual int64) {
	switch {
	case x.d.Kind == Concurrency:
	case actual < k.Amount:
		x.shrink(k, k.Amount-actual)
	case actual > k.Amount:
		more := &entry{amount: actual - k.Amount, most: actual - k.Amount, from: x.now, until: x.now}
		if k.entry.until > x.now {
			more.with = k.entry
		}
		x.model.entries = append(x.model.entries, more)
	}
	x.m.Settle(&x.d, x.r, x.now, &k.Charge, actual)
	k.settled = true
}

func (x *rig) refund(k *ticket) {
	if x.d.Kind != Concurrency || k.entry.open {
		x.shrink(k, k.Amount)
		k.entry.open = false
	}
	x.m.Refund(&x.d, x.r, x.now, &k.Charge)
	x.forget(k)
}

func (x *rig) release(k *ticket) {
	x.m.Release(&x.d, &k.Charge)
	k.entry.open = false
}

func (x *rig) forget(k *ticket) {
	x.live = slices.DeleteFunc(x.live, func(l *ticket) bool { return l == k })
}

// copy returns the meter and its ring as they are, to look ahead with.
func (x *rig) copy() (*Meter, *Ring) {
	m := x.m
	if x.r == nil {
		return &m, nil
	}
	r := *x.r
	return &m, &r
}

func (x *rig) check(t *tape.Tape) {
	used, least, most := x.m.Used(&x.d, x.r), x.model.least(x.now), x.model.most(x.now)
	if used < least {
		t.Fatalf("freed early: %d used, %d still stand", used, least)
	}
	if used > most {
		t.Fatalf("freed late: %d used, at most %d stand a slice earlier (exactly %d)", used, most, least)
	}
	checkSound(t, &x.d, &x.m, x.r)
}

func checkSound(t interface{ Fatalf(string, ...any) }, d *Def, m *Meter, r *Ring) {
	if m.Held < 0 || m.Level < 0 || m.Rem < 0 || m.Outside < 0 {
		t.Fatalf("negative: %+v", *m)
	}
	if d.Kind == Bucket && m.Level == 0 && m.Rem != 0 {
		t.Fatalf("an empty bucket has drained %d/%d ahead", m.Rem, m.W)
	}
	if r == nil {
		return
	}
	var sum int64
	for k, v := range r.slot {
		if v < 0 {
			t.Fatalf("slot %d holds %d", k, v)
		}
		sum += v
	}
	switch {
	case d.Kind == Bucket && (sum != r.Sum || sum > m.Held):
		t.Fatalf("slots hold %d, Sum is %d, Held %d", sum, r.Sum, m.Held)
	case m.slices(d) && sum != m.Level:
		t.Fatalf("slots hold %d, Level is %d", sum, m.Level)
	case m.isFixed(d) && sum != 0:
		t.Fatalf("slots of a window with known resets hold %d", sum)
	}
}

// step draws how much time passes: often until something is about to happen, or has
// just happened.
func (x *rig) step(t *tape.Tape) int64 {
	window := max(x.d.Window, 1000)
	return drawStep(t, &x.d, &x.m, x.r, x.now, window)
}

// drawStep draws how much time passes on a meter.
func drawStep(t *tape.Tape, d *Def, m *Meter, r *Ring, now, window int64) int64 {
	var buf [16]int64
	if t.Below(2) == 0 {
		edges := appendEdges(buf[:0], d, m, r, now)
		return max(edges[t.Below(len(edges))]-now+t.Int("off the edge", -2, 2), 0)
	}
	longest := append(buf[:0], 0, 3, 2*max(d.Slice, 1), 2*max(SlackOf(d, r), 1), window/8, window, 3*window)
	if m.N > 0 {
		longest = append(longest, 3*m.W/m.N, 10*m.W/m.N) // a few units
	}
	return t.Int("dt", 0, longest[t.Below(len(longest))])
}

// appendEdges appends the moments at which something is about to happen to a meter: a unit has
// drained, a slice ends, a window opens, lows are noted anew.
func appendEdges(list []int64, d *Def, m *Meter, r *Ring, now int64) []int64 {
	list = append(list, (now/stretch+1)*stretch)
	if n, w := m.rate(d); d.Kind == Bucket && n > 0 && m.Level > 0 {
		for k := range min(m.Level, 3) {
			list = append(list, m.Last+ceilDiv((k+1)*w-m.Rem, n))
		}
		list = append(list, m.Last+ceilDiv(m.Level*w-m.Rem, n))
	}
	if d.Slice > 0 {
		list = append(list, (now/d.Slice+1)*d.Slice)
	}
	if r != nil && r.Sum > 0 {
		list = append(list, (r.Tail+1)*d.Slice)
	}
	if r != nil && r.Due > now {
		list = append(list, r.Due)
	}
	if m.isFixed(d) {
		list = append(list, m.Last, m.Hi)
	}
	return list
}

// within calls f with a live ticket, if there is one.
func (x *rig) within(t *tape.Tape, f func(*ticket)) {
	if len(x.live) > 0 {
		f(x.live[t.Below(len(x.live))])
	}
}

// steps is what a trace does. Most of it is what can free room at the wrong time.
func (x *rig) steps(t *tape.Tape) []tape.Step {
	return []tape.Step{
		{Name: "advance", Weight: 2, Do: func() { x.advance(x.step(t)) }},
		{Name: "take", Weight: 5, Do: func() {
			slow := t.Bool("slow")
			for range t.Int("count", 1, 6) {
				room := x.m.Room(&x.d, x.r)
				if room < 1 {
					return
				}
				x.take(t.Int("cost", 1, room), slow)
			}
		}},
		{Name: "bind", Weight: 2, Do: func() { x.within(t, x.bind) }},
		{Name: "bind all", Weight: 2, Do: func() {
			for _, k := range x.live {
				x.bind(k)
			}
		}},
		{Name: "spend", Weight: 1, Do: func() { x.within(t, x.spend) }},
		{Name: "refund", Weight: 2, Do: func() {
			x.within(t, func(k *ticket) {
				if !k.settled {
					x.refund(k)
				}
			})
		}},
		{Name: "settle", Weight: 5, Do: func() {
			x.within(t, func(k *ticket) {
				if k.settled {
					return
				}
				most := 2 * k.Amount
				if x.d.Kind == Bucket && 8*x.m.Cap > maxExact/x.m.W || t.Below(3) > 0 {
					most = k.Amount // the level is held down to what can be counted
				}
				x.settle(k, t.Int("actual", 0, most))
			})
		}},
		{Name: "close", Weight: 1, Do: func() {
			x.within(t, func(k *ticket) {
				x.bind(k)
				x.release(k)
				x.forget(k)
			})
		}},
		{Name: "odd", Weight: 1, Do: func() { x.r.Odd(&x.d, x.now) }},
	}
}

// play plays a trace and calls after each step what is to hold.
func (x *rig) play(t *tape.Tape, after func()) { t.Steps(1, 40, after, x.steps(t)) }

// checked checks, lets time pass, and checks again.
func (x *rig) checked(t *tape.Tape) func() {
	return func() {
		x.check(t)
		x.advance(x.step(t))
		x.check(t)
	}
}

func TestMeterFreesNothingEarlyAndNothingMoreThanASliceLate(t *testing.T) {
	tape.Check(t, 20_000, func(t *tape.Tape) {
		x := newRig(t)
		x.play(t, x.checked(t))
	})
}

// busy plays a bucket that seldom runs empty: time passes by units, and charges are settled
// and cancelled while others stand on top of them.
func busy(t *tape.Tape, after func(x *rig)) {
	window := tape.Of[int64](t, "window", minute, 7_777_777, 61*second, 5*second)
	size := tape.Of[int64](t, "size", 5, 7, 80, 97)
	x := startRig(t, Bucket, tape.Of(t, "guard", Auto, Strict), window, 0, size)
	x.d.Late, x.model.d.Late = false, false
	unit := ceilDiv(x.m.W, x.m.N)
	pass := func() {
		if t.Below(3) == 0 {
			edges := appendEdges(nil, &x.d, &x.m, x.r, x.now)
			x.advance(max(edges[t.Below(len(edges))]-x.now+t.Int("off the edge", -2, 2), 0))
		} else {
			x.advance(t.Int("dt", 0, min(max(x.m.Level, 1), 5)*unit))
		}
	}
	fill := func() {
		if room := x.m.Room(&x.d, x.r); room > 0 {
			k := x.take(t.Int("cost", 1, room), t.Bool("slow"))
			if t.Below(3) > 0 {
				x.bind(k)
			}
		}
	}
	t.Steps(5, 40, func() { after(x); pass(); after(x) }, append(x.steps(t), tape.Step{Name: "fill", Weight: 12, Do: fill})[1:])
}

func TestBusyBucketFreesNothingEarly(t *testing.T) {
	tape.Check(t, 20_000, func(t *tape.Tape) { busy(t, func(x *rig) { x.check(t) }) })
}

func TestMeterIsIdleWhenAllIsClosedAndTimeHasPassed(t *testing.T) {
	tape.Check(t, 5000, func(t *tape.Tape) {
		x := newRig(t)
		x.play(t, x.checked(t))
		for _, k := range x.live {
			x.bind(k)
			x.release(k)
		}
		x.advance(3*x.d.Window + 2*hour + 3*x.d.Most)
		if x.d.Kind == Bucket {
			x.advance(x.m.Level*x.m.W/x.m.N + 1)
		}
		x.check(t)
		if used := x.m.Used(&x.d, x.r); used != 0 || !x.m.Idle() || x.m.Held != 0 || x.m.Rem != 0 {
			t.Fatalf("%d used when all was over: %+v", used, x.m)
		}
		if x.r != nil && x.r.slot != [slots]int64{} {
			t.Fatalf("slots are left: %v", x.r.slot)
		}
	})
}

func TestIdleMeterHasNothingLeftToLose(t *testing.T) {
	tape.Check(t, 5000, func(t *tape.Tape) {
		x := newRig(t)
		check := x.checked(t)
		x.play(t, func() {
			check()
			if used := x.model.least(x.now); x.m.Idle() && used > 0 {
				t.Fatalf("idle while %d stand", used)
			}
		})
	})
}

func TestReadyAtIsTheFirstMomentAtWhichTheNeedFits(t *testing.T) {
	tape.Check(t, 5000, func(t *tape.Tape) {
		x := newRig(t)
		x.play(t, func() {
			x.advance(x.step(t))
			need := t.Int("need", 1, x.m.Cap)
			at := x.m.ReadyAt(&x.d, x.r, x.now, need)
			fits := func(at int64) bool {
				m, r := x.copy()
				m.Advance(&x.d, r, at)
				return m.Room(&x.d, r) >= need
			}
			switch {
			case at == Never:
				if far := x.now + 100*hour + 100*x.d.Window + 100*x.d.Most; fits(far) {
					t.Fatalf("need %d fits in the end, ReadyAt says never", need)
				}
			case at < x.now:
				t.Fatalf("ready %d before now", x.now-at)
			case !fits(at):
				t.Fatalf("need %d does not fit at ReadyAt, %d from now", need, at-x.now)
			case at > x.now && fits(at-1):
				t.Fatalf("need %d fits before ReadyAt, %d from now", need, at-x.now)
			}
			// In two steps as in one.
			if at != Never && at > x.now {
				m, r := x.copy()
				m.Advance(&x.d, r, x.now+(at-x.now)/2)
				if again := m.ReadyAt(&x.d, r, x.now+(at-x.now)/2, need); again != at {
					t.Fatalf("half way there ReadyAt moved by %d", again-at)
				}
			}
		})
	})
}

func TestRefundRightAfterTakeRestoresTheMeter(t *testing.T) {
	tape.Check(t, 5000, func(t *tape.Tape) {
		x := newRig(t)
		x.play(t, func() {
			x.advance(x.step(t))
			room := x.m.Room(&x.d, x.r)
			if room < 1 {
				return
			}
			m, r := x.copy()
			c := m.Take(&x.d, r, x.now, t.Int("cost", 1, room), t.Bool("slow"))
			m.Refund(&x.d, r, x.now, &c)
			if r != nil && r.Sum == 0 {
				r.Tail = x.r.Tail // of an empty bucket's ring: anywhere
			}
			if *m != x.m || r != nil && *r != *x.r {
				t.Fatalf("left %+v, was %+v", *m, x.m)
			}
		})
	})
}

func TestAdvancingInStepsIsAdvancingAtOnce(t *testing.T) {
	tape.Check(t, 5000, func(t *tape.Tape) {
		x := newRig(t)
		x.play(t, func() {
			once, r := x.copy()
			for range t.Int("times", 1, 5) {
				x.advance(x.step(t))
			}
			once.Advance(&x.d, r, x.now)
			if *once != x.m {
				t.Fatalf("at once %+v, in steps %+v", *once, x.m)
			}
			if x.r != nil && r.slot != x.r.slot {
				t.Fatalf("slots differ")
			}
		})
	})
}
