package sluice_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
)

func everyKind(reset time.Time) []sluice.Limit {
	return []sluice.Limit{
		bucket(10, time.Minute, 10), rolling(10, time.Minute), places(10),
		{Name: "fixed", Kind: sluice.Fixed, Size: 10, Window: time.Hour, Reset: reset},
	}
}

func TestCancelRefundsInFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, everyKind(time.Now().Add(30*time.Minute))...)
		ticket := acquire(t, g, from("a"))
		time.Sleep(time.Second)
		for range 2 { // ending twice does no harm
			if err := ticket.Cancel(); err != nil {
				t.Fatal(err)
			}
		}
		wantUntouched(t, g)
	})
}

func TestCancelLetsTheNextOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(1, time.Hour))
		ticket := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		time.Sleep(time.Second)
		if err := ticket.Cancel(); err != nil {
			t.Fatal(err)
		}
		c.order()
		if at := c.entries[0].at; at != time.Second {
			t.Errorf("the next went at %v, want 1s", at)
		}
	})
}

// A ticket with an answer was sent: Cancel has nothing to give back.
func TestCancelAfterTheAnswerIsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(5, time.Hour), places(5))
		ticket := acquire(t, g, from("a"))
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK})
		if err := ticket.Cancel(); err != nil {
			t.Fatal(err)
		}
		if s := state(t, g); s.Sent != 1 || s.InFlight != 0 || used(t, g, "rolling") != 1 || used(t, g, "places") != 0 {
			t.Errorf("after the answer Cancel left %+v", s)
		}
	})
}

func TestCloseSettlesUsage(t *testing.T) {
	tokens := func(n int64) sluice.Amount { return sluice.Amount{Unit: "tokens", N: n} }
	for name, c := range map[string]struct {
		usage []sluice.Amount
		want  int64
	}{
		"less":           {[]sluice.Amount{tokens(30)}, 30},
		"more":           {[]sluice.Amount{tokens(170)}, 170},
		"nothing":        {[]sluice.Amount{tokens(0)}, 0},
		"as estimated":   {[]sluice.Amount{tokens(100)}, 100},
		"not known":      {nil, 100},
		"other units":    {[]sluice.Amount{{Unit: "points", N: 3}}, 100},
		"makes no sense": {[]sluice.Amount{tokens(-5)}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := sluice.Limit{Kind: sluice.Rolling, Size: 200, Window: time.Hour, Unit: "tokens"}
				limit.Name = "rolling"
				stock := limit
				stock.Name, stock.Kind, stock.Reset = "fixed", sluice.Fixed, time.Now().Add(30*time.Minute)
				drained := limit
				drained.Name, drained.Kind = "bucket", sluice.Bucket
				g := open(t, limit, stock, drained, places(1))
				ticket := acquire(t, g, costs("a", tokens(100)))
				answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK})
				end(t, ticket, c.usage...)
				end(t, ticket, tokens(1)) // the second end says nothing
				for _, limit := range []string{"rolling", "fixed", "bucket"} {
					if got := used(t, g, limit); got != c.want {
						t.Errorf("%s: %d charged, want %d", limit, got, c.want)
					}
				}
				if got := used(t, g, "places"); got != 0 {
					t.Errorf("%d places are still taken", got)
				}
			})
		})
	}
}

// Usage beyond the estimate is charged once it is known, and later requests wait for it.
func TestOverrunDelaysTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "tokens", Kind: sluice.Bucket, Size: 100, Window: time.Second, Unit: "tokens"})
		tokens := func(n int64) sluice.Amount { return sluice.Amount{Unit: "tokens", N: n} }
		end(t, acquire(t, g, costs("a", tokens(100))), tokens(300))
		wantTook(t, "the next", took(func() { pass(t, g, costs("a", tokens(100))) }), 3*time.Second)
	})
}

// Usage of a unit that the request did not ask for is charged when it is stated: the provider has counted it.
func TestUseThatWasNotAskedForIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "tokens", Kind: sluice.Bucket, Size: 100, Window: time.Second, Unit: "tokens"})
		tokens := func(n int64) sluice.Amount { return sluice.Amount{Unit: "tokens", N: n} }
		end(t, acquire(t, g, from("a")), tokens(300))
		wantTook(t, "the next", took(func() { pass(t, g, costs("a", tokens(100))) }), 3*time.Second)
	})
}

// Output is counted while it is produced, so none of it is bounded before the end.
func TestOutputTokensStayOutstandingUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "output", Kind: sluice.Bucket, Size: 100, Window: time.Second, Unit: sluice.OutputTokens})
		ticket := acquire(t, g, costs("a", sluice.Amount{Unit: sluice.OutputTokens, N: 80}))
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK})
		time.Sleep(time.Minute)
		if got := used(t, g, "output"); got != 80 {
			t.Errorf("%d outstanding while the answer is produced, want 80", got)
		}
		end(t, ticket, sluice.Amount{Unit: sluice.OutputTokens, N: 50})
		if got := used(t, g, "output"); got != 50 {
			t.Errorf("%d charged after the end, want 50", got)
		}
		time.Sleep(500 * time.Millisecond)
		if got := used(t, g, "output"); got != 0 {
			t.Errorf("%d has not drained", got)
		}
	})
}

func TestTicketExpires(t *testing.T) {
	for name, c := range map[string]struct{ resource, request, want time.Duration }{
		"default":     {0, 0, 10 * time.Minute},
		"of resource": {time.Minute, 0, time.Minute},
		"of request":  {time.Minute, 5 * time.Second, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, sluice.Resource{TTL: c.resource, Limits: []sluice.Limit{places(1)}})
				req := from("a")
				req.TTL = c.request
				lost := acquire(t, g, req)
				wantTook(t, "the next", took(func() { pass(t, g, from("b")) }), c.want)
				_, err := lost.Answer(sluice.Answer{Verdict: store.VerdictOK})
				wantError(t, err, sluice.ErrEnded)
				wantError(t, lost.Renew(t.Context()), sluice.ErrEnded)
				end(t, lost)
			})
		})
	}
}

func TestStatusKnowsThatATicketExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{TTL: time.Minute, Limits: []sluice.Limit{places(1)}})
		acquire(t, g, from("a"))
		time.Sleep(59 * time.Second)
		if s := state(t, g); s.InFlight != 1 {
			t.Errorf("%d in flight before the end, want 1", s.InFlight)
		}
		time.Sleep(2 * time.Second)
		if s := state(t, g); s.InFlight != 0 || s.Limits[0].Used != 0 {
			t.Errorf("%d in flight, %d used after the end, want 0", s.InFlight, s.Limits[0].Used)
		}
	})
}

func TestZeroTicketHasEnded(t *testing.T) {
	var ticket sluice.Ticket
	for name, err := range map[string]error{"Close": ticket.Close(), "Spent": ticket.CloseUnanswered(), "Cancel": ticket.Cancel()} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK})
	wantError(t, err, sluice.ErrEnded)
	wantError(t, ticket.Renew(t.Context()), sluice.ErrEnded)
	if ticket.Stale() || ticket.Waited() != 0 || !ticket.GrantedAt().IsZero() {
		t.Errorf("the zero ticket is stale, has waited or was granted: %+v", ticket)
	}
}

func TestTicketsHaveTheirOwnIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(10))
		seen := map[string]bool{}
		for range 10 {
			ticket := acquire(t, g, from("a"))
			if ticket.ID() == "" || seen[ticket.ID()] {
				t.Errorf("id %q is not new", ticket.ID())
			}
			seen[ticket.ID()] = true
			end(t, ticket)
		}
	})
}

func TestEndedTicketTakesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		ticket := acquire(t, g, from("a"))
		end(t, ticket)
		_, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictThrottled})
		e := wantError(t, err, sluice.ErrEnded)
		if e.Resource != "api" || e.Hint == "" {
			t.Errorf("got %+v, want the resource and a hint", e)
		}
		if s := state(t, g); s.Throttled != 0 || s.PausedUntil != nil {
			t.Errorf("the answer counted: %+v", s)
		}
	})
}

// Cancelling an ended ticket took its send back in the events, and each repetition did so again.
func TestCancelOfAnEndedTicketChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancels := 0
		g := openConfig(t, sluice.Config{Events: func(e inspect.Event) {
			if e.Kind == inspect.EventCancel {
				cancels++
			}
		}, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(5, time.Hour)}}}})
		sent := acquire(t, g, from("a"))
		answer(t, sent, sluice.Answer{Verdict: store.VerdictOK})
		end(t, sent)
		unsent := acquire(t, g, from("a"))
		for range 2 {
			for _, id := range []string{sent.ID(), unsent.ID()} {
				ticket, err := g.Ticket(id)
				if err == nil {
					err = ticket.Cancel()
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
		if s := state(t, g); cancels != 1 || s.Sent != 1 || s.Limits[0].Used != 1 {
			t.Errorf("%d events, %d sent, %d used; want 1 each", cancels, s.Sent, s.Limits[0].Used)
		}
		ended, err := inside.Of(g).HasEnded(t.Context(), sent)
		held, err2 := inside.Of(g).HasEnded(t.Context(), acquire(t, g, from("a")))
		if !ended || held || err != nil || err2 != nil {
			t.Errorf("ended %v, held %v, %v, %v", ended, held, err, err2)
		}
	})
}
