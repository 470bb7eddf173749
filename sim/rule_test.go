package sim_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

type arrived struct {
	at   store.Time
	cost int64
}

// trace draws arrivals in the order of time, dense enough for limits to bind.
func trace(t *rapid.T, window time.Duration, maxCost int64) []arrived {
	gap := rapid.Int64Range(0, window.Microseconds()/4)
	at := sim.Epoch
	var all []arrived
	for range rapid.IntRange(1, 80).Draw(t, "arrivals") {
		at += store.Time(gap.Draw(t, "gap"))
		all = append(all, arrived{at, rapid.Int64Range(1, maxCost).Draw(t, "cost")})
	}
	return all
}

// judge lets the trace arrive and compares every decision with that of fits, which sees everything that was admitted
// before.
func judge(t *rapid.T, rule sim.Rule, all []arrived, fits func(before []arrived, a arrived) bool) {
	var admitted []arrived
	for _, a := range all {
		want := fits(admitted, a)
		earliest := rule.Earliest(a.at, a.cost)
		if got := sim.Admit(rule, a.at, a.cost); got != want {
			t.Fatalf("arrival %+v after %v: admitted %v, want %v", a, admitted, got, want)
		}
		if want {
			admitted = append(admitted, a)
			continue
		}
		// The returned time is the earliest.
		if !fits(admitted, arrived{earliest, a.cost}) || fits(admitted, arrived{earliest - 1, a.cost}) {
			t.Fatalf("arrival %+v after %v: earliest %d is not the first moment", a, admitted, earliest)
		}
	}
}

func TestRollingAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(t, "n")
		window := time.Duration(rapid.Int64Range(4, 1_000_000).Draw(t, "window")) * time.Microsecond
		w := store.Time(window.Microseconds())
		judge(t, sim.NewRolling(n, window), trace(t, window, n), func(before []arrived, a arrived) bool {
			sum := a.cost
			for _, b := range before {
				if b.at > a.at-w {
					sum += b.cost
				}
			}
			return sum <= n
		})
	})
}

func TestFixedAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 20).Draw(t, "n")
		window := time.Duration(rapid.Int64Range(4, 1_000_000).Draw(t, "window")) * time.Microsecond
		w := store.Time(window.Microseconds())
		first := sim.Epoch + store.Time(rapid.Int64Range(-5_000_000, 5_000_000).Draw(t, "first"))
		judge(t, sim.NewFixed(n, window, first), trace(t, window, n), func(before []arrived, a arrived) bool {
			// The last reset at or before the arrival, found one window at a time.
			reset := first
			for reset > a.at {
				reset -= w
			}
			for reset+w <= a.at {
				reset += w
			}
			sum := a.cost
			for _, b := range before {
				if b.at >= reset {
					sum += b.cost
				}
			}
			return sum <= n
		})
	})
}

func TestBucketAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int64Range(1, 20).Draw(t, "capacity")
		n := rapid.Int64Range(1, 50).Draw(t, "n")
		window := time.Duration(rapid.Int64Range(4, 1_000_000).Draw(t, "window")) * time.Microsecond
		perMicro := big.NewRat(n, window.Microseconds())
		judge(t, sim.NewBucket(capacity, n, window), trace(t, window, capacity), func(before []arrived, a arrived) bool {
			level, at := new(big.Rat), sim.Epoch
			drain := func(to store.Time) {
				level.Sub(level, new(big.Rat).Mul(perMicro, big.NewRat(int64(to-at), 1)))
				if level.Sign() < 0 {
					level.SetInt64(0)
				}
				at = to
			}
			for _, b := range before {
				drain(b.at)
				level.Add(level, big.NewRat(b.cost, 1))
			}
			drain(a.at)
			return level.Add(level, big.NewRat(a.cost, 1)).Cmp(big.NewRat(capacity, 1)) <= 0
		})
	})
}

func TestConcurrency(t *testing.T) {
	c := sim.NewConcurrency(2)
	at := sim.Epoch
	for i, want := range []bool{true, true, false} {
		if got := sim.Admit(c, at, 1); got != want {
			t.Fatalf("request %d of two places: admitted %v", i+1, got)
		}
	}
	if got := c.Earliest(at, 1); got != sim.Never {
		t.Fatalf("earliest %d while all places are taken", got)
	}
	c.Done(at, 1)
	if !sim.Admit(c, at, 1) {
		t.Fatal("a place that was freed is not given out")
	}
}

func TestCostAboveCapacityIsNeverAdmitted(t *testing.T) {
	for _, r := range []sim.Rule{
		sim.NewBucket(10, 50, time.Minute), sim.NewRolling(10, time.Minute),
		sim.NewFixed(10, time.Minute, sim.Epoch), sim.NewConcurrency(10),
	} {
		if got := r.Earliest(sim.Epoch, 11); got != sim.Never {
			t.Errorf("%T: cost above capacity admitted at %d", r, got)
		}
	}
}

func TestGivenBackEstimateDoesNotOpenTheWindowTooFar(t *testing.T) {
	r := sim.NewRolling(10, time.Minute)
	r.Take(sim.Epoch, 10)
	r.Take(sim.Epoch.Add(time.Second), -4)
	if got := r.Earliest(sim.Epoch.Add(2*time.Second), 5); got != sim.Epoch.Add(time.Minute) {
		t.Fatalf("5 of the remaining 4 admitted at %v", got.Sub(sim.Epoch))
	}
	// When the first charge ends, its correction must end too.
	if sim.Admit(r, sim.Epoch.Add(time.Minute), 11) {
		t.Fatal("admitted more than the window's size")
	}
	if !sim.Admit(r, sim.Epoch.Add(time.Minute), 10) {
		t.Fatal("an empty window admits its size")
	}
}
