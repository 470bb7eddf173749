package sluice_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// A breaker that has turned a class away is shown for a minute, although the highest class still goes.
func TestABreakerThatHoldsAClassIsQueueing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: sluice.Light{Off: true}, Breaker: sluice.Breaker{Open: true}})
		used, refused := 0, false
		send := func(agent, class string) bool {
			ticket, err := g.Try(t.Context(), classed(agent, class))
			if err != nil {
				return false
			}
			used++
			time.Sleep(10 * time.Millisecond)
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
				{Limit: "hour", Size: 1000, Remaining: int64(1000 - used), ResetIn: time.Hour - time.Since(bubbleStart)},
			}})
			end(t, ticket)
			return true
		}
		for range 200 {
			if !send("low", "p2") {
				refused = true
				break
			}
		}
		if !refused {
			t.Fatal("the breaker refused nothing")
		}
		time.Sleep(2 * time.Second) // the pool knows to the second when an agent asked
		if send("low", "p2") {
			t.Fatal("the breaker lets p2 go")
		}
		for range 3 {
			time.Sleep(10 * time.Second)
			if !send("high", "p0") {
				t.Fatal("the breaker holds p0")
			}
			s := wantState(t, g, inspect.StateQueueing, "the breaker on the limit hour holds p2 (")
			if s.Until == nil || s.Limits[0].Breaker == "" {
				t.Errorf("until %v, breaker %q", s.Until, s.Limits[0].Breaker)
			}
		}
		time.Sleep(40 * time.Second)
		if !send("high", "p0") {
			t.Fatal("the breaker holds p0")
		}
		wantState(t, g, inspect.StateFlowing, "")
	})
}

// A pause that another process reports by the ticket's id alone names its agent and how full the limit is.
func TestAPauseNamesTheCallerOfItsTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, kept := newShared(t), &record{}
		g := s.open(t, sluice.Config{}, rolling(10, time.Minute))
		other := s.open(t, sluice.Config{Events: kept.add}, rolling(10, time.Minute))
		pass(t, g, from("indexer"))
		req := from("indexer")
		req.Detached = true
		ticket := acquire(t, g, req)
		known, err := other.Ticket(ticket.ID())
		if err != nil {
			t.Fatal(err)
		}
		answer(t, known, sluice.Answer{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: 30 * time.Second})
		e := kept.last(t, inspect.EventPause)
		if e.Agent != "indexer" || e.Class == "" || e.Limit == "" || e.Used != 2 || e.Size != 10 || e.ForMS < 30_000 || e.Ticket != ticket.ID() {
			t.Errorf("the pause is told as %+v", e)
		}
	})
}

// One key that is not paid for is told for as long as it is used, whatever the other keys do.
func TestAnUnpaidKeyBesidePaidOnesStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := openConfig(t, sluice.Config{Events: kept.add, Resources: map[string]sluice.Resource{"api": {SplitKeys: true, Limits: []sluice.Limit{rolling(100, time.Minute)}}}})
		send := func(key string, a sluice.Answer) {
			req := from("a")
			req.Key = key
			ticket := acquire(t, g, req)
			answer(t, ticket, a)
			end(t, ticket)
		}
		ok, unpaid := sluice.Answer{Verdict: store.VerdictOK, Status: 200}, sluice.Answer{Verdict: store.VerdictBilling, Status: 402, Cause: "the credit is used up"}
		const words = "billing stop: key 11111111: the credit is used up"
		for range 5 {
			send("11111111", unpaid)
			wantState(t, g, inspect.StatePaused, words)
			send("22222222", ok)
			wantState(t, g, inspect.StatePaused, words)
		}
		if n := kept.count(inspect.EventState); n != 1 {
			t.Errorf("%d changes of state were told, want 1", n)
		}
		send("11111111", ok)
		wantState(t, g, inspect.StateFlowing, "")
		send("11111111", unpaid)
		time.Sleep(16 * time.Minute)
		send("22222222", ok)
		wantState(t, g, inspect.StateFlowing, "")
	})
}
