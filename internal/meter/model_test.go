package meter

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
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

// windows are the lengths that are tried; anything between comes by chance.
var windows = []int64{1000, 20_000, second, 4 * second, minute, hour, day}

func newRig(t *rapid.T) *rig {
	kind := rapid.SampledFrom([]Kind{Bucket, Rolling, Fixed, Concurrency}).Draw(t, "kind")
	guard := rapid.SampledFrom([]Guard{Auto, Strict, Off}).Draw(t, "guard")
	window := rapid.OneOf(rapid.SampledFrom(windows), rapid.Int64Range(1000, day)).Draw(t, "window")
	slack := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, hour), rapid.Int64Range(1, second)).Draw(t, "slack")
	d, err := Compile(kind, guard, time.Duration(window)*time.Microsecond, time.Duration(slack)*time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	d.Late = rapid.Bool().Draw(t, "late")
	size := rapid.OneOf(rapid.SampledFrom([]int64{5, 80, 100, 5000, 2_000_000}), rapid.Int64Range(5, 2_000_000)).Draw(t, "size")
	x := &rig{d: d, now: rapid.OneOf(rapid.Int64Range(1, day), rapid.Just(int64(1_700_000_000_000_000))).Draw(t, "start")}
	if d.NeedsRing() {
		x.r = new(Ring)
	}
	var burst, reset int64
	if kind == Bucket {
		burst = rapid.Int64Range(1, 2*size).Draw(t, "burst")
		if _, _, err := Rate(size, window, burst); err != nil {
			burst = size
		}
	}
	if kind == Fixed && rapid.Bool().Draw(t, "phase known") {
		reset = max(x.now+rapid.Int64Range(-3*window, 3*window).Draw(t, "reset"), 1)
	}
	if err := x.m.Start(&x.d, x.r, x.now, size, burst, reset); err != nil {
		t.Fatal(err)
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
		switch bound := k.granted + SlackOf(&x.d, x.r); {
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

func (x *rig) check(t *rapid.T) {
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

// step draws how much time passes.
func (x *rig) step(t *rapid.T) int64 {
	window := max(x.d.Window, 1000)
	longest := []int64{0, 3, 2 * max(x.d.Slice, 1), 2 * max(SlackOf(&x.d, x.r), 1), window / 8, window, 3 * window}
	if x.d.Kind == Bucket {
		longest = append(longest, 3*x.m.W/x.m.N, 3*x.m.W/x.m.N) // a few units
	}
	return rapid.Int64Range(0, rapid.SampledFrom(longest).Draw(t, "scale")).Draw(t, "dt")
}

// within calls f with a live ticket, if there is one.
func (x *rig) within(t *rapid.T, f func(*ticket)) {
	if len(x.live) > 0 {
		f(rapid.SampledFrom(x.live).Draw(t, "ticket"))
	}
}

func (x *rig) actions() map[string]func(*rapid.T) {
	take := func(t *rapid.T) {
		slow := rapid.Bool().Draw(t, "slow")
		for range rapid.IntRange(1, 6).Draw(t, "count") {
			room := x.m.Room(&x.d, x.r)
			if room < 1 {
				return
			}
			cost := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, room)).Draw(t, "cost")
			x.take(cost, slow)
		}
	}
	return map[string]func(*rapid.T){
		"take":       take,
		"take again": take,
		"bind":       func(t *rapid.T) { x.within(t, x.bind) },
		"bind all": func(*rapid.T) {
			for _, k := range x.live {
				x.bind(k)
			}
		},
		"spend": func(t *rapid.T) { x.within(t, x.spend) },
		"refund": func(t *rapid.T) {
			x.within(t, func(k *ticket) {
				if !k.settled {
					x.refund(k)
				}
			})
		},
		"settle": func(t *rapid.T) {
			x.within(t, func(k *ticket) {
				if k.settled {
					return
				}
				most := 2 * k.Amount
				if x.d.Kind == Bucket && 8*x.m.Cap > maxExact/x.m.W {
					most = k.Amount // the level is held down to what can be counted
				}
				x.settle(k, rapid.Int64Range(0, most).Draw(t, "actual"))
			})
		},
		"close": func(t *rapid.T) {
			x.within(t, func(k *ticket) {
				x.bind(k)
				x.release(k)
				x.forget(k)
			})
		},
		"odd":     func(*rapid.T) { x.r.Odd(&x.d, x.now) },
		"advance": func(t *rapid.T) { x.advance(x.step(t)) },
		"": func(t *rapid.T) {
			x.check(t)
			x.advance(x.step(t))
			x.check(t)
		},
	}
}

func TestMeterFreesNothingEarlyAndNothingMoreThanASliceLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		t.Repeat(x.actions())
	})
}

func TestMeterIsIdleWhenAllIsClosedAndTimeHasPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		t.Repeat(x.actions())
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
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		actions := x.actions()
		check := actions[""]
		actions[""] = func(t *rapid.T) {
			check(t)
			if used := x.model.least(x.now); x.m.Idle() && used > 0 {
				t.Fatalf("idle while %d stand", used)
			}
		}
		t.Repeat(actions)
	})
}

func TestReadyAtIsTheFirstMomentAtWhichTheNeedFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		actions := x.actions()
		actions[""] = func(t *rapid.T) {
			x.advance(x.step(t))
			need := rapid.Int64Range(1, x.m.Cap).Draw(t, "need")
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
		}
		t.Repeat(actions)
	})
}

func TestRefundRightAfterTakeRestoresTheMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		actions := x.actions()
		actions[""] = func(t *rapid.T) {
			x.advance(x.step(t))
			room := x.m.Room(&x.d, x.r)
			if room < 1 {
				return
			}
			m, r := x.copy()
			c := m.Take(&x.d, r, x.now, rapid.Int64Range(1, room).Draw(t, "cost"), rapid.Bool().Draw(t, "slow"))
			m.Refund(&x.d, r, x.now, &c)
			if r != nil && r.Sum == 0 {
				r.Tail = x.r.Tail // of an empty bucket's ring: anywhere
			}
			if *m != x.m || r != nil && *r != *x.r {
				t.Fatalf("left %+v, was %+v", *m, x.m)
			}
		}
		t.Repeat(actions)
	})
}

func TestAdvancingInStepsIsAdvancingAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newRig(t)
		actions := x.actions()
		actions[""] = func(t *rapid.T) {
			once, r := x.copy()
			for range rapid.IntRange(1, 5).Draw(t, "steps") {
				x.advance(x.step(t))
			}
			once.Advance(&x.d, r, x.now)
			if *once != x.m {
				t.Fatalf("at once %+v, in steps %+v", *once, x.m)
			}
			if x.r != nil && r.slot != x.r.slot {
				t.Fatalf("slots differ")
			}
		}
		t.Repeat(actions)
	})
}
