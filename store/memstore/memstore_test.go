package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

func open(*testing.T) storetest.Harness {
	clock := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

// Two memstores agree: decisions depend only on the operations and their times.
func TestSameTraceSameDecisions(t *testing.T) { storetest.Differential(t, open, open) }

func TestOpenByURL(t *testing.T) {
	s, err := store.Open(context.Background(), "mem:")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(context.Background(), "mem:x"); err == nil {
		t.Error("mem:x was opened")
	}
}

// Many goroutines on one pool never exceed its limits, and leave nothing behind.
func TestManyGoroutines(t *testing.T) {
	const goroutines, rounds, places = 32, 60, 5
	clock := storetest.NewClock(storetest.Start)
	s := memstore.New(memstore.WithClock(clock))
	defer s.Close()
	spec := store.Spec{
		Name: "pool",
		Limits: []store.Limit{
			{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: places},
			{Name: "burst", Kind: store.Bucket, Unit: "requests", Size: 1000, Burst: 200, Window: time.Second, Guard: store.GuardOff},
			{Name: "own", Kind: store.Concurrency, Unit: "requests", Size: 2, Per: store.PerAgent},
		},
		Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		MaxWaiting: 1000,
		Throttle:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Overload:   store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
	done := make(chan struct{})
	var workers, ticker sync.WaitGroup
	ticker.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				clock.Advance(time.Millisecond)
			}
		}
	})
	var held counter
	for g := range goroutines {
		workers.Go(func() {
			w := worker{t: t, id: g, held: &held}
			w.run(s, spec, rounds)
		})
	}
	workers.Wait()
	close(done)
	ticker.Wait()
	if held.most > places {
		t.Errorf("%d held at once, at most %d may be", held.most, places)
	}
	p, err := s.Pool(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Hour)
	snap, err := p.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if snap.InFlight != 0 || len(snap.Queue) != 0 {
		t.Errorf("%d in flight and %d waiting when all have left", snap.InFlight, len(snap.Queue))
	}
	for _, l := range snap.Limits {
		if l.Used != 0 {
			t.Errorf("limit %s of %q: %d used when all have left", l.Limit, l.Scope, l.Used)
		}
	}
}

// counter counts how many workers hold a ticket at the same time.
type counter struct {
	mu        sync.Mutex
	now, most int
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

// worker acquires, holds and closes, in its own session.
type worker struct {
	t    *testing.T
	id   int
	held *counter
	pool store.Pool
	bell chan struct{}
}

func (w *worker) run(s store.Store, spec store.Spec, rounds int) {
	var err error
	if w.pool, err = s.Pool(context.Background(), spec); err != nil {
		w.t.Error(err)
		return
	}
	defer w.pool.Close()
	w.bell = make(chan struct{}, 1)
	w.pool.Watch(func([]store.ID) {
		select {
		case w.bell <- struct{}{}:
		default:
		}
	})
	for i := range rounds {
		w.round(i)
	}
}

func (w *worker) round(i int) {
	res := w.do(store.Op{
		Kind: store.OpAcquire, Agent: fmt.Sprint("agent", w.id%6), Class: uint8(w.id % 3),
		Amounts: []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 1}}, Wait: -1, TTL: store.MaxTTL,
	})
	if i%10 == 9 {
		if _, err := w.pool.Snapshot(context.Background()); err != nil {
			w.t.Error(err)
		}
		w.do(store.Op{Kind: store.OpCancel, ID: res.ID})
		return
	}
	for res.State == store.Waiting {
		<-w.bell
		res = w.do(store.Op{Kind: store.OpPoll, ID: res.ID})
	}
	switch res.State {
	case store.Granted:
		w.held.add(1)
		w.do(store.Op{Kind: store.OpAnswer, ID: res.ID, Verdict: store.VerdictOK})
		w.held.add(-1)
		w.do(store.Op{Kind: store.OpClose, ID: res.ID})
	case store.Ended: // collected too late: the clock is quick here
	default:
		w.t.Errorf("%v (%v)", res.State, res.Reason.Code)
	}
}

func (w *worker) do(op store.Op) store.Result {
	ops := []store.Op{op}
	if err := w.pool.Apply(context.Background(), ops); err != nil {
		w.t.Error(err)
	}
	return ops[0].Result
}

// The quick methods do the same as the operations.
func TestQuickWaysMeanTheSame(t *testing.T) {
	h := open(t)
	spec := store.Spec{
		Name: "quick", MaxWaiting: 10, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Limits:   []store.Limit{{Name: "places", Kind: store.Concurrency, Size: 1}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
	p, err := h.Store.Pool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	quick := p.(store.Quick)
	ask := func() store.Result {
		ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", Wait: -1, TTL: time.Minute}}
		ops[0].Amounts = []store.Amount{{Limit: "places", N: 1}}
		if err := p.Apply(t.Context(), ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Result
	}
	collect := func(id store.ID, want store.State) {
		t.Helper()
		res, err := quick.CollectTicket(id)
		if err != nil || res.State != want || res.ID != id {
			t.Fatalf("%v is %v (%v), want %v", id, res.State, err, want)
		}
	}
	first, second := ask(), ask()
	collect(first.ID, store.Granted)
	collect(second.ID, store.Waiting)
	collect(store.ID{Session: 99, N: 1}, store.Unknown)
	for range 2 { // the second time it has ended, which is no error
		if err := quick.CloseTicket(first.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	collect(first.ID, store.Ended)
	collect(second.ID, store.Granted)
	h.Advance(30 * time.Second) // collected: it does not go back
	collect(second.ID, store.Granted)
	if err := quick.CloseTicket(second.ID, true); err != nil {
		t.Fatal(err)
	}
	snap, err := p.Snapshot(t.Context())
	if err != nil || snap.InFlight != 0 {
		t.Fatalf("%d in flight (%v) after both were closed", snap.InFlight, err)
	}
	if err := h.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := quick.CloseTicket(first.ID, false); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store says %v", err)
	}
	if _, err := quick.CollectTicket(first.ID); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store says %v", err)
	}
}
