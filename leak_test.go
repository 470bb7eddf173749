package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

func TestCloseSendsEveryWaiterHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		acquire(t, g, from("holder"))
		c := &crowd{tb: t, gate: g}
		for i := range 100 {
			c.ask("", from(fmt.Sprint("agent", i%7)))
		}
		time.Sleep(time.Second)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		c.wg.Wait() // the bubble fails if one of them stays
		for _, e := range c.entries {
			if !errors.Is(e.err, sluice.ErrClosed) || e.at != time.Second {
				t.Fatalf("a waiter got %v at %v, want ErrClosed at once", e.err, e.at)
			}
		}
	})
}

// Whatever callers are doing when the gate closes, they get ErrClosed and do not hang.
func TestCloseUnderLoad(t *testing.T) {
	for range 20 {
		g := open(t, places(3), bucket(wide, time.Second, wide))
		var wg sync.WaitGroup
		busy := make(chan struct{}, 50)
		for i := range 50 {
			wg.Go(func() {
				for first := true; ; first = false {
					ticket, err := g.Acquire(context.Background(), from(fmt.Sprint("agent", i%5)))
					if err == nil {
						err = ticket.Close()
					}
					if first {
						busy <- struct{}{}
					}
					if err != nil {
						wantClosed(t, err)
						return
					}
				}
			})
		}
		for range 25 {
			<-busy
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
}

func wantClosed(t *testing.T, err error) {
	if !errors.Is(err, sluice.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestNoGoroutineBehindWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1000, time.Second, 1000), places(1))
		held := acquire(t, g, from("holder"))
		c := &crowd{tb: t, gate: g}
		before := runtime.NumGoroutine()
		const callers = 1000
		for i := range callers {
			c.ask("", from(fmt.Sprint("agent", i%10)))
		}
		if grown := runtime.NumGoroutine() - before; grown > callers {
			t.Errorf("%d goroutines for %d callers that wait, want only their own", grown, callers)
		}
		if n := state(t, g).Waiting[sluice.P2]; n != callers {
			t.Errorf("%d wait, want %d", n, callers)
		}
		end(t, held)
		c.order()
	})
}

// All waiting requests are cancelled at once, and nothing of them remains.
func TestCancelOfAThousandLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		held := acquire(t, g, from("holder"))
		ctx, cancel := context.WithCancel(t.Context())
		c := &crowd{tb: t, gate: g}
		for i := range 1000 {
			c.hold(ctx, "", from(fmt.Sprint("agent", i)), 0)
		}
		cancel()
		c.wg.Wait()
		end(t, held)
		if s := state(t, g); s.Waiting[sluice.P2] != 0 || s.InFlight != 0 || s.Limits[0].Used != 0 {
			t.Errorf("left over: %+v", s)
		}
		wantTook(t, "the next", took(func() { pass(t, g, from("next")) }), 0)
	})
}

// Many goroutines in real time do everything that a ticket can go through: concurrency is never exceeded, and at the
// end all of it is free.
func TestStress(t *testing.T) {
	const size, callers = 10, 200
	g := open(t, places(size),
		sluice.Limit{Name: "own", Kind: sluice.Bucket, Size: 100_000, Window: time.Second, Per: []sluice.Scope{sluice.PerAgent}},
		sluice.Limit{Name: "wide", Kind: sluice.Rolling, Size: 1_000_000_000, Window: time.Second},
		sluice.Limit{Name: "model", Kind: sluice.Concurrency, Size: 4, Per: []sluice.Scope{sluice.PerModel}})
	until, stop := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer stop()
	var in stressed
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			req := sluice.Request{
				Resource: "api", Agent: fmt.Sprint("agent", i%9), Class: fmt.Sprint("p", i%3), Model: fmt.Sprint("model", i%4), Retry: i%5 == 0,
			}
			for until.Err() == nil {
				in.visit(t, until, g, req, r, size)
			}
		})
	}
	wg.Wait()
	s := state(t, g)
	if s.InFlight != 0 || used(t, g, "places") != 0 || used(t, g, "model") != 0 {
		t.Errorf("at the end %d are in flight, limits %+v", s.InFlight, s.Limits)
	}
	for class, n := range s.Waiting {
		if n != 0 {
			t.Errorf("at the end %d of %s wait", n, class)
		}
	}
	if in.granted.Load() == 0 || in.refused.Load() == 0 {
		t.Errorf("%d granted, %d refused: the test tests nothing", in.granted.Load(), in.refused.Load())
	}
}

// stressed counts how many requests are in progress.
type stressed struct{ now, granted, refused atomic.Int64 }

func (in *stressed) enter(t *testing.T, size int64) {
	if n := in.now.Add(1); n > size {
		t.Errorf("%d hold one of %d places", n, size)
	}
	in.granted.Add(1)
}

func (in *stressed) visit(t *testing.T, until context.Context, g *sluice.Gate, req sluice.Request, r *rand.Rand, size int64) {
	ctx, cancel := context.WithTimeout(until, time.Duration(r.Int64N(int64(5*time.Millisecond))))
	defer cancel()
	ask := g.Acquire
	if r.IntN(4) == 0 {
		ask = g.Try
	}
	ticket, err := ask(ctx, req)
	if err != nil {
		in.refused.Add(1)
		if !errors.Is(err, sluice.ErrCancelled) && !errors.Is(err, sluice.ErrDeadline) && !errors.Is(err, sluice.ErrNotNow) {
			t.Errorf("refused: %v", err)
		}
		runtime.Gosched()
		return
	}
	in.enter(t, size)
	if r.IntN(8) == 0 {
		in.now.Add(-1) // it is given back and taken anew, or lost
		if err := ticket.Renew(ctx); err != nil {
			return
		}
		in.enter(t, size)
	}
	if r.IntN(2) == 0 {
		if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
			t.Errorf("answer: %v", err)
		}
	}
	runtime.Gosched()
	in.now.Add(-1)
	endings := []func() error{func() error { return ticket.Close() }, ticket.CloseUnanswered, ticket.Cancel}
	for range 1 + r.IntN(2) {
		if err := endings[r.IntN(len(endings))](); err != nil {
			t.Errorf("ending: %v", err)
		}
	}
}
