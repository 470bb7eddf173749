package sluice_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/sharedlog"
	lab "github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// calling counts the entries that a process appends.
type calling struct {
	sharedlog.Engine
	appends atomic.Int64
}

func (e *calling) Log(pool string) sharedlog.Log { return &callingLog{e.Engine.Log(pool), e} }

type callingLog struct {
	sharedlog.Log
	engine *calling
}

func (l *callingLog) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	l.engine.appends.Add(1)
	return l.Log.Append(ctx, at, entry)
}

// gateOn opens a gate as a process of its own on a machine of its own.
func gateOn(tb testing.TB, server *lab.Server, limits ...sluice.Limit) (*sluice.Gate, *calling) {
	tb.Helper()
	e := &calling{Engine: server.Connect()}
	n := schemes.Add(1)
	url, began := fmt.Sprintf("model%d:", n), time.Now()
	store.Register(url[:len(url)-1], func(context.Context, string) (store.Store, error) {
		return logstore.New(e, logstore.WithClock(logstore.Clock{Machine: uint64(n), Uptime: func() time.Duration { return time.Since(began) }})), nil
	})
	g, err := sluice.Open(context.Background(), sluice.Config{Store: url, Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	if err != nil {
		tb.Fatal(err)
	}
	return g, e
}

func closeGate(tb testing.TB, gates ...*sluice.Gate) {
	tb.Helper()
	for _, g := range gates {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	}
}

// becomeCalm lets time pass until processes know that nothing waits.
func becomeCalm(tb testing.TB, gates ...*sluice.Gate) {
	tb.Helper()
	for range 2 {
		for _, g := range gates {
			pass(tb, g, from("a"))
		}
		time.Sleep(2 * time.Second)
	}
}

func someTokens() sluice.Limit {
	return sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Unit: "tokens", Size: 1000, Window: time.Minute}
}

// On a log, a process that asks now and then used to pay two calls per ticket, because its reports left by themselves before
// the next request came.
func TestNowAndThenATicketIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := lab.New(1).Server()
		one, calls := gateOn(t, server, rolling(1000, time.Second))
		other, _ := gateOn(t, server, rolling(1000, time.Second))
		becomeCalm(t, one, other)
		const tickets = 100
		before := calls.appends.Load()
		for range tickets {
			for _, g := range []*sluice.Gate{one, other} {
				ticket := acquire(t, g, from("a"))
				answer(t, ticket, fine)
				end(t, ticket)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := calls.appends.Load() - before; n < tickets || n > tickets*11/10 {
			t.Errorf("%d calls for %d tickets", n, tickets)
		}
		time.Sleep(200 * time.Millisecond)
		if n := state(t, other).InFlight; n != 0 {
			t.Errorf("%d in flight", n)
		}
		closeGate(t, one, other)
	})
}

// A request of another process that begins to wait has all processes report what they have. So does one that is refused, for
// the next.
func TestNothingWaitsForALateReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := lab.New(1)
		w.SetFaults(lab.Faults{Delay: time.Millisecond})
		server := w.Server()
		one, calls := gateOn(t, server, someTokens())
		other, _ := gateOn(t, server, someTokens())
		for _, wait := range []bool{true, false} {
			becomeCalm(t, one, other)
			time.Sleep(time.Minute)
			becomeCalm(t, one, other)
			ticket := acquire(t, one, costs("a", sluice.Amount{Unit: "tokens", N: 900}))
			answer(t, ticket, fine)
			before := calls.appends.Load()
			end(t, ticket, sluice.Amount{Unit: "tokens", N: 1})
			time.Sleep(50 * time.Millisecond)
			if calls.appends.Load() != before {
				t.Error("the report has left although nothing waits")
			}
			began := time.Now()
			if wait {
				end(t, acquire(t, other, costs("a", sluice.Amount{Unit: "tokens", N: 500})))
			} else {
				if _, err := other.Try(context.Background(), costs("a", sluice.Amount{Unit: "tokens", N: 500})); err == nil {
					t.Error("what was not reported yet is not charged")
				}
				time.Sleep(10 * time.Millisecond)
				next, err := other.Try(context.Background(), costs("a", sluice.Amount{Unit: "tokens", N: 500}))
				if err != nil {
					t.Fatal(err)
				}
				end(t, next)
			}
			if took := time.Since(began); took > 20*time.Millisecond {
				t.Errorf("waits %v: it took %v", wait, took)
			}
		}
		closeGate(t, one, other)
	})
}

// Closing a gate leaves no report behind, and neither does an outage. Where requests have places, a free one is told soon.
func TestLateReportsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := lab.New(1).Server()
		watch, _ := gateOn(t, server, someTokens())
		check := func(what string, want int) {
			t.Helper()
			if n := state(t, watch).InFlight; n != want {
				t.Errorf("%s: %d in flight, want %d", what, n, want)
			}
		}
		use := func(g *sluice.Gate) {
			ticket := acquire(t, g, from("a"))
			answer(t, ticket, fine)
			end(t, ticket)
		}
		g, _ := gateOn(t, server, someTokens())
		becomeCalm(t, watch, g)
		use(g)
		time.Sleep(20 * time.Millisecond)
		check("at first", 1)
		closeGate(t, g)
		check("after the gate was closed", 0)

		g, _ = gateOn(t, server, someTokens())
		becomeCalm(t, watch, g)
		use(g)
		server.Stall(5 * time.Second)
		time.Sleep(10 * time.Second)
		check("after an outage", 0)

		placed, _ := gateOn(t, server, someTokens(), places(5))
		becomeCalm(t, watch, g, placed)
		use(g)
		time.Sleep(20 * time.Millisecond)
		check("with places", 0)
		closeGate(t, g, placed, watch)
	})
}
