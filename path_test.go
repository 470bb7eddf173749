package sluice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// provider enforces one exact rule on what arrives.
type provider struct {
	mu                sync.Mutex
	rule              sim.Rule
	arrived, rejected int
	units             int64 // accepted
}

func storeNow() store.Time { return store.Time(time.Now().UnixMicro()) }

func (p *provider) arrive(cost int64) (accepted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrived++
	if accepted = sim.Admit(p.rule, storeNow(), cost); !accepted {
		p.rejected++
		return false
	}
	p.units += cost
	return true
}

func (p *provider) done(cost int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule.Done(storeNow(), cost)
}

// The whole path: callers in goroutines, a network that delays and reorders, and a provider that counts arrivals
// exactly. It refuses no request, and little is left unused.
func TestProviderRefusesNobody(t *testing.T) {
	start := store.Time(bubbleStart.UnixMicro())
	for name, c := range map[string]struct {
		limit sluice.Limit
		rule  func() sim.Rule
		rate  float64 // the provider's, a second; 0: not bounded by time
	}{
		"bucket":      {bucket(5, time.Second, 20), func() sim.Rule { return sim.NewBucket(20, 5, time.Second) }, 5},
		"rolling":     {rolling(150, 30*time.Second), func() sim.Rule { return sim.NewRolling(150, 30*time.Second) }, 5},
		"concurrency": {places(4), func() sim.Rule { return sim.NewConcurrency(4) }, 0},
		"fixed": {
			sluice.Limit{Name: "fixed", Kind: sluice.Fixed, Size: 300, Window: time.Minute, Reset: bubbleStart.Add(17 * time.Second)},
			func() sim.Rule { return sim.NewFixed(300, time.Minute, start.Add(17*time.Second)) }, 5,
		},
		"fixed, reset not known": {
			sluice.Limit{Name: "fixed", Kind: sluice.Fixed, Size: 300, Window: time.Minute},
			func() sim.Rule { return sim.NewFixed(300, time.Minute, start.Add(17*time.Second)) }, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const length = 5 * time.Minute
				g := open(t, c.limit)
				p := &provider{rule: c.rule()}
				var wg sync.WaitGroup
				for i := range 30 {
					wg.Go(func() { call(t, g, p, i, length) })
				}
				wg.Wait()
				if p.rejected != 0 {
					t.Errorf("the provider refused %d of %d", p.rejected, p.arrived)
				}
				if share := float64(p.units) / (c.rate * length.Seconds()); c.rate > 0 && share < 0.95 {
					t.Errorf("%d units accepted, %.1f%% of what the provider admits", p.units, 100*share)
				}
				if s := state(t, g); s.InFlight != 0 || s.Throttled != 0 || int(s.Sent) != p.arrived {
					t.Errorf("%d in flight, %d throttled, %d sent, %d arrived", s.InFlight, s.Throttled, s.Sent, p.arrived)
				}
			})
		})
	}
}

// Counting grants instead of arrivals is not enough: the test above would notice.
func TestProviderRefusesSomeWithoutAGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const length = 5 * time.Minute
		g := openResource(t, sluice.Resource{Guard: store.GuardOff, Limits: []sluice.Limit{rolling(150, 30*time.Second)}})
		p := &provider{rule: sim.NewRolling(150, 30*time.Second)}
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() { call(t, g, p, i, length) })
		}
		wg.Wait()
		if p.rejected == 0 || int(state(t, g).Throttled) != p.rejected {
			t.Errorf("%d of %d refused, %d counted", p.rejected, p.arrived, state(t, g).Throttled)
		}
	})
}

// call sends requests for a while, each when it may.
func call(t *testing.T, g *sluice.Gate, p *provider, i int, length time.Duration) {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	delay := func() { // lognormal, median 80 ms
		time.Sleep(time.Duration(float64(80*time.Millisecond) * math.Exp(0.6*r.NormFloat64())))
	}
	for time.Since(bubbleStart) < length {
		cost := 1 + r.Int64N(3)
		req := costs(fmt.Sprint("agent", i%5), sluice.Amount{Unit: sluice.Requests, N: cost})
		req.Class = fmt.Sprint("p", i%3)
		if i%2 == 0 {
			cost, req.Cost = 1, nil
		}
		ticket := acquire(t, g, req)
		delay()
		a := sluice.Answer{Verdict: store.VerdictOK}
		if accepted := p.arrive(cost); !accepted {
			a.Verdict = store.VerdictThrottled
		} else {
			time.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
			p.done(cost)
		}
		delay()
		answer(t, ticket, a)
		end(t, ticket)
	}
}
