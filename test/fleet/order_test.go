//go:build linux || darwin

package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
	"github.com/sluicehq/sluice/store/redisstore"
)

// specOf describes a pool of one limit, with the usual classes.
func specOf(name string, l store.Limit) store.Spec {
	l.Name, l.Unit = "only", "requests"
	backoff := store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}
	return store.Spec{
		Name: name, Limits: []store.Limit{l}, MaxWaiting: 10_000, Throttle: backoff, Overload: backoff,
		Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		// Whoever is cut off decides nothing by itself: these tests are about what Redis decides.
		OnFailure: store.FailClosed,
	}
}

// openStore opens a store of its own, as another process would.
func openStore(t *testing.T, url string) *logstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openPool(t *testing.T, s *logstore.Store, spec store.Spec) store.Pool {
	t.Helper()
	p, err := s.Pool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// queued is a request that waits.
type queued struct {
	agent, number int
	pool          store.Pool
}

// The requests of an agent are granted in the order in which they were asked for, also if each comes from another
// process. There is one place: whoever is granted it is collected before the next can be, so the order is certain.
func TestOrderWithinAnAgent(t *testing.T) {
	const stores, agents, each = 5, 9, 40
	redis := redisrun.New(t)
	told := make(chan store.ID, 4*agents*each) // a notice may come more than once
	pools := make([]store.Pool, stores)
	for i := range pools {
		pools[i] = openPool(t, openStore(t, redis.URL()), specOf("order", store.Limit{Kind: store.Concurrency, Size: 1}))
		pools[i].Watch(func(ids []store.ID) {
			for _, id := range ids {
				select {
				case told <- id:
				default:
					t.Error("too many notices")
				}
			}
		})
	}
	ask := store.Op{Kind: store.OpAcquire, Agent: "first", Amounts: []store.Amount{{Unit: "requests", N: 1}}, TTL: time.Hour}
	first := []store.Op{ask}
	if err := pools[0].Apply(t.Context(), first); err != nil || first[0].Result.State != store.Granted {
		t.Fatal(first[0].Result.State, err)
	}

	var mu sync.Mutex
	waiting := map[store.ID]queued{}
	var all sync.WaitGroup
	for a := range agents {
		all.Go(func() {
			for n := range each {
				q := queued{a, n, pools[(a+n)%stores]}
				op := ask
				op.Agent, op.Class, op.Wait = fmt.Sprint("agent ", a), uint8(a%3), -1
				ops := []store.Op{op}
				if err := q.pool.Apply(t.Context(), ops); err != nil || ops[0].Result.State != store.Waiting {
					t.Errorf("agent %d, request %d: %v %v", a, n, ops[0].Result.State, err)
					return
				}
				mu.Lock()
				waiting[ops[0].ID] = q
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	end(t, pools[0], first[0].ID)

	began := time.Now()
	granted, lapsed := collectAll(t, told, waiting)
	t.Logf("%d grants one after the other in %v, %d were not collected in time", len(granted), time.Since(began).Round(time.Millisecond), lapsed)
	last := map[int]int{}
	for i, q := range granted {
		if n, had := last[q.agent]; had && q.number < n {
			t.Errorf("agent %d: request %d was granted after request %d", q.agent, q.number, n)
		}
		last[q.agent] = q.number
		if i > 0 && q.at < granted[i-1].at {
			t.Errorf("a grant of %d was collected after one of %d", q.at, granted[i-1].at)
		}
	}
	if len(granted) < agents*each/2 {
		t.Errorf("%d grants of %d are too few to tell", len(granted), agents*each)
	}
}

func end(t *testing.T, p store.Pool, id store.ID) {
	t.Helper()
	if err := p.Apply(context.Background(), []store.Op{{Kind: store.OpClose, ID: id}}); err != nil {
		t.Fatal(err)
	}
}

// grant is a request that was granted, and when by the store's account.
type grant struct {
	queued
	at store.Time
}

// collectAll collects whoever has the place, and gives it to the next, until nobody is left. Those that a busy machine
// does not collect in time lose their place in line: they are counted, and no more.
func collectAll(t *testing.T, told <-chan store.ID, waiting map[store.ID]queued) (granted []grant, lapsed int) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(waiting) > 0 {
		var id store.ID
		select {
		case id = <-told:
		case <-timer.C:
			t.Fatalf("%d requests still wait, and nobody is told", len(waiting))
		}
		q, open := waiting[id]
		if !open {
			continue
		}
		ops := []store.Op{{Kind: store.OpPoll, ID: id}}
		if err := q.pool.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		switch r := ops[0].Result; r.State {
		case store.Granted:
			granted = append(granted, grant{q, r.GrantedAt})
			delete(waiting, id)
			end(t, q.pool, id)
		case store.Waiting:
		case store.Ended:
			lapsed++
			delete(waiting, id)
		default:
			t.Fatalf("agent %d, request %d: %v", q.agent, q.number, r.State)
		}
	}
	return granted, lapsed
}
