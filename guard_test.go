package sluice_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

const guardWindow = 20 * time.Second // so the slack is 1 s and headers are slow from 2 s on

// wantFree fails unless the only request of the rolling window is available after the given time and not before, give
// or take a slice.
func wantFree(t *testing.T, g *sluice.Gate, after time.Duration) {
	t.Helper()
	d := took(func() { pass(t, g, from("next")) })
	if d < after || d > after+guardWindow/256+100*time.Millisecond {
		t.Errorf("the window was free after %v, want %v", d, after)
	}
}

func guarded(tb testing.TB, guard store.Guard) *sluice.Gate {
	return openResource(tb, sluice.Resource{Guard: guard, Limits: []sluice.Limit{rolling(1, guardWindow)}})
}

func TestWindowBeginsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardAuto)
		ticket := acquire(t, g, from("a"))
		time.Sleep(1500 * time.Millisecond)
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK})
		time.Sleep(5 * time.Second) // the body; the request has arrived long since
		end(t, ticket)
		wantFree(t, g, guardWindow-5*time.Second)
	})
}

func TestHeldTicketHoldsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardAuto)
		ticket := acquire(t, g, from("a"))
		time.Sleep(3 * guardWindow)
		_, err := g.Try(t.Context(), from("b"))
		if e := wantError(t, err, sluice.ErrNotNow); e.Limit != "rolling" {
			t.Errorf("in the way is %q", e.Limit)
		}
		end(t, ticket)
		wantFree(t, g, guardWindow)
	})
}

func TestSlackBoundsWhereAnswersAreSlow(t *testing.T) {
	for _, guard := range []store.Guard{store.GuardAuto, store.GuardStrict} {
		t.Run(guard.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guarded(t, guard)
				slow := acquire(t, g, from("a"))
				time.Sleep(5 * time.Second)
				answer(t, slow, sluice.Answer{Verdict: store.VerdictOK})
				end(t, slow)
				second := acquire(t, g, from("a"))
				if guard == store.GuardAuto {
					wantFree(t, g, guardWindow+time.Second)
					end(t, second)
					return
				}
				time.Sleep(2 * guardWindow)
				if _, err := g.Try(t.Context(), from("b")); err == nil {
					t.Error("a strict guard went by the slack")
				}
				end(t, second)
			})
		})
	}
}

func TestGuardOffCountsTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardOff)
		ticket := acquire(t, g, from("a"))
		wantFree(t, g, guardWindow)
		end(t, ticket)
	})
}

func TestSpentCountsAsArrivingWithinTheSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardAuto)
		if err := acquire(t, g, from("a")).CloseUnanswered(); err != nil {
			t.Fatal(err)
		}
		if s := state(t, g); s.InFlight != 0 || s.Sent != 1 {
			t.Errorf("in flight %d, sent %d, want 0 and 1", s.InFlight, s.Sent)
		}
		wantFree(t, g, guardWindow+time.Second)
	})
}

// A strict guard relies only on a response and the ticket's TTL.
func TestStrictGuardWaitsForTheTimeToLive(t *testing.T) {
	for name, end := range map[string]func(sluice.Ticket) error{
		"spent":  sluice.Ticket.CloseUnanswered,
		"closed": func(t sluice.Ticket) error { return t.Close() },
		"lost":   func(sluice.Ticket) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guarded(t, store.GuardStrict)
				req := from("a")
				req.TTL = 45 * time.Second
				if err := end(acquire(t, g, req)); err != nil {
					t.Fatal(err)
				}
				wantFree(t, g, 45*time.Second+guardWindow)
			})
		})
	}
}

func TestStaleAfterHalfTheSlack(t *testing.T) {
	for name, c := range map[string]struct {
		resource sluice.Resource
		fresh    time.Duration // 0: for good
	}{
		"default":     {sluice.Resource{Limits: []sluice.Limit{rolling(5, guardWindow)}}, 500 * time.Millisecond},
		"long window": {sluice.Resource{Limits: []sluice.Limit{rolling(5, time.Hour)}}, 15 * time.Second},
		"smallest":    {sluice.Resource{Limits: []sluice.Limit{rolling(5, time.Hour), bucket(5, 100*time.Second, 5)}}, 750 * time.Millisecond},
		"configured":  {sluice.Resource{ArrivalSlack: 4 * time.Second, Limits: []sluice.Limit{rolling(5, time.Hour)}}, 2 * time.Second},
		"guard off":   {sluice.Resource{Guard: store.GuardOff, Limits: []sluice.Limit{rolling(5, guardWindow)}}, 0},
		"places":      {sluice.Resource{Limits: []sluice.Limit{places(5)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, c.resource)
				ticket := acquire(t, g, from("a"))
				time.Sleep(max(c.fresh, time.Minute*time.Duration(b2i(c.fresh == 0))))
				if ticket.Stale() {
					t.Error("stale too early")
				}
				time.Sleep(time.Millisecond)
				if got, want := ticket.Stale(), c.fresh != 0; got != want {
					t.Errorf("stale after half the slack: %v, want %v", got, want)
				}
				end(t, ticket)
			})
		})
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestRenewMakesAFreshTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardAuto)
		ticket := acquire(t, g, from("a"))
		time.Sleep(10 * time.Second)
		if !ticket.Stale() {
			t.Fatal("not stale")
		}
		wantTook(t, "renewing", took(func() {
			if err := ticket.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}), 0)
		if ticket.Stale() || !ticket.GrantedAt().Equal(time.Now()) {
			t.Errorf("still stale: granted at %v", ticket.GrantedAt())
		}
		if ticket.Waited() != 0 {
			t.Errorf("Waited says %v, but nobody held it", ticket.Waited())
		}
		s := state(t, g)
		if s.Sent != 1 || s.InFlight != 1 || s.Limits[0].Used != 1 || s.WaitedMS != 0 {
			t.Errorf("the exchange counts twice: %+v", s)
		}
		end(t, ticket)
		wantFree(t, g, guardWindow)
	})
}

func TestRenewKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guarded(t, store.GuardAuto)
		ticket := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		time.Sleep(5 * time.Second)
		wantTook(t, "renewing", took(func() {
			if err := ticket.Renew(t.Context()); err != nil {
				t.Error(err)
			}
		}), 0)
		end(t, ticket)
		c.order()
	})
}

// pauseAll pauses the resource for a minute.
func pauseAll(t *testing.T, g *sluice.Gate) {
	t.Helper()
	refused := acquire(t, g, from("refused"))
	answer(t, refused, sluice.Answer{Verdict: store.VerdictThrottled})
	end(t, refused)
}

func TestRenewMayHaveToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Hour))
		ticket := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		pauseAll(t, g)
		time.Sleep(20 * time.Second)
		c.ask("later", from("a"))
		wantTook(t, "renewing", took(func() {
			if err := ticket.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}), 40*time.Second)
		if ticket.Waited() != 40*time.Second {
			t.Errorf("Waited says %v, want 40s", ticket.Waited())
		}
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK})
		end(t, ticket)
		c.order()
	})
}

func TestRenewThatCannotMeetItsDeadlineGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Hour))
		ticket := acquire(t, g, from("a"))
		pauseAll(t, g)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantTook(t, "failing", took(func() {
			wantError(t, ticket.Renew(ctx), sluice.ErrDeadline)
		}), 0)
		if s := state(t, g); s.InFlight != 0 || s.Sent != 1 || s.Limits[0].Used != 1 {
			t.Errorf("the ticket is still charged: %+v", s)
		}
		end(t, ticket)
	})
}

func TestRenewCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Hour))
		ticket := acquire(t, g, from("a"))
		pauseAll(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		wantTook(t, "failing", took(func() {
			wantError(t, ticket.Renew(ctx), sluice.ErrCancelled)
		}), 5*time.Second)
		if s := state(t, g); s.InFlight != 0 || s.Waiting[sluice.P2] != 0 {
			t.Errorf("the ticket is still there: %+v", s)
		}
		end(t, ticket)
		wantError(t, ticket.Renew(t.Context()), sluice.ErrEnded)
	})
}
