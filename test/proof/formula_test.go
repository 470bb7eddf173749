package proof_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// backlog is a trace of n equal requests that are all there from the beginning, by
// one caller whose every step takes what net and work say.
func backlog(l store.Limit, n int, cost int64, net, work sim.Delay) *trace {
	l.Name, l.Unit = "l", "u"
	tr := &trace{premise: untruncated, ttl: 10 * time.Minute, batch: true, stated: true, judging: true, longest: 1 << 50}
	tr.spec = store.Spec{
		Name: "p", Limits: []store.Limit{l}, MaxWaiting: n, Classes: []store.Class{{Name: "c", Weight: 1}},
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
	tr.phase[0] = sim.Epoch.Add(l.Window / 3)
	for i := range n {
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		p := plan{wait: -1, full: true, request: drawn(rng, net), back: drawn(rng, net), header: drawn(rng, work)}
		p.work = p.header
		p.cost[0], p.used[0] = cost, cost
		tr.plans = append(tr.plans, p)
	}
	return tr
}

// rate returns how much a second was granted in the long run, in units of cost, when grants
// come in rounds of n.
func (w *world) rate(t *testing.T, n int, cost int64) float64 {
	t.Helper()
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	// Grants of a round come in bursts: the middles of two rounds are compared.
	middle := func(from int) (m float64) {
		for _, at := range w.grants[from : from+n] {
			m += float64(at-sim.Epoch) / 1e6 / float64(n)
		}
		return m
	}
	first, last := 3*n, len(w.grants)-n
	return float64(last-first) * float64(cost) / (middle(last) - middle(first))
}

// bound is the mean time from the grant to the bound where the slack is one.
func (w *world) bound(slack time.Duration) (mean, largest float64) {
	for _, b := range w.bounds {
		s := b.Sub(0).Seconds()
		if slack > 0 {
			s = min(s, slack.Seconds())
		}
		mean += s / float64(len(w.bounds))
		largest = max(largest, s)
	}
	return mean, largest
}

func hold(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	t.Logf("%-60s measured %.4f, formula %.4f", what, got, want)
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: measured %.4f of the quota, the formula says %.4f", what, got, want)
	}
}

var (
	quickly = sim.Delay{Median: 140 * time.Millisecond, Sigma: 0.3}
	slowly  = sim.Delay{Median: 8 * time.Second, Sigma: 0.1}
)

// A charge on a rolling window is there for the window, the time to its bound and half
// a slice on average.
func TestRollingReachesWhatTheFormulaSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window time.Duration
		size   int64
		work   sim.Delay
		slack  time.Duration // that bounds, where headers are slow
		atIt   float64       // least that must be reached
	}{
		{5 * time.Second, 50, quickly, 0, 0},
		{20 * time.Second, 20, quickly, 0, 0.98},
		{20 * time.Second, 100, quickly, 0, 0.98},
		{time.Minute, 80, quickly, 0, 0.98},
		{5 * time.Minute, 200, quickly, 0, 0.98},
		{time.Minute, 80, slowly, time.Second, 0.98},
		{5 * time.Minute, 80, slowly, 0, 0}, // the slack is 4.5 s: 8 s is not slow
		{2 * time.Minute, 80, slowly, 1800 * time.Millisecond, 0.98},
	} {
		l := store.Limit{Kind: store.Rolling, Size: c.size, Window: c.window}
		tr := backlog(l, 40*int(c.size), 1, sim.LightTail, c.work)
		w := play(tr, nil)
		mean, _ := w.bound(c.slack)
		win := c.window.Seconds()
		got := w.rate(t, int(c.size), 1) * win / float64(c.size)
		hold(t, fmt.Sprintf("rolling %d/%v, mean bound %.2f s", c.size, c.window, mean), got, win/(win+mean+win/256/2), 0.003)
		if got < c.atIt {
			t.Errorf("rolling %d/%v: %.4f reached, want %.2f", c.size, c.window, got, c.atIt)
		}
	}
}

// Costs that do not divide the size leave a rest that nobody can use.
func TestEqualCostsLoseWhatDoesNotDivide(t *testing.T) {
	t.Parallel()
	for _, cost := range []int64{7, 10, 33, 51} {
		const size, win = 100, 60.0
		round := int(size / cost)
		w := play(backlog(store.Limit{Kind: store.Rolling, Size: size, Window: time.Minute}, 40*round, cost, sim.LightTail, quickly), nil)
		mean, _ := w.bound(0)
		got := w.rate(t, round, cost) * win / size
		hold(t, fmt.Sprintf("rolling %d/min, costs of %d", size, cost), got, float64(int64(round)*cost)/size*win/(win+mean+win/256/2), 0.003)
	}
}

func TestBucketReachesWhatTheFormulaSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ burst, rate, cost int64 }{
		{1, 1, 1}, {1, 5, 1}, {2, 10, 1}, {3, 2, 1}, {10, 1, 1}, {20, 50, 1}, {10, 20, 5}, {50, 10, 1},
	} {
		l := store.Limit{Kind: store.Bucket, Size: c.rate, Burst: c.burst, Window: time.Second}
		n := int(1000 + 20*c.burst)
		w := play(backlog(l, n, c.cost, sim.Delay{Median: 100 * time.Millisecond}, sim.Delay{Median: 150 * time.Millisecond}), nil)
		mean, _ := w.bound(0)
		got := w.rate(t, n/10, c.cost) / float64(c.rate)
		want := min(1, float64(c.burst)/(float64(c.cost)+float64(c.rate)*mean))
		hold(t, fmt.Sprintf("bucket of %d at %d/s, costs of %d, mean bound %.2f s", c.burst, c.rate, c.cost, mean), got, want, 0.003)
	}
}

func TestConcurrencyReachesWhatTheFormulaSays(t *testing.T) {
	t.Parallel()
	for _, places := range []int64{1, 10, 100} {
		const service, trip = 1.0, 0.2
		net := sim.Delay{Median: 100 * time.Millisecond}
		n := 60 * int(places)
		w := play(backlog(store.Limit{Kind: store.Concurrency, Size: places}, n, 1, net, sim.Delay{Median: time.Second}), nil)
		got := w.rate(t, int(places), 1) * service / float64(places)
		hold(t, fmt.Sprintf("%d places", places), got, service/(service+trip), 0.003)
	}
}

// A fixed window whose resets are learned from answers, rounded to seconds, gives all it
// has in each of its windows.
func TestFixedWindowsGiveAllTheyHave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window time.Duration
		work   sim.Delay
	}{{20 * time.Second, quickly}, {time.Minute, quickly}, {time.Hour, quickly}, {time.Minute, sim.Delay{Median: 3 * time.Second, Sigma: 0.5}}} {
		l := store.Limit{Kind: store.Fixed, Size: 100, Window: c.window}
		w := play(backlog(l, 3000, 1, sim.LightTail, c.work), nil)
		hold(t, fmt.Sprintf("fixed 100/%v, headers %v", c.window, c.work.Median), w.rate(t, 100, 1)*c.window.Seconds()/100, 1, 0.003)
	}
}

// Requests that are under way when a window resets are charged to both. Their answers, which
// speak of the window before or after, cost nothing of either.
func TestFixedWindowsServeASteadyStream(t *testing.T) {
	t.Parallel()
	for _, work := range []sim.Delay{quickly, {Median: time.Second, Sigma: 0.5}, {Median: 300 * time.Millisecond, Sigma: 1.5}} {
		tr := backlog(store.Limit{Kind: store.Fixed, Size: 200, Window: 20 * time.Second}, 6000, 1, sim.LightTail, work)
		tr.spec.Limits = append(tr.spec.Limits, store.Limit{Name: "stream", Unit: "u", Kind: store.Bucket, Size: 8, Burst: 40, Window: time.Second})
		for i := range tr.plans {
			tr.plans[i].cost[1], tr.plans[i].used[1] = 1, 1
		}
		w := play(tr, nil)
		hold(t, fmt.Sprintf("fixed 200/20s, at most 8/s, headers %v", work.Median), w.rate(t, 100, 1)/8, 1, 0.003)
	}
}

func TestMakespanIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{80, 81, 500, 1000} {
		const size, win = 80, 60.0
		w := play(backlog(store.Limit{Kind: store.Rolling, Size: size, Window: time.Minute}, n, 1, sim.LightTail, quickly), nil)
		if w.failure != nil {
			t.Fatal(w.failure)
		}
		_, largest := w.bound(0)
		windows := float64((n + size - 1) / size)
		ideal := (windows - 1) * win
		got := (w.grants[n-1] - w.grants[0]).Sub(0).Seconds()
		most := ideal + (windows-1)*(largest+win/256)
		t.Logf("%4d requests at %d/min: %.2f s, ideal %.0f s, bound %.2f s", n, size, got, ideal, most)
		if got > most || got < ideal {
			t.Errorf("%d requests took %.2f s, want between %.2f and %.2f", n, got, ideal, most)
		}
	}
}
