package replica

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
)

const (
	ms  = 1_000
	sec = 1_000_000
)

// A moment is an entry of a machine: the true times when its clock was read and when it reached the engine.
type moment struct {
	machine  uint64
	read, at int64
}

// reality is what a pool's clock cannot see.
type reality struct {
	steps   []step           // of the engine's clock
	engine  int64            // drift of the engine's clock, in thousandths
	drift   map[uint64]int64 // of the machines' clocks
	asleep  map[uint64]span  // when a machine's clock stood still
	moments []moment
}

type step struct{ at, by int64 }

type span struct{ from, to int64 }

const began = 1_700_000_000 * sec

func (w *reality) stamp(t int64) store.Time {
	e := began + t + t*w.engine/1000
	for _, s := range w.steps {
		if t >= s.at {
			e += s.by
		}
	}
	return store.Time(e)
}

func (w *reality) reading(machine uint64, t int64) int64 {
	s := w.asleep[machine]
	awake := t - max(min(t, s.to)-s.from, 0)
	return int64(machine)*77*sec + awake + awake*w.drift[machine]/1000
}

// run returns the pool's time at each moment, and whether the machine was known there.
func (w *reality) run() (times []int64, able []bool) {
	slices.SortStableFunc(w.moments, func(a, b moment) int { return int(a.at - b.at) })
	var c clock
	watched := slices.ContainsFunc(w.moments, func(m moment) bool { return m.machine != w.moments[0].machine })
	for _, m := range w.moments {
		k, known := c.search(m.machine)
		able = append(able, known && c.machines[k].count == agreeing)
		times = append(times, int64(c.advance(w.stamp(m.at), m.machine, w.reading(m.machine, m.read), watched)))
	}
	return times, able
}

// early returns the most that a window can be too short. One begins where a process writes that it has an answer: at the
// reading of its entry, as time goes for the provider, and at the time of the entry for the pool. It ends when another
// entry lets somebody go: when that has arrived, and at its time. The clocks of machines gain drift thousandths at most.
// What happens in the first moments does not count.
func (w *reality) early(times []int64, from, drift int64) (most int64) {
	least := int64(1) << 62
	for i, m := range w.moments {
		if m.at < from {
			continue
		}
		least = min(least, times[i]-m.read-m.read*drift/1000)
		most = max(most, times[i]-m.at-m.at*drift/1000-least)
	}
	return most
}

func drawReality(t *rapid.T, machines int, lateness ...int) *reality {
	w := &reality{drift: map[uint64]int64{}, asleep: map[uint64]span{}}
	length := rapid.Int64Range(40*sec, 300*sec).Draw(t, "length")
	for m := range uint64(rapid.IntRange(1, machines).Draw(t, "machines")) {
		every := rapid.SampledFrom([]int64{10 * ms, 100 * ms, sec, 3 * sec}).Draw(t, "every")
		slow := rapid.SampledFrom(lateness).Draw(t, "slow") // percent of entries that are late
		at := int64(0)
		for at < length {
			read := at
			at += rapid.Int64Range(0, 3*ms).Draw(t, "delay")
			if rapid.IntRange(1, 100).Draw(t, "late") <= slow {
				at += rapid.Int64Range(0, 3*sec).Draw(t, "lateness")
			}
			w.moments = append(w.moments, moment{m + 1, read, at})
			at += rapid.Int64Range(every/2, every).Draw(t, "pause")
			if every == 10*ms && at > 45*sec && at < 60*sec {
				every = sec
			}
		}
	}
	return w
}

var sizes = []int64{100 * ms, 300 * ms, sec, 5 * sec, 60 * sec, 3600 * sec, -100 * ms, -sec, -5 * sec, -3600 * sec}

// drawSteps returns steps that are so far apart that each machine shows itself between them.
func drawSteps(t *rapid.T) (steps []step) {
	for n := range rapid.Int64Range(0, 8).Draw(t, "steps") {
		at := (40 + 20*n) * sec
		steps = append(steps, step{rapid.Int64Range(at, at+5*sec).Draw(t, "when"), rapid.SampledFrom(sizes).Draw(t, "by")})
	}
	return steps
}

func drawQuickSteps(t *rapid.T) (steps []step) {
	for range rapid.IntRange(0, 10).Draw(t, "steps") {
		steps = append(steps, step{rapid.Int64Range(40*sec, 80*sec).Draw(t, "when"), rapid.SampledFrom(sizes).Draw(t, "by")})
	}
	return steps
}

// warm is when all machines of a reality are known.
const warm = 35 * sec

// One machine's word is exact: whatever the engine's clock does, no window is shorter than it should be by more than the
// delay of the fastest entry so far was longer than that of the fastest one of all.
func TestNoWindowOfOneMachineIsShort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawReality(rt, 1, 0, 0, 5, 30)
		w.steps = drawQuickSteps(rt)
		w.engine = rapid.Int64Range(-10, 10).Draw(rt, "engine")
		if most := w.early(w.times(rt), warm, 0); most > w.faster(warm) {
			rt.Fatalf("early by %d us, fastest entries by %d", most, w.faster(warm))
		}
	})
}

// faster returns by how much the fastest entry of a machine until then was slower than its fastest one of all.
func (w *reality) faster(then int64) (most int64) {
	until, ever := map[uint64]int64{}, map[uint64]int64{}
	note := func(least map[uint64]int64, m moment) {
		if l, ok := least[m.machine]; !ok || m.at-m.read < l {
			least[m.machine] = m.at - m.read
		}
	}
	for _, m := range w.moments {
		if note(ever, m); m.at < then {
			note(until, m)
		}
	}
	for id, l := range until {
		most = max(most, l-ever[id])
	}
	return most
}

// Several machines differ by their clocks, here by up to 0.1%, and by the delays of their fastest entries. A step, which a
// machine may be the first to see after 3 s, lets in a few milliseconds of that.
func TestAStepShortensNoWindowOfAFleet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawFleet(rt)
		w.steps = drawSteps(rt)
		if most := w.early(w.times(rt), warm, 2); most > 30*ms {
			rt.Fatalf("early by %d us", most)
		}
	})
}

// While the engine's clock drifts, it is no measure of how far machines are apart.
func TestDriftShortensNoWindowOfAFleet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawFleet(rt)
		w.engine = rapid.Int64Range(-10, 10).Draw(rt, "engine")
		if most := w.early(w.times(rt), warm, 2); most > 120*ms {
			rt.Fatalf("early by %d us", most)
		}
	})
}

// Without any step windows are exact, but for the drift of the machines.
func TestWindowsAreExactWithoutSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawFleet(rt)
		if most := w.early(w.times(rt), warm, 1); most > 0 {
			rt.Fatalf("early by %d us", most)
		}
	})
}

func TestNobodyIsHeldForLongerThanTheStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawReality(rt, 4, 0, 0, 5)
		w.steps = drawSteps(rt)
		allowed := int64(10 * ms) // for delays
		for _, s := range w.steps {
			allowed += min(max(-s.by, 0), 6*sec) // what passes between two entries
		}
		times := w.times(rt)
		first, last := w.moments[0], w.moments[len(times)-1]
		if held := last.read - first.at - (times[len(times)-1] - times[0]); held > allowed {
			rt.Fatalf("held for %d us, allowed are %d", held, allowed)
		}
	})
}

func drawFleet(t *rapid.T) *reality {
	w := drawReality(t, 4, 0, 0, 0, 5)
	for m := range uint64(4) {
		w.drift[m+1] = rapid.Int64Range(0, 1).Draw(t, "drift")
	}
	return w
}

// times is run for those who only want the times. They do not go back.
func (w *reality) times(t *rapid.T) []int64 {
	times, _ := w.run()
	if !slices.IsSorted(times) {
		t.Fatal("time went back")
	}
	return times
}

// Without steps the pool's time at an entry is the engine's between the reading and the arrival.
func TestTimeFollowsStamps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawReality(rt, 4, 0, 0, 5)
		w.engine = rapid.Int64Range(-10, 10).Draw(rt, "engine")
		for m := range uint64(4) {
			w.drift[m+1] = w.engine
		}
		times, able := w.run()
		for i, m := range w.moments {
			if able[i] && (times[i] < int64(w.stamp(m.read))-2 || times[i] > int64(w.stamp(m.at))) { // 2 for rounding
				rt.Fatalf("%+v is %d off", m, times[i]-int64(w.stamp(m.at)))
			}
		}
	})
}

// After steps, delays and sleep, time goes on as fast as it should.
func TestTimeGoesOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawReality(rt, 4, 0, 0, 5, 30)
		w.steps = drawQuickSteps(rt)
		for m := range uint64(4) {
			w.drift[m+1] = rapid.Int64Range(-9, 9).Draw(rt, "drift")
			if rapid.IntRange(0, 9).Draw(rt, "sleeps") == 0 {
				from := rapid.Int64Range(0, 200*sec).Draw(rt, "from")
				w.asleep[m+1] = span{from, from + rapid.Int64Range(0, 300*sec).Draw(rt, "asleep")}
			}
		}
		const calm, settled, end = 700 * sec, 720 * sec, 800 * sec
		for m := range uint64(rapid.IntRange(1, 3).Draw(rt, "later")) {
			for at := int64(calm); at < end; at += 100*ms + int64(m) {
				w.moments = append(w.moments, moment{m + 1, at, at + ms})
			}
		}
		times, _ := w.run()
		first := -1
		for i, m := range w.moments {
			if m.at < settled {
				continue
			}
			if first < 0 {
				first = i
			}
			true := m.at - w.moments[first].at
			if passed := times[i] - times[first]; passed < true-true*12/1000-200*ms || passed > true+true*20/1000+200*ms {
				rt.Fatalf("%d us passed in %d", passed, true)
			}
		}
	})
}

// watch is a clock with a machine that was there for a while, and has shown itself each second.
func watch() (c clock, last int64) {
	for at := int64(0); at < 20*sec; at += sec {
		c.advance(store.Time(began+at), 1, at, true)
		last = at
	}
	return c, last
}

func TestAnHourIsNotBelievedOnANewcomersWord(t *testing.T) {
	t.Parallel()
	c, at := watch()
	const hour = 3600 * sec
	for n := range int64(5) { // the engine's clock was set, and five machines come one after the other
		at += 100 * ms
		if now := c.advance(store.Time(began+at+hour), uint64(n+2), 5, true); int64(now) > began+at+mostGap {
			t.Fatalf("newcomer %d: %d us ahead", n, int64(now)-began-at)
		}
	}
	at += sec
	if now := c.advance(store.Time(began+at+hour), 1, at, true); int64(now) > began+at+mostGap {
		t.Fatalf("%d us ahead", int64(now)-began-at)
	}
	for range 60 { // the witness has denied it for good
		at += sec
		c.advance(store.Time(began+at+hour), 2, 5+at, true)
	}
	if ahead := c.now - began - at; ahead > mostGap+sec {
		t.Errorf("%d us ahead after a minute", ahead)
	}
}

func TestALongGapIsConfirmedByAnOlderMachine(t *testing.T) {
	t.Parallel()
	c, at := watch()
	at += 3600 * sec // it really passed
	c.advance(store.Time(began+at), 2, 5, true)
	c.advance(store.Time(began+at+sec), 1, at+sec, true)
	if c.now != began+at+sec {
		t.Errorf("%d us off", c.now-began-at-sec)
	}
	if now := c.advance(store.Time(began+at+2*sec), 2, 5+2*sec, true); int64(now) != began+at+2*sec {
		t.Errorf("%d us off for the newcomer", int64(now)-began-at-2*sec)
	}
}

func TestALongGapIsBelievedIfNobodyIsAlive(t *testing.T) {
	t.Parallel()
	c, at := watch()
	at += 3600 * sec
	for range 12 {
		c.advance(store.Time(began+at), 2, 5+at, true)
		at += sec
	}
	if at -= sec; c.now != began+at {
		t.Errorf("%d us off", c.now-began-at)
	}
	at += 24 * 3600 * sec
	if now := c.advance(store.Time(began+at), 3, 7, false); int64(now) != began+at {
		t.Errorf("alone: %d us off", int64(now)-began-at)
	}
}

func TestALongGapIsConfirmedByAMachineWithFewEntries(t *testing.T) {
	t.Parallel()
	var c clock
	for at, step := range []int64{0, 1, sec, 3600 * sec, 3601 * sec} {
		if now := c.advance(store.Time(began+step), uint64(at%2+1), step/ms*ms, true); int64(now) != began+step {
			t.Errorf("%d us off", int64(now)-began-step)
		}
	}
}
