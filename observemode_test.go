package sluice_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

var errRefused = errors.New("429 from the provider")

// observed is a resource in mode observe, with limits that would hold nearly every request.
func observed() map[string]sluice.Resource {
	return map[string]sluice.Resource{"api": {Observe: true, Limits: []sluice.Limit{rolling(5, 24*time.Hour), places(1)}}}
}

// Twenty requests to an exhausted provider are twenty arrivals. They leave no trace for later requests in mode gate.
func TestObserveIsNoWorseThanNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newShared(t)
		g := st.open(t, sluice.Config{Resources: observed(), Slots: sluice.Slots{Max: 1}})
		if !inside.Of(g).Observes("api") || inside.Of(g).Observes("other") {
			t.Error("what is observed is not told right")
		}
		arrived := 0
		send := func(context.Context, sluice.Ticket) (sluice.Answer, error) {
			arrived++
			return sluice.Answer{
				Verdict: store.VerdictThrottled, Status: 429, RetryAfter: time.Hour,
				Limits: []sluice.ObservedLimit{{Limit: "rolling", Size: 5, Remaining: 0, ResetIn: time.Hour}},
			}, errRefused
		}
		for range 20 {
			wantTook(t, "one", took(func() {
				if err := g.Do(t.Context(), from("a"), send); err != errRefused {
					t.Errorf("the caller got %v, want what the provider said", err)
				}
			}), 0)
		}
		for _, verdict := range []store.Verdict{store.VerdictOverloaded, store.VerdictExhausted, store.VerdictBilling, store.VerdictError} {
			err := g.Do(t.Context(), from("a"), func(context.Context, sluice.Ticket) (sluice.Answer, error) {
				arrived++
				return sluice.Answer{Verdict: verdict, RetryAfter: time.Hour}, errRefused
			})
			if err != errRefused {
				t.Errorf("%v: %v", verdict, err)
			}
		}
		if arrived != 24 {
			t.Errorf("%d arrivals, want 24", arrived)
		}
		if err := g.Observe(t.Context(), from("a"), sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: time.Hour}); err != nil {
			t.Error(err)
		}
		open := acquire(t, g, from("a")) // and one that is still under way
		if s := state(t, g); s.Sent != 25 || s.Throttled != 22 || s.PausedUntil != nil || s.Consecutive429 != 0 {
			t.Errorf("observed: %+v", s)
		}
		for _, agent := range []string{"a", "b"} { // slots hold nobody either, and nobody is kept from one
			if _, err := g.Join(t.Context(), sluice.JoinRequest{Agent: agent, User: "u"}); err != nil {
				t.Error(err)
			}
		}

		gated := st.open(t, sluice.Config{Slots: sluice.Slots{Max: 1}}, rolling(5, 24*time.Hour), places(1))
		if s := state(t, gated); s.Sent != 0 || len(s.Gates) != 0 || s.Limits[0].Used != 0 || s.Limits[0].Outside != 0 || s.Limits[1].Used != 0 {
			t.Errorf("gated: %+v", s)
		}
		if _, err := gated.Join(t.Context(), sluice.JoinRequest{Agent: "c", User: "u"}); err != nil {
			t.Error(err)
		}
		for range 5 {
			ticket, err := gated.Try(t.Context(), from("p"))
			if err != nil {
				t.Fatalf("somebody is held because of what was observed: %v", err)
			}
			end(t, ticket)
		}
		_, err := gated.Try(t.Context(), from("p"))
		wantError(t, err, sluice.ErrNotNow) // of its own use
		end(t, open)
	})
}

// stuck is a store that stops answering when told to.
type stuck struct {
	store.Store
	now atomic.Bool
}

type stuckPool struct {
	store.Pool
	of *stuck
}

func (s *stuck) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	return &stuckPool{p, s}, err
}

func (p *stuckPool) Apply(ctx context.Context, ops []store.Op) error {
	if p.of.now.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.Pool.Apply(ctx, ops)
}

func (p *stuckPool) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if p.of.now.Load() {
		<-ctx.Done()
		return store.Snapshot{}, ctx.Err()
	}
	return p.Pool.Snapshot(ctx)
}

func TestObserveDoesNotWaitForItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &stuck{Store: memstore.New()}
		defer func() { _ = st.Store.Close() }()
		var h told
		g, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{
			Resources: observed(), Events: h.event, Budgets: []sluice.Budget{{Name: "b", Micros: 100}}, OnStoreFailure: store.FailClosed,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Close() }()
		before, unsent := acquire(t, g, from("a")), acquire(t, g, from("a"))
		paid, refunded := acquire(t, g, costs("a", usd(5))), acquire(t, g, costs("a", usd(6)))
		st.now.Store(true)
		for what, done := range map[string]func() error{
			"giving back": unsent.Cancel, "settling": func() error { return paid.Close(usd(4)) }, "refunding": refunded.Cancel,
		} {
			if d := took(func() {
				if err := done(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}); d > 500*time.Millisecond {
				t.Errorf("%s took %v", what, d)
			}
			time.Sleep(time.Minute) // the store is asked again
		}
		bound := 250 * time.Millisecond
		once := func() {
			ticket, err := g.Acquire(t.Context(), costs("a", usd(90)))
			if err != nil {
				t.Errorf("held, or refused: %v", err)
			}
			_, err = ticket.Answer(sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: time.Hour})
			if err := errors.Join(err, ticket.Keep(t.Context(), time.Minute), ticket.Close(usd(80))); err != nil {
				t.Errorf("the store's silence is told to one who is only observed: %v", err)
			}
		}
		if d := took(once); d > 2*bound {
			t.Errorf("the first took %v", d)
		}
		wantTook(t, "the next", took(once), 0)
		if _, err := before.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
			t.Error(err)
		}
		if err := errors.Join(before.Close(), g.Do(t.Context(), from("c"), ok)); err != nil {
			t.Error(err)
		}
		st.now.Store(false)
		time.Sleep(10 * time.Second)
		end(t, acquire(t, g, from("a")))
		if s := state(t, g); s.Sent < 2 {
			t.Errorf("the store is back, and %d were counted", s.Sent)
		}
		if sends := h.of(inspect.EventSend); len(sends) != 8 {
			t.Errorf("%d sends are on record, want 8", len(sends))
		}
		if given := h.of(inspect.EventCancel); len(given) != 2 {
			t.Errorf("%d cancelled tickets are on record, want 2", len(given))
		}
	})
}

// Reports that a store does not take in mode observe delay no request, however many there are.
func TestObserveDoesNotWaitToReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &stuck{Store: memstore.New()}
		defer func() { _ = st.Store.Close() }()
		g, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{Resources: observed()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Close() }()
		var tickets []sluice.Ticket
		for range 300 {
			tickets = append(tickets, acquire(t, g, from("a")))
		}
		st.now.Store(true)
		all := took(func() {
			for _, ticket := range tickets {
				_, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK, Status: 200})
				if err := errors.Join(err, ticket.Close()); err != nil {
					t.Error(err)
				}
			}
		})
		if all > time.Second {
			t.Errorf("reporting took %v", all)
		}
		st.now.Store(false)
		time.Sleep(time.Minute)
		end(t, acquire(t, g, from("a")))
	})
}

// In mode observe a ticket is given back, answered and closed without waiting for the store. A cancelled ticket is on
// record, also if the store fails, and the store learns of all of them.
func TestObserveDoesNotWaitToGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &stuck{Store: memstore.New()}
		defer func() { _ = st.Store.Close() }()
		var h told
		g, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{Resources: observed(), Events: h.event})
		if err != nil {
			t.Fatal(err)
		}
		back := func(ticket sluice.Ticket) {
			t.Helper()
			wantTook(t, "giving back", took(func() {
				if err := ticket.Cancel(); err != nil {
					t.Error(err)
				}
			}), 0)
		}
		quick, slow, used, last := acquire(t, g, from("a")), acquire(t, g, from("a")), acquire(t, g, from("a")), acquire(t, g, from("a"))
		back(quick)
		time.Sleep(within)
		if given := h.of(inspect.EventCancel); len(given) != 1 || given[0].Ticket != quick.ID() || given[0].Agent != "a" {
			t.Errorf("on record as given back: %+v", given)
		}
		st.now.Store(true)
		back(slow)
		wantTook(t, "answering and closing", took(func() {
			answer(t, used, fine)
			end(t, used)
		}), 0)
		time.Sleep(time.Second)
		if given := h.of(inspect.EventCancel); len(given) != 2 || given[1].Ticket != slow.ID() {
			t.Errorf("on record while the store is silent: %+v", given)
		}
		st.now.Store(false)
		time.Sleep(10 * time.Second)
		if s := state(t, g); s.Sent != 2 || s.InFlight != 1 {
			t.Errorf("%d sent and %d in flight, want 2 and 1", s.Sent, s.InFlight)
		}
		back(last)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if given := h.of(inspect.EventCancel); len(given) != 3 {
			t.Errorf("%d on record after the gate was closed, want 3", len(given))
		}
	})
}

// Only the first end of a ticket counts, whichever it is and whether the store knows of it yet.
func TestObserveGivesNoEndedTicketBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newTapped(t)
		var h told
		g := st.open(t, sluice.Config{Resources: observed(), Events: h.event})
		for _, known := range []time.Duration{0, within} {
			closed, given := acquire(t, g, from("a")), acquire(t, g, from("a"))
			before := len(h.of(inspect.EventCancel))
			end(t, closed)
			time.Sleep(known)
			if err := errors.Join(closed.Cancel(), given.Cancel(), given.Cancel()); err != nil {
				t.Error(err)
			}
			time.Sleep(known)
			if err := errors.Join(given.Cancel(), given.Close()); err != nil {
				t.Error(err)
			}
			time.Sleep(within)
			if n := len(h.of(inspect.EventCancel)) - before; n != 1 {
				t.Errorf("%d tickets are on record as given back, want 1", n)
			}
		}
		if s := state(t, g); s.Sent != 2 || s.InFlight != 0 {
			t.Errorf("%d sent and %d in flight, want 2 and 0", s.Sent, s.InFlight)
		}
	})
}
