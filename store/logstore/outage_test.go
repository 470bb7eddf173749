package logstore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// arrivals counts what arrives, exactly.
type arrivals struct {
	mu    sync.Mutex
	calls []call
}

// call is one request: it arrives, and takes a place until it is over.
type call struct{ from, to time.Duration }

func (p *arrivals) add(c call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
}

// most returns the most calls in a window, at the same time, and in a bucket that drains rate a second.
func (p *arrivals) most(window time.Duration, rate float64) (inWindow, together int, level float64) {
	type change struct {
		at time.Duration
		n  int
	}
	var changes []change
	slices.SortFunc(p.calls, func(a, b call) int { return cmp.Compare(a.from, b.from) })
	var last time.Duration
	for i, first := 0, 0; i < len(p.calls); i++ {
		c := p.calls[i]
		for c.from-p.calls[first].from >= window {
			first++
		}
		inWindow = max(inWindow, i-first+1)
		changes = append(changes, change{c.from, 1}, change{c.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	now, drops := 0, 0.0
	for _, c := range changes {
		if now += c.n; c.n > 0 {
			drops = max(drops-(c.at-last).Seconds()*rate, 0) + 1
			last, level = c.at, max(level, drops)
		}
		together = max(together, now)
	}
	return inWindow, together, level
}

// fleet is processes that share three pools, and may be cut off.
type fleet struct {
	*testing.T
	r       *rand.Rand
	began   time.Time
	window  store.Limit
	pools   [3]arrivals // of a window, of places and of a bucket
	engines []sharedlog.Engine
	stores  []*logstore.Store
	alone   [3]int // grants to processes that were cut off
}

const (
	fleetPlaces = 8
	fleetRate   = 5
	fleetBurst  = 12
)

func newFleet(t *testing.T, seed uint64, processes int, window store.Limit) *fleet {
	f := &fleet{T: t, r: rand.New(rand.NewPCG(seed, 3)), began: time.Now(), window: window}
	w := world.New(seed)
	server := serverAt(w)
	for i := range processes {
		e := server.Connect()
		f.engines = append(f.engines, e)
		f.stores = append(f.stores, logstore.New(e, logstore.WithClock(uptime(uint64(i+1))), logstore.WithLeastLog(16<<10)))
	}
	w.SetFaults(world.Faults{Delay: 20 * time.Millisecond})
	return f
}

func (f *fleet) spec(pool int) store.Spec {
	spec := stormSpec()
	spec.Name, spec.OnFailure, spec.Lease = fmt.Sprint("pool", pool), store.FailShare, 2*time.Minute
	limit := f.window
	switch pool {
	case 1:
		limit = store.Limit{Kind: store.Concurrency, Size: fleetPlaces}
	case 2:
		limit = store.Limit{Kind: store.Bucket, Size: fleetRate, Burst: fleetBurst, Window: time.Second}
	}
	limit.Name, limit.Unit = "limit", "requests"
	spec.Limits = []store.Limit{limit}
	return spec
}

// open opens a pool for a process.
func (f *fleet) open(process, pool int) *client {
	p, err := f.stores[process].Pool(context.Background(), f.spec(pool))
	if err != nil {
		f.Fatal(err)
	}
	c := &client{pool: p, told: map[store.ID]chan struct{}{}}
	p.Watch(c.tell)
	return c
}

// work has a caller make calls to a pool for a while.
func (f *fleet) work(r *rand.Rand, p *client, pool int, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) {
		got, err := p.apply(store.Op{
			Kind: store.OpAcquire, Agent: "a", Tie: store.TieBeat, TTL: 20 * time.Second, Wait: time.Duration(r.IntN(5)) * time.Second,
			Amounts: []store.Amount{{Unit: "requests", N: 1}},
		})
		for got.State == store.Waiting && err == nil {
			select {
			case <-p.channel(got.ID):
			case <-time.After(time.Second):
			}
			got, err = p.apply(store.Op{Kind: store.OpPoll, ID: got.ID})
		}
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			f.Errorf("%v", err)
		}
		if err != nil || got.State != store.Granted {
			continue
		}
		if _, out := p.pool.(store.Alarm).Outage(); out {
			f.pools[pool].mu.Lock()
			f.alone[pool]++
			f.pools[pool].mu.Unlock()
		}
		c := call{from: time.Since(f.began)}
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		c.to = time.Since(f.began)
		f.pools[pool].add(c)
		op := []store.Op{{Kind: store.OpAnswer, ID: got.ID, Verdict: store.VerdictOK}, {Kind: store.OpClose, ID: got.ID}}
		for range 1000 {
			if err := p.pool.Apply(context.Background(), op); err == nil || errors.Is(err, store.ErrKept) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// run lets all processes work while some of them, and at times all, are cut off for at most 8 seconds, within which nobody
// takes them for dead, or for a minute.
func (f *fleet) run(seed uint64, d time.Duration) {
	var wg sync.WaitGroup
	for i := range f.stores {
		for pool := range f.pools {
			c := f.open(i, pool)
			for caller := range 4 {
				wg.Go(func() { f.work(rand.New(rand.NewPCG(seed, uint64(i*100+pool*10+caller))), c, pool, d) })
			}
		}
	}
	cut := make([]time.Time, len(f.engines))
	for end := time.Now().Add(d - 10*time.Second); time.Now().Before(end); time.Sleep(time.Duration(f.r.IntN(3000)) * time.Millisecond) {
		all := f.r.IntN(20) == 0
		for i, e := range f.engines {
			switch {
			case time.Now().After(cut[i]) && (all || f.r.IntN(12) == 0):
				cut[i] = time.Now().Add(time.Duration(f.r.IntN(40_000)) * time.Millisecond)
				world.Cut(e, true)
			case time.Now().After(cut[i]):
				world.Cut(e, false)
			}
		}
	}
	for _, e := range f.engines {
		world.Cut(e, false)
	}
	wg.Wait()
	for _, s := range f.stores {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	}
	inWindow, _, _ := f.pools[0].most(f.window.Window, 1)
	_, together, _ := f.pools[1].most(time.Second, 1)
	_, _, level := f.pools[2].most(time.Second, fleetRate)
	f.Logf("%d of %d in a window, %d places of %d, %.2f in a bucket of %d; %d calls in all, %v alone", inWindow, f.window.Size,
		together, fleetPlaces, level, fleetBurst, len(f.pools[0].calls)+len(f.pools[1].calls)+len(f.pools[2].calls), f.alone)
	if inWindow > int(f.window.Size) || together > fleetPlaces || level > fleetBurst {
		f.Errorf("a limit was not kept")
	}
}

// However processes are cut off, some or all, all together stay within every limit.
func TestProcessesThatAreCutOffKeepAllLimits(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]store.Limit{
		"rolling": {Kind: store.Rolling, Size: 30, Window: 15 * time.Second, Slack: 3 * time.Second},
		"fixed":   {Kind: store.Fixed, Size: 30, Window: 15 * time.Second, Slack: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				ok := t.Run("", func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newFleet(t, seed, 2+int(seed%3), l).run(seed, 3*time.Minute) })
				})
				if !ok {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}

// A process that is cut off goes on at its rate, in minutes as in seconds: its own charges come back to it.
func TestAProcessThatIsCutOffGoesOnWithWhatItUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 2, store.Limit{Kind: store.Rolling, Size: 180, Window: time.Minute, Slack: 3 * time.Second})
		var wg sync.WaitGroup
		for i := range f.stores {
			c := f.open(i, 0)
			wg.Go(func() { f.work(rand.New(rand.NewPCG(1, uint64(i))), c, 0, 130*time.Second) })
		}
		time.Sleep(70 * time.Second)
		world.Cut(f.engines[0], true)
		time.Sleep(50 * time.Second)
		f.pools[0].mu.Lock()
		alone := f.alone[0]
		f.pools[0].mu.Unlock()
		world.Cut(f.engines[0], false)
		wg.Wait()
		for _, s := range f.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		most, _, _ := f.pools[0].most(time.Minute, 1)
		t.Logf("%d alone in 50 s, at most %d in a window", alone, most)
		if alone < 20 || most > 180 { // its share is 60 in a minute, and it asks for about as many
			t.Errorf("it was granted %d in 50 s, of a share of 60 in a minute; all together at most %d of 180", alone, most)
		}
	})
}

// A member that has nothing to say writes each three seconds, one that has writes nothing for it. All settle on their shares soon.
func TestSignsOfLifeCostNoEntriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, 4, store.Limit{Kind: store.Rolling, Size: 1000, Window: time.Second})
		var all []*client
		for i := range f.stores {
			all = append(all, f.open(i, 0))
		}
		time.Sleep(10 * time.Second)
		members := func() []store.Member {
			s, err := all[0].pool.Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return s.Members
		}
		for _, m := range members() {
			if m.Share != 5 {
				t.Errorf("after 10 s a member has one part in %d", m.Share)
			}
		}
		before := f.stores[0].Entries("pool0")
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			if _, err := all[0].apply(store.Op{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Spent: true}); err != nil {
				t.Fatal(err)
			}
			if len(members()) != 4 || slices.ContainsFunc(members(), func(m store.Member) bool { return m.Silent }) {
				t.Fatalf("not all are heard of: %+v", members())
			}
		}
		if n := f.stores[0].Entries("pool0") - before; n != 300 {
			t.Errorf("the busy one wrote %d entries for 300 operations", n)
		}
		idle := f.stores[1].Entries("pool0")
		time.Sleep(time.Minute)
		if n := f.stores[1].Entries("pool0") - idle; n < 15 || n > 20 {
			t.Errorf("an idle one wrote %d entries in a minute", n)
		}
		for _, s := range f.stores {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
