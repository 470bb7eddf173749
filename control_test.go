package sluice_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

func TestPauseHoldsEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(100, time.Minute))
		if err := g.Pause(t.Context(), "api", 10*time.Second, "maintenance"); err != nil {
			t.Fatal(err)
		}
		s := state(t, g)
		if s.PausedUntil == nil || !s.PausedUntil.Equal(bubbleStart.Add(10*time.Second)) || s.PauseReason != "maintenance" {
			t.Errorf("paused until %v for %q", s.PausedUntil, s.PauseReason)
		}
		_, err := g.Try(t.Context(), from("a"))
		if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "paused" || !e.RetryAt.Equal(bubbleStart.Add(10*time.Second)) {
			t.Errorf("got %+v", e)
		}
		wantTook(t, "waiting for the end of the pause", took(func() { pass(t, g, from("a")) }), 10*time.Second)
	})
}

func TestResumeEndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(100, time.Minute))
		refuse(t, g, sluice.Answer{})
		if err := g.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		if s := state(t, g); s.PausedUntil != nil || s.Consecutive429 != 0 {
			t.Errorf("still paused until %v after %d refusals", s.PausedUntil, s.Consecutive429)
		}
		wantTook(t, "a request after the pause", took(func() { pass(t, g, from("a")) }), 0)
	})
}

func TestPauseRefusesNonsense(t *testing.T) {
	g := open(t, rolling(100, time.Minute))
	for _, d := range []time.Duration{0, -time.Second, 32 * 24 * time.Hour} {
		wantError(t, g.Pause(t.Context(), "api", d, ""), sluice.ErrInvalid)
	}
	wantError(t, g.Pause(t.Context(), "other", time.Second, ""), sluice.ErrUnknownResource)
	wantError(t, g.Resume(t.Context(), "other"), sluice.ErrUnknownResource)
	wantError(t, g.Observe(t.Context(), sluice.Request{Resource: "other"}, sluice.Answer{}), sluice.ErrUnknownResource)
	wantError(t, g.Observe(t.Context(), sluice.Request{Resource: "api", Model: string(make([]byte, 300))}, sluice.Answer{}), sluice.ErrInvalid)
	wantUntouched(t, g)
}

// In mode observe a pause would hold nothing.
func TestPauseRefusesModeObserve(t *testing.T) {
	g := openConfig(t, sluice.Config{Resources: observed()})
	if e := wantError(t, g.Pause(t.Context(), "api", time.Second, ""), sluice.ErrInvalid); e.Hint == "" {
		t.Errorf("%+v has no hint", e)
	}
}

// A response without a ticket teaches limits and pauses its scope.
func TestObserveLearnsAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "day", Kind: sluice.Fixed, Size: 100, Window: 24 * time.Hour})
		err := g.Observe(t.Context(), from("a"), sluice.Answer{
			Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "day", Size: 100, Remaining: 30, ResetIn: time.Hour}, {Limit: "none"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := used(t, g, "day"); got != 70 {
			t.Errorf("%d used, want 70", got)
		}
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		if err := g.Observe(t.Context(), opus, sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: 30 * time.Second, Scope: sluice.PerModel}); err != nil {
			t.Fatal(err)
		}
		_, err = g.Try(t.Context(), opus)
		wantError(t, err, sluice.ErrNotNow)
		pass(t, g, sluice.Request{Resource: "api", Agent: "a", Class: sluice.P0, Model: "haiku"})
	})
}

func TestResourceIsTheSameAsInStatus(t *testing.T) {
	g := open(t, rolling(100, time.Minute))
	pass(t, g, from("a"))
	one, err := g.Resource(t.Context(), "api")
	if err != nil || one.Mode != "gate" || one.Sent != 1 || one.Limits[0].Remaining != 99 {
		t.Errorf("got %+v, %v", one, err)
	}
	_, err = g.Resource(t.Context(), "other")
	wantError(t, err, sluice.ErrUnknownResource)
}

// A ticket can be used by its id, as another process does.
func TestTicketByID(t *testing.T) {
	g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"search.api-v2": {Limits: []sluice.Limit{places(1)}}}})
	req := sluice.Request{Resource: "search.api-v2", Agent: "a"}
	ticket := acquire(t, g, req)
	same, err := g.Ticket(ticket.ID())
	if err != nil || same.ID() != ticket.ID() || ticketid.Resource(ticket.ID()) != "search.api-v2" {
		t.Fatalf("ticket %q is %q, %v", ticket.ID(), same.ID(), err)
	}
	answer(t, same, sluice.Answer{Verdict: store.VerdictOK})
	end(t, same)
	end(t, same) // twice does no harm
	if _, err := same.Answer(sluice.Answer{}); err != nil {
		wantError(t, err, sluice.ErrEnded)
	} else {
		t.Error("an ended ticket can be answered")
	}
	pass(t, g, req)
}

func TestUnknownAndMalformedTickets(t *testing.T) {
	g := open(t, places(1))
	for _, id := range []string{"api.77-1", "api.1-77"} {
		stranger, err := g.Ticket(id)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stranger.Answer(sluice.Answer{Verdict: store.VerdictOK})
		wantError(t, err, sluice.ErrUnknownTicket)
		wantError(t, stranger.Close(), sluice.ErrUnknownTicket)
	}
	for _, id := range []string{"", "api", "api.", "api.1", "api.1-", "api.-1", "api.1-0", "api.x-1", "1-1", "api.1-1-1"} {
		if _, err := g.Ticket(id); err == nil {
			t.Errorf("%q passes for a ticket", id)
		} else if e := wantError(t, err, sluice.ErrInvalid); e.Hint == "" {
			t.Errorf("%q: no hint", id)
		}
	}
	_, err := g.Ticket("other.1-1")
	wantError(t, err, sluice.ErrUnknownResource)
	wantUntouched(t, g)
}

// skewed is a store whose clock is two hours behind.
type skewed struct{}

const behind = 2 * time.Hour

func (skewed) Now() store.Time { return store.Time(time.Now().Add(-behind).UnixMicro()) }

func (skewed) AfterFunc(d time.Duration, f func()) memstore.Timer {
	return skewedTimer{time.AfterFunc(d, f)}
}

type skewedTimer struct{ *time.Timer }

func (t skewedTimer) Reset(d time.Duration) { t.Timer.Reset(d) }
func (t skewedTimer) Stop()                 { t.Timer.Stop() }

func init() {
	store.Register("skewed", func(context.Context, string) (store.Store, error) {
		return memstore.New(memstore.WithClock(skewed{})), nil
	})
}

// Times are shown on the reader's clock, whatever the store's clock says.
func TestTimesAreTheReadersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		g := openConfig(t, sluice.Config{
			Store: "skewed:", Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(10, time.Minute)}}},
		})
		now := time.Now().UTC()
		ticket := acquire(t, g, from("a"))
		if !ticket.GrantedAt().Equal(now) {
			t.Errorf("granted at %v, want %v", ticket.GrantedAt(), now)
		}
		if _, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "a"}); err != nil {
			t.Fatal(err)
		}
		refuse(t, g, sluice.Answer{RetryAfter: time.Minute})
		_, err := g.Try(t.Context(), from("a"))
		if e := wantError(t, err, sluice.ErrNotNow); !e.RetryAt.Equal(now.Add(time.Minute)) {
			t.Errorf("retry at %v, want in a minute", e.RetryAt)
		}
		s, err := g.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Resources[0].PausedUntil; got == nil || !got.Equal(now.Add(time.Minute)) {
			t.Errorf("paused until %v, want in a minute", got)
		}
		if got := s.Agents[0].LeaseStartedAt; got == nil || !got.Equal(now) {
			t.Errorf("lease since %v, want %v", got, now)
		}
		rep, err := g.Report(t.Context(), now.Add(-time.Minute))
		if err != nil || rep.Resources[0].Total.FirstSends != 2 || rep.Resources[0].Since.Before(now.Add(-2*time.Minute)) {
			t.Errorf("report is %+v, %v", rep, err)
		}
		for minute := range rep.Resources[0].Total.Minutes {
			if !minute.Equal(now.Truncate(time.Minute)) {
				t.Errorf("sent in the minute %v, want %v", minute, now.Truncate(time.Minute))
			}
		}
	})
}
