package sluice_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// A ticket of mode observe that ends after a switch to mode gate ends without an error, and touches nothing there, not
// even a ticket with the same number. The same holds the other way.
func TestTicketOutlivesASwitchOfMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newShared(t)
		seen := st.open(t, sluice.Config{Resources: observed()})
		old := acquire(t, seen, from("a")).ID()
		gated := st.open(t, sluice.Config{}, rolling(5, 24*time.Hour), places(1))
		mine := acquire(t, gated, from("b"))
		if old == mine.ID() {
			t.Fatalf("two tickets are called %s", old)
		}
		ticket, err := gated.Ticket(old)
		if err != nil || ticket.ID() != old {
			t.Fatalf("%s is %s, %v", old, ticket.ID(), err)
		}
		held, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: time.Hour})
		if held || err != nil {
			t.Errorf("answered: %v, %v", held, err)
		}
		if err := errors.Join(ticket.Keep(t.Context(), time.Hour), ticket.Close(), ticket.CloseUnanswered(), ticket.Cancel()); err != nil {
			t.Error(err)
		}
		if s := state(t, gated); s.InFlight != 1 || s.PausedUntil != nil || s.Throttled != 0 || s.Limits[0].Used != 1 || s.Limits[1].Used != 1 {
			t.Errorf("the mode gate has something of it: %+v", s)
		}
		wantError(t, ticket.Renew(t.Context()), sluice.ErrEnded) // it would be sent without being counted

		before := state(t, seen).InFlight
		back, err := seen.Ticket(mine.ID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := back.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
			t.Error(err)
		}
		if err := back.Close(); err != nil || state(t, seen).InFlight != before {
			t.Errorf("%v, %d in flight, want %d", err, state(t, seen).InFlight, before)
		}
		own, err := seen.Ticket(old)
		if err == nil {
			err = own.Close()
		}
		if err != nil || state(t, seen).InFlight != before-1 {
			t.Errorf("its own ticket: %v, %d in flight", err, state(t, seen).InFlight)
		}
		unknown, err := seen.Ticket(strings.Replace(old, "-", "-ffff", 1))
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, unknown.Close(), sluice.ErrUnknownTicket)
		end(t, mine)
	})
}
