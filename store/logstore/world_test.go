package logstore_test

import (
	"context"
	"errors"
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

// The limits of the storms. Their guards are off, so that a charge counts from its grant on.
const (
	stormWindow = 2 * time.Second
	stormSize   = 20
	stormPlaces = 4
	stormWait   = 3 * time.Second
)

func stormSpec() store.Spec {
	return store.Spec{
		Name: "pool",
		Limits: []store.Limit{
			{Name: "window", Kind: store.Rolling, Unit: "requests", Size: stormSize, Window: stormWindow, Guard: store.GuardOff},
			{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: stormPlaces, Guard: store.GuardOff},
		},
		Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 1000,
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}, Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
}

// judge keeps its own count of what was granted.
type judge struct {
	*testing.T
	mu      sync.Mutex
	grants  []store.Time
	held    int
	most    int
	failed  int
	refused int
}

func (j *judge) granted(at store.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.grants = append(j.grants, at)
	j.held++
	j.most = max(j.most, j.held)
}

func (j *judge) ends() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held--
}

// verdict checks every window.
func (j *judge) verdict() {
	j.Helper()
	slices.Sort(j.grants)
	for i, at := range j.grants {
		n, _ := slices.BinarySearch(j.grants[i:], at.Add(stormWindow))
		if n > stormSize {
			j.Errorf("%d were granted in a window, of %d", n, stormSize)
			break
		}
	}
	if j.most > stormPlaces {
		j.Errorf("%d were held at the same time, of %d", j.most, stormPlaces)
	}
}

// client is one process of a storm.
type client struct {
	*judge
	store *logstore.Store
	pool  store.Pool
	mu    sync.Mutex
	told  map[store.ID]chan struct{}
}

func (c *client) tell(ids []store.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if c.told[id] == nil {
			c.told[id] = make(chan struct{}, 1)
		}
		select {
		case c.told[id] <- struct{}{}:
		default:
		}
	}
}

func (c *client) channel(id store.ID) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[id] == nil {
		c.told[id] = make(chan struct{}, 1)
	}
	return c.told[id]
}

func (c *client) apply(op store.Op) (store.Result, error) {
	ops := []store.Op{op}
	err := c.pool.Apply(context.Background(), ops)
	return ops[0].Result, err
}

// insist applies an operation until the store takes it.
func (c *client) insist(op store.Op) store.Result {
	for range 1000 {
		r, err := c.apply(op)
		if err == nil || errors.Is(err, store.ErrKept) && op.Kind != store.OpPoll {
			return r
		}
		time.Sleep(100 * time.Millisecond)
	}
	c.Error("the store did not come back")
	return store.Result{}
}

// work asks, waits, holds and closes, for a while.
func (c *client) work(r *rand.Rand, agent string, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) {
		op := store.Op{Kind: store.OpAcquire, Agent: agent, TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}}
		if r.IntN(3) > 0 {
			op.Wait = stormWait
		}
		got, err := c.apply(op)
		if got.State == store.Waiting && err == nil {
			got = c.wait(got.ID)
		}
		switch {
		case err != nil:
			if !errors.Is(err, store.ErrUnavailable) {
				c.Errorf("%v", err)
			}
			c.count(&c.failed)
			time.Sleep(100 * time.Millisecond)
			continue
		case got.State != store.Granted:
			c.count(&c.refused)
			continue
		}
		c.granted(got.GrantedAt)
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		c.ends()
		c.insist(store.Op{Kind: store.OpAnswer, ID: got.ID, Verdict: store.VerdictOK})
		c.insist(store.Op{Kind: store.OpClose, ID: got.ID})
	}
}

func (c *client) count(n *int) {
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	*n++
}

// wait returns what became of a request that waits. Nobody may wait for ever.
func (c *client) wait(id store.ID) store.Result {
	told, began := c.channel(id), time.Now()
	for {
		select {
		case <-told:
		case <-time.After(stormWait + 2*time.Second):
		}
		if got := c.insist(store.Op{Kind: store.OpPoll, ID: id}); got.State != store.Waiting {
			return got
		}
		if since := time.Since(began); since > time.Minute {
			c.Errorf("%v still waits after %v", id, since)
			return store.Result{}
		}
	}
}

// alike checks that all processes have the same replica once they have read the same entries.
func alike(t *testing.T, clients []*client) {
	t.Helper()
	for range 20 {
		images, places := map[string]bool{}, map[string]bool{}
		for _, c := range clients {
			if _, err := c.pool.Snapshot(context.Background()); err != nil {
				t.Errorf("a view: %v", err)
				return
			}
		}
		for _, c := range clients {
			image, at := c.store.Image("pool")
			images[image], places[at] = true, true
		}
		switch {
		case len(places) > 1: // somebody appends just now
			time.Sleep(7 * time.Millisecond)
			continue
		case len(images) > 1:
			t.Errorf("%d different replicas at one place", len(images))
		}
		for i, c := range clients {
			if diverged, poisoned, _, _ := c.store.Counts(); diverged+poisoned > 0 {
				t.Errorf("process %d: diverged %d times, failed at %d entries", i, diverged, poisoned)
			}
		}
		return
	}
	t.Error("the processes do not come to rest")
}

// storm lets processes use a pool in a world where things go wrong, and then compares them.
func storm(t *testing.T, seed uint64, f world.Faults, opts ...logstore.Option) *judge {
	w := world.New(seed)
	server := serverAt(w)
	j := &judge{T: t}
	clients := make([]*client, 3)
	for i := range clients {
		all := append([]logstore.Option{logstore.WithClock(uptime(uint64(i + 1))), logstore.WithLeastLog(4 << 10)}, opts...)
		c := &client{judge: j, store: logstore.New(server.Connect(), all...), told: map[store.ID]chan struct{}{}}
		p, err := c.store.Pool(context.Background(), stormSpec())
		if err != nil {
			t.Fatal(err)
		}
		p.Watch(c.tell)
		c.pool, clients[i] = p, c
	}
	w.SetFaults(f)
	var wg sync.WaitGroup
	for i, c := range clients {
		for k := range 5 {
			wg.Go(func() {
				c.work(rand.New(rand.NewPCG(seed, uint64(10*i+k))), fmt.Sprint("agent", k), 30*time.Second)
			})
		}
	}
	wg.Wait()
	w.SetFaults(world.Faults{})
	time.Sleep(10 * time.Second)
	alike(t, clients)
	if s, err := clients[0].pool.Snapshot(context.Background()); err != nil || s.InFlight != 0 || s.Waiting[0] != 0 {
		t.Errorf("%d in flight, %d wait at the end: %v %v", s.InFlight, s.Waiting[0], err, []any{clients[0].store.Open("pool"), clients[1].store.Open("pool"), clients[2].store.Open("pool")})
	}
	for _, c := range clients {
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	}
	j.verdict()
	return j
}

func TestStorms(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]world.Faults{
		"calm":          {Delay: time.Millisecond},
		"slow":          {Delay: 50 * time.Millisecond},
		"lost requests": {Delay: time.Millisecond, LoseRequest: 0.03},
		"lost replies":  {Delay: time.Millisecond, LoseReply: 0.03},
		"stalls":        {Delay: time.Millisecond, Stall: world.Chance{Of: 0.002, Most: 4 * time.Second}},
		"wake-ups":      {Delay: time.Millisecond, LoseWake: 0.2, DelayWake: 200 * time.Millisecond},
		"a clock set":   {Delay: time.Millisecond, StepClock: world.Chance{Of: 0.01, Most: time.Hour}},
		"flushes":       {Delay: time.Millisecond, Flush: 0.001},
		"lost tails":    {Delay: time.Millisecond, LoseTail: world.Chance{Of: 0.004, Most: 3 * time.Second}},
		"lost tails, and more": {
			Delay: 5 * time.Millisecond, LoseTail: world.Chance{Of: 0.003, Most: 3 * time.Second}, Flush: 0.001, LoseWake: 0.1,
		},
		"all that there is": {Delay: 5 * time.Millisecond, LoseRequest: 0.01, LoseReply: 0.01, Stall: world.Chance{Of: 0.001, Most: time.Second}, LoseWake: 0.1, DelayWake: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
				ok := t.Run("", func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						j := storm(t, seed, f)
						t.Logf("%d granted, %d refused, %d failed", len(j.grants), j.refused, j.failed)
					})
				})
				if !ok {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
