package sim

import (
	"testing"
	"time"
)

// bar is what sluice must reach. If the cost of calls is unknown in advance, the number of refusals and the makespan
// depend on chance.
type bar struct {
	utilization float64
	statistical bool
}

var bars = map[string]bar{"research": {utilization: 0.90, statistical: true}}

// The gate gets no refusals, wastes no quota and starves no class. That holds for every scenario with the same defaults
// and several seeds.
func TestSluiceMeetsItsBar(t *testing.T) {
	for _, sc := range Builtin() {
		if sc.Name == "squad" || sc.Name == "subscription" || sc.Name == "scale" {
			continue // TestSquadLetsALateP0ThroughAtOnce, TestAWeekOfASubscriptionLasts and TestScale check this and more
		}
		t.Run(sc.Name, func(t *testing.T) {
			bar, special := bars[sc.Name]
			if !special {
				bar.utilization = 0.98
			}
			for seed := uint64(1); seed <= 5; seed++ {
				f := alone(t, sc, LightTail, seed)
				t.Logf("seed %d: %+v", seed, f)
				t.Logf("heavy tail: %+v", alone(t, sc, HeavyTail, seed))
				if f.Throttled != 0 && !bar.statistical {
					t.Errorf("seed %d: %d refused", seed, f.Throttled)
				}
				if f.Utilization < bar.utilization {
					t.Errorf("seed %d: %.4f of the quota used", seed, f.Utilization)
				}
				if f.Makespan > 1.03*f.Ideal && !bar.statistical {
					t.Errorf("seed %d: took %.1f s, ideal %.1f", seed, f.Makespan, f.Ideal)
				}
				if len(f.Starved) > 0 {
					t.Errorf("seed %d: starved %v", seed, f.Starved)
				}
				if f.Finished != f.Calls || f.JobsFinished != f.Jobs {
					t.Errorf("seed %d: finished %d of %d calls, %d of %d jobs", seed, f.Finished, f.Calls, f.JobsFinished, f.Jobs)
				}
			}
		})
	}
}

// alone runs only the sluice strategy.
func alone(t *testing.T, sc *Scenario, net Delay, seed uint64) Figures {
	t.Helper()
	r, err := simulate(sc, newSluice, net, seed)
	if err != nil {
		t.Fatal(err)
	}
	return figures("sluice", r, newIdeal(sc, net, seed, nil), seed, nil)
}

// Counting grants by their own time is not enough, even in one perfect shared queue, because the network pushes sends
// together. If the provider accepted all of them, the scenarios would prove nothing about the guard.
func TestCountingByGrantTimeIsRefused(t *testing.T) {
	sc, err := Load("five-pipelines")
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate(sc, func(r *desk) strategy { return newLimiter(r, sc.Limits) }, LightTail, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.tally.throttled < sc.calls()/100 {
		t.Errorf("only %d of %d calls were refused", r.tally.throttled, sc.calls())
	}
}

// Other users of the same key take part of the quota, for the oracle as for the fleet.
func TestOutsideUseIsSeenByTheOracleToo(t *testing.T) {
	sc, err := Load("overnight")
	if err != nil {
		t.Fatal(err)
	}
	alone := newIdeal(sc, LightTail, 1, nil).span.seconds()
	sc.Outside = Rate{N: 25, Window: time.Minute}
	shared := newIdeal(sc, LightTail, 1, nil).span.seconds()
	if shared < 1.5*alone {
		t.Errorf("with half the quota used by others the ideal is %.0f s, without %.0f s", shared, alone)
	}
}

// The same with a limit on input: the gate gets back what it charged too much, although the bucket drains all the time.
func TestResearchBoundByInput(t *testing.T) {
	sc, err := Load("research")
	if err != nil {
		t.Fatal(err)
	}
	for i := range sc.Limits {
		switch l := &sc.Limits[i]; l.Unit {
		case InputTokens:
			l.Size, l.Burst = 30_000, 30_000
		case OutputTokens:
			l.Size, l.Burst = 40_000, 40_000
		}
	}
	for seed := uint64(1); seed <= 3; seed++ {
		f := alone(t, sc, LightTail, seed)
		t.Logf("seed %d: %d refused, %.4f of the quota used", seed, f.Throttled, f.Utilization)
		if f.Utilization < 0.95 || f.Finished != f.Calls {
			t.Errorf("seed %d: %.4f of the quota used, finished %d of %d", seed, f.Utilization, f.Finished, f.Calls)
		}
	}
}

// simulate runs the scenario under the strategy that make returns.
func simulate(sc *Scenario, make func(*desk) strategy, net Delay, seed uint64) (*run, error) {
	r := newRun(sc, make, net, seed)
	return r, r.finishAll()
}
