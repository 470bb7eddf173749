package logstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// provider counts in true time. A request arrives while its ticket is held.
type provider struct {
	mu       sync.Mutex
	arrivals []time.Time
}

func (p *provider) arrives() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arrivals = append(p.arrivals, time.Now())
}

// shortest returns the shortest time in which one request more than the limit arrived.
func (p *provider) shortest() time.Duration {
	slices.SortFunc(p.arrivals, time.Time.Compare)
	least := time.Hour
	for i := stormSize; i < len(p.arrivals); i++ {
		least = min(least, p.arrivals[i].Sub(p.arrivals[i-stormSize]))
	}
	return least
}

// However the engine's clock is set while callers wait for each place, no window of the provider is exceeded, and all of it
// is used.
func TestNoStepShortensAWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machines uint64
		steps    []time.Duration
		within   time.Duration // that a window may be too short
	}{
		"one machine":      {1, []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Hour, -time.Hour, -100 * time.Millisecond}, 0},
		"several machines": {3, []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, time.Hour}, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
				synctest.Test(t, func(t *testing.T) {
					p := steppedStorm(t, seed, c.machines, c.steps)
					if least := p.shortest(); least < stormWindow-c.within {
						t.Errorf("seed %d: %d requests arrived within %v", seed, stormSize+1, least)
					}
					if most := int(stormLength / stormWindow * stormSize); len(p.arrivals) < most*9/10 {
						t.Errorf("seed %d: %d requests in %v, of %d", seed, len(p.arrivals), stormLength, most)
					}
				})
			}
		})
	}
}

const stormLength = 40 * time.Second

func steppedStorm(t *testing.T, seed, machines uint64, steps []time.Duration) *provider {
	w, p := world.New(seed), &provider{}
	server := serverAt(w)
	w.SetFaults(world.Faults{Delay: time.Millisecond})
	spec := stormSpec()
	spec.Limits = spec.Limits[:1]
	spec.Limits[0].Guard = store.GuardStrict
	clocks := map[uint64]logstore.Clock{}
	for m := range machines {
		clocks[m] = uptime(m + 1)
	}
	var callers sync.WaitGroup
	var opened []*logstore.Store
	end := time.Now().Add(stormLength)
	for i := range uint64(3) {
		c := &client{judge: &judge{T: t}, store: logstore.New(server.Connect(), logstore.WithClock(clocks[i%machines])), told: map[store.ID]chan struct{}{}}
		opened = append(opened, c.store)
		pool, err := c.store.Pool(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		pool.Watch(c.tell)
		c.pool = pool
		for k := range 10 {
			callers.Go(func() {
				c.send(p, rand.New(rand.NewPCG(seed, 10*i+uint64(k))), fmt.Sprint("agent", k), end)
			})
		}
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for time.Sleep(5 * time.Second); time.Now().Before(end); time.Sleep(time.Duration(500+r.IntN(3000)) * time.Millisecond) {
		server.StepClock(steps[r.IntN(len(steps))])
	}
	callers.Wait()
	for _, s := range opened {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	return p
}

// send sends requests one after the other.
func (c *client) send(p *provider, r *rand.Rand, agent string, end time.Time) {
	for time.Now().Before(end) {
		got, err := c.apply(store.Op{Kind: store.OpAcquire, Agent: agent, Wait: stormWait, TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}})
		if got.State == store.Waiting && err == nil {
			got = c.wait(got.ID)
		}
		if err != nil {
			c.Errorf("%v", err)
			return
		}
		if got.State != store.Granted {
			continue
		}
		p.arrives()
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
		c.insist(store.Op{Kind: store.OpAnswer, ID: got.ID, Verdict: store.VerdictOK})
		c.insist(store.Op{Kind: store.OpClose, ID: got.ID})
	}
}
