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

// subscribed returns the windows of a subscription, as in presets.
func subscribed() []sluice.Limit {
	return []sluice.Limit{
		{Name: "plan-7d", Kind: sluice.Fixed, Window: 7 * 24 * time.Hour, Unit: "plan_7d", Plan: true},
		{Name: "plan-5h", Kind: sluice.Fixed, Window: 5 * time.Hour, Unit: "plan_5h", Plan: true},
	}
}

// statesWindow returns an answer that states the shorter window.
func statesWindow(v store.Verdict, used int64, reset time.Duration) sluice.Answer {
	return sluice.Answer{Verdict: v, RetryAfter: reset, Scope: sluice.PerKey, Limits: []sluice.ObservedLimit{
		{Limit: "plan-5h", Size: 1_000_000, Remaining: 1_000_000 - used, ResetIn: reset},
	}}
}

// A used-up window holds background agents until its reset and tells them to start no new work. The highest class
// continues.
func TestAUsedUpWindowHoldsBackgroundAgentsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, subscribed()...)
		person, agent := from("person"), from("agent")
		person.Class, agent.Class = sluice.P0, sluice.P2
		if s, err := g.Resource(t.Context(), person.Resource); err != nil || len(s.Limits) != 0 {
			t.Errorf("windows that no answer has stated are shown: %+v, %v", s.Limits, err)
		}
		first := acquire(t, g, agent) // nobody knows of a subscription yet
		if _, err := first.Answer(statesWindow(store.VerdictOK, 420_000, 72*time.Minute)); err != nil {
			t.Fatal(err)
		}
		_ = first.Close()
		s, err := g.Resource(t.Context(), person.Resource)
		if err != nil || len(s.Limits) != 1 || !s.Limits[0].Plan || s.Limits[0].Used != 420_000 || s.Limits[0].GoneAt != nil {
			t.Fatalf("the windows are %+v, %v", s.Limits, err)
		}
		if err := g.Observe(t.Context(), person, statesWindow(store.VerdictOK, 900_000, 72*time.Minute)); err != nil {
			t.Fatal(err)
		}
		s, _ = g.Resource(t.Context(), person.Resource)
		// 90% in 3 h 48 min: the rest lasts for 25 min.
		if gone := s.Limits[0].GoneAt; gone == nil || time.Until(*gone) < 25*time.Minute || time.Until(*gone) > 26*time.Minute {
			t.Errorf("it is said to be gone at %v, now is %v", gone, time.Now())
		}

		ticket := acquire(t, g, person)
		if _, err := ticket.Answer(statesWindow(store.VerdictExhausted, 1_000_000, 72*time.Minute)); err != nil {
			t.Fatal(err)
		}
		_ = ticket.Close()
		s, _ = g.Resource(t.Context(), person.Resource)
		if s.PausedUntil != nil || s.Throttled != 1 {
			t.Errorf("paused until %v, %d throttled: the window is enough to hold who has to wait", s.PausedUntil, s.Throttled)
		}
		var refused *sluice.Error
		if _, err := g.Try(t.Context(), agent); !errors.As(err, &refused) || refused.Limit != "plan-5h" || time.Until(refused.RetryAt) < 70*time.Minute {
			t.Errorf("a background agent gets %v", err)
		}
		_ = acquire(t, g, person).Close()
		if w, err := g.StartNewWork(t.Context(), "agent"); err != nil || w.Start || !strings.Contains(w.Reason, "the window plan-5h is used up for another 1h12m") {
			t.Errorf("a background agent is told %+v, %v", w, err)
		}
		if w, err := g.StartNewWork(t.Context(), "person"); err != nil || !w.Start {
			t.Errorf("the person is told %+v, %v", w, err)
		}

		began := time.Now()
		_ = acquire(t, g, agent).Close() // it waits, and goes by itself
		if waited := time.Since(began); waited < 72*time.Minute || waited > 75*time.Minute {
			t.Errorf("a background agent waited for %v", waited)
		}
		if w, err := g.StartNewWork(t.Context(), "agent"); err != nil || !w.Start {
			t.Errorf("after the reset a background agent is told %+v, %v", w, err)
		}
	})
}

// A window that has only just begun has no forecast. One of the past is none either.
func TestAForecastIsNotInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, append(subscribed(), sluice.Limit{Name: "hour", Kind: sluice.Fixed, Size: 100, Window: time.Hour})...)
		person := from("person")
		person.Class = sluice.P0
		left := 5 * time.Hour
		for used := int64(0); used < 96; used += 8 {
			spend(t, g, person, 8)
			if err := g.Observe(t.Context(), person, statesWindow(store.VerdictOK, used*10_000, left)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			left -= time.Second
		}
		for range 3 {
			s, err := g.Resource(t.Context(), person.Resource)
			if err != nil || len(s.Limits) != 2 {
				t.Fatal(s.Limits, err)
			}
			for _, l := range s.Limits {
				if l.GoneAt != nil && (l.Plan || l.GoneAt.Before(time.Now())) {
					t.Errorf("%s is said to be gone at %v, now is %v", l.Name, l.GoneAt, time.Now())
				}
			}
			time.Sleep(30 * time.Second)
		}
	})
}
