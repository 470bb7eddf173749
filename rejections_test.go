package sluice_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
)

// rejected is an answer that rejects a request as wrong. The quota has let the request pass.
func rejected(status int) sluice.Answer {
	return sluice.Answer{Verdict: store.VerdictOK, Status: status}
}

// answered sends n requests to a model and gets the answer.
func answered(t *testing.T, g *sluice.Gate, n int, model string, a sluice.Answer) {
	t.Helper()
	for range n {
		req := from("a")
		req.Model = model
		ticket := acquire(t, g, req)
		answer(t, ticket, a)
		end(t, ticket)
	}
}

func TestAProviderThatRejectsEveryRequestIsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(200, time.Minute))
		answered(t, g, 4, "", rejected(404))
		wantState(t, g, inspect.StateFlowing, "")
		answered(t, g, 8, "", rejected(404))
		wantState(t, g, inspect.StateFailing, "12 of 12 answered 404 Not Found")
		answered(t, g, 12, "", rejected(200))
		wantState(t, g, inspect.StateFlowing, "requests pass without waiting")
		answered(t, g, 1, "", rejected(404))
		wantState(t, g, inspect.StateFailing, "13 of 25 answered 404 Not Found")
	})
}

// The count is of the last minute. After it, a resource without requests is idle.
func TestRejectionsEndWithTheirMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(200, time.Minute))
		answered(t, g, 5, "", rejected(403))
		wantState(t, g, inspect.StateFailing, "5 of 5 answered 403 Forbidden")
		time.Sleep(59 * time.Second)
		wantState(t, g, inspect.StateFailing, "5 of 5 answered 403 Forbidden")
		time.Sleep(2 * time.Second)
		wantState(t, g, inspect.StateIdle, "no request was sent in the last minute")
		time.Sleep(10 * time.Second)
		answered(t, g, 2, "", rejected(403))
		wantState(t, g, inspect.StateFlowing, "")
	})
}

// A few wrong requests among good ones are the fault of their caller.
func TestAFewRejectionsAmongGoodAnswersAreNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(500, time.Minute))
		answered(t, g, 60, "", rejected(200))
		answered(t, g, 20, "", rejected(400))
		wantState(t, g, inspect.StateFlowing, "")
	})
}

func TestRejectionsOfOneModelAreFailingByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(500, time.Minute))
		answered(t, g, 50, "good", rejected(200))
		a := rejected(404)
		a.Cause = "the provider does not know model bad"
		answered(t, g, 6, "bad", a)
		wantState(t, g, inspect.StateFailing, "model bad: 6 of 6 answered 404 Not Found: the provider does not know model bad")
		answered(t, g, 60, "bad", rejected(404))
		wantState(t, g, inspect.StateFailing, "model bad: 66 of 66 answered 404 Not Found")
	})
}

func TestSeveralStatusesAreToldAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(500, time.Minute))
		answered(t, g, 3, "", rejected(404))
		answered(t, g, 3, "", rejected(499))
		wantState(t, g, inspect.StateFailing, "6 of 6 answered with errors, the last 499")
	})
}

// Refusals, failures of the provider and billing stops are told in their own ways.
func TestOnlyRejectionsCountAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(500, time.Minute))
		for _, a := range []sluice.Answer{
			{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: time.Millisecond},
			{Verdict: store.VerdictOK, Status: 429},
			{Verdict: store.VerdictNone, Status: 404}, // of a key that is set aside
		} {
			for range 6 {
				if err := g.Observe(t.Context(), from("a"), a); err != nil {
					t.Fatal(err)
				}
			}
			if s, err := g.Resource(t.Context(), "api"); err != nil || s.State == inspect.StateFailing {
				t.Errorf("after %v %d: %s, %s (%v)", a.Verdict, a.Status, s.State, s.Reason, err)
			}
		}
	})
}

// A 401 names the key, by its label.
func TestARejectedKeyIsNamedByItsLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(500, time.Minute))
		for range 5 {
			req := from("a")
			req.Key = "1a2b3c4d"
			if err := g.Observe(t.Context(), req, rejected(401)); err != nil {
				t.Fatal(err)
			}
		}
		wantState(t, g, inspect.StateFailing, "5 of 5 answered 401 Unauthorized: the provider refuses key 1a2b3c4d")
	})
}

// Another process that shares the store sees them, and tells of the state.
func TestRejectionsOfAnotherProcessAreSeenAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, kept := newShared(t), &record{}
		g, watcher := s.open(t, sluice.Config{}, rolling(500, time.Minute)), s.open(t, sluice.Config{Events: kept.add}, rolling(500, time.Minute))
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		answered(t, g, 12, "", rejected(404))
		done.Go(func() { inside.Of(watcher).WatchStates(ctx) })
		time.Sleep(6 * time.Second)
		wantState(t, watcher, inspect.StateFailing, "12 of 12 answered 404 Not Found")
		if e := kept.last(t, inspect.EventState); e.State != inspect.StateFailing || e.Reason != "12 of 12 answered 404 Not Found" {
			t.Errorf("the state is told as %+v", e)
		}
		stop()
		done.Wait()
	})
}
