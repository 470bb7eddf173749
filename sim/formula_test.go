package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// timed measures how long after a grant its response begins, which bounds the arrival.
type timed struct {
	strategy
	run *desk
	sum store.Time
	n   int
}

func (s *timed) answered(c *call, resp Response) {
	s.sum += s.run.now - c.sentAt
	s.n++
	s.strategy.answered(c, resp)
}

func (s *timed) mean() float64 { return float64(s.sum) / float64(s.n) / 1e6 }

// steady runs an endless backlog against one limit. It returns the grants per second between the first and the last
// tenth, and the mean time from grant to bound.
func steady(t *testing.T, limit Limit, net, service Delay, calls int) (rate, bound float64) {
	t.Helper()
	sc := &Scenario{
		Name: "steady", Limits: []Limit{limit}, Horizon: 31 * 24 * time.Hour, Service: service,
		Fleet: []Agent{{Name: "a", Jobs: 1, Calls: calls, Workers: calls}},
	}
	var s *timed
	r := newRun(sc, func(r *desk) strategy {
		s = &timed{strategy: newSluice(r), run: r}
		return s
	}, net, 1)
	var sends []store.Time
	r.tally.sends.all = &sends
	if err := r.finishAll(); err != nil {
		t.Fatal(err)
	}
	if r.tally.throttled != 0 || r.tally.done != calls {
		t.Fatalf("%d refused, %d of %d done", r.tally.throttled, r.tally.done, calls)
	}
	// Grants come in bursts one window apart, so it compares the middles of two spans of whole windows.
	n := int(limit.Size)
	if limit.Kind != store.Rolling {
		n = calls / 10
	}
	middle := func(sends []store.Time) (m float64) {
		for _, at := range sends {
			m += float64(at-Epoch) / 1e6 / float64(len(sends))
		}
		return m
	}
	return float64(calls-n) / (middle(sends[calls-n:]) - middle(sends[:n])), s.mean()
}

// The reachable rate is known in advance: a charge on a rolling window lasts for the window, the time to its bound, and
// half a slice on average.
func TestReachesWhatTheFormulasSay(t *testing.T) {
	quick := Delay{Median: 300 * time.Millisecond, Sigma: 0.3}
	for _, window := range []time.Duration{20 * time.Second, time.Minute, 5 * time.Minute} {
		for _, net := range []Delay{LightTail, HeavyTail} {
			t.Run(fmt.Sprintf("rolling %v, sigma %.1f", window, net.Sigma), func(t *testing.T) {
				rate, bound := steady(t, Limit{Name: "l", Kind: store.Rolling, Unit: Requests, Size: 100, Window: window}, net, quick, 5000)
				w := window.Seconds()
				compare(t, rate*w/100, w/(w+bound+w/256/2), 0.004)
			})
		}
	}
	for _, c := range []struct{ burst, perSecond int64 }{{10, 1}, {20, 10}, {2, 5}} {
		t.Run(fmt.Sprintf("bucket of %d, %d/s", c.burst, c.perSecond), func(t *testing.T) {
			limit := Limit{Name: "l", Kind: store.Bucket, Unit: Requests, Size: c.perSecond, Burst: c.burst, Window: time.Second}
			rate, bound := steady(t, limit, LightTail, quick, 3000)
			r := float64(c.perSecond)
			compare(t, rate/r, min(1, float64(c.burst)/(1+r*bound)), 0.05)
		})
	}
	t.Run("concurrency", func(t *testing.T) {
		rate, bound := steady(t, Limit{Name: "l", Kind: store.Concurrency, Unit: Requests, Size: 10}, LightTail, Delay{Median: time.Second}, 3000)
		const service = 1.0
		compare(t, rate*service/10, service/bound, 0.01)
	})
}

func compare(t *testing.T, got, want, tolerance float64) {
	t.Helper()
	t.Logf("measured %.4f, formula %.4f", got, want)
	if math.Abs(got-want) > tolerance {
		t.Errorf("measured %.4f of the quota, the formula says %.4f", got, want)
	}
}
