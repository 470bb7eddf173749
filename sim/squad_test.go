package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// only returns the scenario with only the agents of these classes.
func only(sc *Scenario, classes ...int) *Scenario {
	some := *sc
	some.Fleet = nil
	for _, a := range sc.Fleet {
		if slices.Contains(classes, a.Class) {
			some.Fleet = append(some.Fleet, a)
		}
	}
	return &some
}

// A p0 that comes when others have used the quota for an hour is as fast as if it were alone. Almost no quota is lost
// for that.
func TestSquadLetsALateP0ThroughAtOnce(t *testing.T) {
	sc, err := Load("squad")
	if err != nil {
		t.Fatal(err)
	}
	for _, net := range []Delay{LightTail, HeavyTail} {
		for seed := uint64(1); seed <= 5; seed++ {
			f := alone(t, sc, net, seed)
			p0 := f.Classes[0]
			itself := newIdeal(only(sc, 0), net, seed, nil).span.seconds()
			t.Logf("sigma %.1f, seed %d: %d refused, %.4f used, p0 took %.1f s, ideal %.1f, with the provider to itself %.1f",
				net.Sigma, seed, f.Throttled, f.Utilization, p0.Makespan, p0.Ideal, itself)
			if f.Throttled != 0 || len(f.Starved) > 0 || f.Finished != f.Calls {
				t.Errorf("sigma %.1f, seed %d: %d refused, starved %v, finished %d of %d", net.Sigma, seed, f.Throttled, f.Starved, f.Finished, f.Calls)
			}
			if f.Makespan > 1.03*f.Ideal {
				t.Errorf("sigma %.1f, seed %d: took %.0f s in all, ideal %.0f", net.Sigma, seed, f.Makespan, f.Ideal)
			}
			if f.Utilization < 0.98 {
				t.Errorf("sigma %.1f, seed %d: %.4f of the whole hours used", net.Sigma, seed, f.Utilization)
			}
			if p0.Makespan > 1.03*p0.Ideal || p0.Makespan > 1.03*itself {
				t.Errorf("sigma %.1f, seed %d: p0 took %.1f s, ideal %.1f, with the provider to itself %.1f",
					net.Sigma, seed, p0.Makespan, p0.Ideal, itself)
			}
		}
	}
}

// Without the floors for lower classes, the p0 would find the hour's quota used up.
func TestSquadNeedsTheFloors(t *testing.T) {
	sc, err := Load("squad")
	if err != nil {
		t.Fatal(err)
	}
	bare := func(d *desk) strategy {
		sp := spec(sc)
		sp.Light, sp.Breaker, sp.Shares = store.Light{}, store.Breaker{}, false
		return openSluice(d, sp)
	}
	r, err := simulate(sc, bare, LightTail, 1)
	if err != nil {
		t.Fatal(err)
	}
	if took := r.tally.classes[0].span.seconds(); took < 40*60 {
		t.Errorf("without light, breaker and shares the p0 took only %.0f s", took)
	}
}

// Without a p0, no quota is kept for it and lost at the reset.
func TestSquadWithoutP0UsesEachHour(t *testing.T) {
	sc, err := Load("squad")
	if err != nil {
		t.Fatal(err)
	}
	sc = only(sc, 1, 2)
	for i := range sc.Fleet {
		sc.Fleet[i].Calls += 100 // what the p0 would have used in three hours, and a little more
	}
	for _, net := range []Delay{LightTail, HeavyTail} {
		for seed := uint64(1); seed <= 5; seed++ {
			r, err := simulate(sc, newSluice, net, seed)
			if err != nil {
				t.Fatal(err)
			}
			if r.tally.throttled != 0 || r.tally.done != sc.calls() {
				t.Errorf("sigma %.1f, seed %d: %d refused, %d of %d done", net.Sigma, seed, r.tally.throttled, r.tally.done, sc.calls())
			}
			hours := r.windows(0)
			t.Logf("sigma %.1f, seed %d: accepted in each hour %v", net.Sigma, seed, hours)
			if len(hours) < 3 {
				t.Fatalf("sigma %.1f, seed %d: work waited through only %d whole hours", net.Sigma, seed, len(hours))
			}
			for hour, n := range hours {
				if n < 4900 {
					t.Errorf("sigma %.1f, seed %d: %d of 5000 used in hour %d", net.Sigma, seed, n, hour+1)
				}
			}
		}
	}
}

// windows returns the number of accepted calls in each whole window of a stock that counts.
func (r *run) windows(limit int) []int {
	s := stocks(r.sc, r.tally.models)[limit]
	counts := map[store.Time]int{}
	var ends []store.Time
	for _, t := range r.tally.accepted {
		if !s.judges(t) {
			continue
		}
		if counts[s.next]++; counts[s.next] == 1 {
			ends = append(ends, s.next)
		}
	}
	slices.Sort(ends)
	var list []int
	for _, end := range ends {
		list = append(list, counts[end])
	}
	return list
}

// A stock may be spent at any time before its reset. So the hour in which the work ends does not count.
func TestStocksAreJudgedOverWholeWindows(t *testing.T) {
	sc := &Scenario{
		Limits:  []Limit{{Name: "hour", Kind: store.Fixed, Unit: Requests, Size: 100, Window: time.Hour, Phase: 30 * time.Minute}},
		Horizon: 24 * time.Hour,
		Fleet:   []Agent{{Name: "a", Jobs: 1, Calls: 1000, Workers: 1}},
	}
	at := func(minutes int) store.Time { return Epoch.Add(time.Duration(minutes) * time.Minute) }
	spread := func(from, to, n int) (times []store.Time) {
		for i := range n {
			times = append(times, at(from)+store.Time(i)*(at(to)-at(from))/store.Time(n))
		}
		return times
	}
	for _, c := range []struct {
		name     string
		spans    []span
		accepted []store.Time
		want     float64
	}{
		{"two whole hours, and parts of two more", []span{{first: at(0), last: at(170)}},
			slices.Concat(spread(0, 30, 3), spread(30, 90, 90), spread(90, 150, 80), spread(150, 170, 1)), 0.85},
		{"nothing waited in the middle of an hour", []span{{first: at(0), last: at(40)}, {first: at(60), last: at(95)}},
			spread(30, 90, 70), 0.7},
		{"no whole hour: all of it", []span{{first: at(40), last: at(80)}}, spread(40, 80, 50), 0.5},
		{"nobody waited at the end", []span{{first: at(0), last: at(80)}}, spread(0, 80, 50), 0.25},
	} {
		o := admits(sc, []*modelTally{{spans: c.spans}}, 1, nil)
		if got := round(o.utilization(c.accepted)); got != c.want {
			t.Errorf("%s: %.4f, want %.4f", c.name, got, c.want)
		}
	}
}

// Joined agents hold a lease from before their first call until after their last, however long they are idle in
// between.
func TestJoinedAgentsHoldALease(t *testing.T) {
	sc := &Scenario{
		Name:    "joined",
		Limits:  []Limit{{Name: "minute", Kind: store.Rolling, Unit: Requests, Size: 100, Window: time.Minute}},
		Horizon: 2 * time.Hour,
		Fleet: []Agent{
			{Name: "joined", Jobs: 2, Calls: 1, Every: 30 * time.Minute, Start: 10 * time.Minute, Joins: 5 * time.Minute, Joined: true, Workers: 1},
			{Name: "not", Class: 2, Jobs: 2, Calls: 1, Every: 30 * time.Minute, Workers: 1},
		},
	}
	r := newRun(sc, newSluice, LightTail, 1)
	pool := r.strategy.(*sluice).pool
	leased := map[time.Duration]bool{}
	for _, at := range []time.Duration{4, 6, 20, 39, 42} {
		r.at(Epoch.Add(at*time.Minute), func() {
			snap, err := pool.Snapshot(t.Context())
			if err != nil {
				t.Error(err)
			}
			for _, a := range snap.Agents {
				if a.Leased {
					leased[at] = true
				}
				if a.Leased && a.Name != "joined" {
					t.Errorf("%s holds a lease", a.Name)
				}
			}
		})
	}
	if err := r.finishAll(); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]bool{4: false, 6: true, 20: true, 39: true, 42: false} {
		if leased[at] != want {
			t.Errorf("after %d min: leased %v, want %v", at, leased[at], want)
		}
	}
}
