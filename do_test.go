package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

var errSend = errors.New("send failed")

// script answers each send with the next verdict, repeats the last one, and records the times of the sends.
type script struct {
	verdicts []store.Verdict
	answer   sluice.Answer // besides the verdict
	takes    time.Duration
	sent     []time.Duration
}

func (s *script) send(context.Context, sluice.Ticket) (sluice.Answer, error) {
	s.sent = append(s.sent, time.Since(bubbleStart))
	time.Sleep(s.takes)
	a := s.answer
	a.Verdict = s.verdicts[min(len(s.sent), len(s.verdicts))-1]
	if a.Verdict == store.VerdictOK {
		return a, nil
	}
	return a, fmt.Errorf("send %d: %w", len(s.sent), errSend)
}

func openRetrying(tb testing.TB, p retry.Policy) *sluice.Gate {
	return openConfig(tb, sluice.Config{
		Retry:     p,
		Agents:    map[string]sluice.Agent{"known": {Class: sluice.P0}},
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Hour), places(5)}}},
	})
}

// wantQuiet fails if a ticket is still open.
func wantQuiet(tb testing.TB, g *sluice.Gate) {
	tb.Helper()
	if s := state(tb, g); s.InFlight != 0 || used(tb, g, "places") != 0 {
		tb.Errorf("%d tickets are still out", s.InFlight)
	}
}

func TestDoSendsOnceWhenAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		s := &script{verdicts: []store.Verdict{store.VerdictOK}}
		if err := g.Do(t.Context(), from("a"), s.send); err != nil {
			t.Fatal(err)
		}
		if len(s.sent) != 1 {
			t.Errorf("%d sends, want 1", len(s.sent))
		}
		if st := state(t, g); st.Sent != 1 || st.Retried != 0 {
			t.Errorf("sent %d, retried %d", st.Sent, st.Retried)
		}
		wantQuiet(t, g)
	})
}

func TestDoReturnsTheErrorOfWhatCannotBeHelped(t *testing.T) {
	for _, v := range []store.Verdict{store.VerdictNone, store.VerdictOK} {
		synctest.Test(t, func(t *testing.T) {
			g := openRetrying(t, retry.Policy{})
			sent := 0
			err := g.Do(t.Context(), from("a"), func(context.Context, sluice.Ticket) (sluice.Answer, error) {
				sent++
				return sluice.Answer{Verdict: v}, errSend
			})
			if !errors.Is(err, errSend) || sent != 1 {
				t.Errorf("%v: %d sends, error %v", v, sent, err)
			}
			wantQuiet(t, g)
		})
	}
}

func TestDoTriesAgainUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		s := &script{verdicts: []store.Verdict{store.VerdictError, store.VerdictOverloaded, store.VerdictThrottled, store.VerdictOK}}
		if err := g.Do(t.Context(), from("a"), s.send); err != nil {
			t.Fatal(err)
		}
		st := state(t, g)
		if st.Sent != 4 || st.Retried != 3 || st.Throttled != 1 || st.Callers[0].Retried != 3 {
			t.Errorf("sent %d, retried %d, throttled %d", st.Sent, st.Retried, st.Throttled)
		}
		wantQuiet(t, g)
	})
}

func TestDoStopsAtTheAttemptsWall(t *testing.T) {
	for attempts, want := range map[int]int{0: retry.DefaultAttempts, 1: 1, 3: 3} {
		synctest.Test(t, func(t *testing.T) {
			g := openRetrying(t, retry.Policy{Attempts: attempts})
			s := &script{verdicts: []store.Verdict{store.VerdictError}}
			err := g.Do(t.Context(), from("a"), s.send)
			e := wantError(t, err, sluice.ErrAttempts)
			if last := fmt.Sprintf("send %d", want); !errors.Is(err, errSend) || len(s.sent) != want || !errorsSay(err, last) {
				t.Errorf("attempts %d: %d sends, %+v wraps the last one: %v", attempts, len(s.sent), e, errors.Is(err, errSend))
			}
			wantQuiet(t, g)
		})
	}
}

// errorsSay reports whether any error of the tree contains the text.
func errorsSay(err error, text string) bool {
	if strings.Contains(err.Error(), text) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return errorsSay(e.Unwrap(), text)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return errorsSay(err, text) })
	}
	return false
}

// Do does not start a wait that would pass the deadline.
func TestDoStopsAtTheDeadlineWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{Attempts: 1000, Deadline: time.Minute})
		s := &script{verdicts: []store.Verdict{store.VerdictError}, answer: sluice.Answer{RetryAfter: 25 * time.Second}}
		var err error
		d := took(func() { err = g.Do(t.Context(), from("a"), s.send) })
		wantError(t, err, sluice.ErrDeadline)
		if !errors.Is(err, errSend) || len(s.sent) != 3 || d < 50*time.Second || d > 52*time.Second {
			t.Errorf("%d sends in %v, error %v; want 3, and no third wait", len(s.sent), d, err)
		}
		wantQuiet(t, g)
	})
}

// The deadline also bounds the wait in the queue.
func TestDoDoesNotQueueBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{Deadline: 90 * time.Second})
		s := &script{verdicts: []store.Verdict{store.VerdictThrottled}}
		var err error
		d := took(func() { err = g.Do(t.Context(), from("a"), s.send) })
		// The first pause is a minute and fits; the second, of two, does not.
		e := wantError(t, err, sluice.ErrDeadline)
		if !errors.Is(err, errSend) || len(s.sent) != 2 || d != time.Minute {
			t.Errorf("%d sends in %v, error %+v", len(s.sent), d, e)
		}
		wantQuiet(t, g)
	})
}

// It is unknown when the open ticket will be closed, so here the deadline itself ends the wait.
func TestDoGivesUpOnAPlaceAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Retry:     retry.Policy{Deadline: 30 * time.Second},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(1)}}},
		})
		held := acquire(t, g, from("a"))
		s := &script{verdicts: []store.Verdict{store.VerdictOK}}
		var err error
		d := took(func() { err = g.Do(t.Context(), from("b"), s.send) })
		if wantError(t, err, sluice.ErrDeadline); d < 30*time.Second || d > 31*time.Second || len(s.sent) != 0 {
			t.Errorf("gave up after %v and %d sends, want 30s", d, len(s.sent))
		}
		end(t, held)
	})
}

func TestDoNeverRetriesABillingStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		s := &script{verdicts: []store.Verdict{store.VerdictBilling}}
		var err error
		wantTook(t, "stopping", took(func() { err = g.Do(t.Context(), from("a"), s.send) }), 0)
		e := wantError(t, err, sluice.ErrBilling)
		if !errors.Is(err, errSend) || len(s.sent) != 1 || e.Hint == "" || e.Agent != "a" {
			t.Errorf("%d sends, %+v", len(s.sent), e)
		}
		wantQuiet(t, g)
	})
}

func TestDoSpreadsRetriesByClass(t *testing.T) {
	for name, c := range map[string]struct {
		req    sluice.Request
		lo, hi []time.Duration // of each retry, in milliseconds
	}{
		"p0":         {classed("a", sluice.P0), []time.Duration{500, 500, 500}, []time.Duration{1000, 2000, 4000}},
		"p1":         {classed("a", sluice.P1), []time.Duration{2000, 2000, 2000}, []time.Duration{4000, 8000, 16000}},
		"p2":         {classed("a", sluice.P2), []time.Duration{5000, 5000, 5000}, []time.Duration{10000, 20000, 40000}},
		"configured": {from("known"), []time.Duration{500, 500, 500}, []time.Duration{1000, 2000, 4000}},
		"no class":   {from("a"), []time.Duration{0, 0, 0}, []time.Duration{1000, 2000, 4000}},
	} {
		t.Run(name, func(t *testing.T) {
			spread := map[time.Duration]bool{}
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					g := openRetrying(t, retry.Policy{Attempts: 4})
					s := &script{verdicts: []store.Verdict{store.VerdictError}}
					wantError(t, g.Do(t.Context(), c.req, s.send), sluice.ErrAttempts)
					for i := range c.lo {
						d := s.sent[i+1] - s.sent[i]
						if d < c.lo[i]*time.Millisecond || d > c.hi[i]*time.Millisecond {
							t.Errorf("retry %d came after %v, want %v to %v ms", i, d, int64(c.lo[i]), int64(c.hi[i]))
						}
						spread[d] = true
					}
				})
			}
			if len(spread) < 30 {
				t.Errorf("60 retries chose only %d different waits", len(spread))
			}
		})
	}
}

func TestDoFollowsAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{Attempts: 2})
		s := &script{verdicts: []store.Verdict{store.VerdictError}, answer: sluice.Answer{RetryAfter: 40 * time.Second}}
		wantError(t, g.Do(t.Context(), from("a"), s.send), sluice.ErrAttempts)
		if d := s.sent[1]; d < 40*time.Second || d > 41*time.Second {
			t.Errorf("the retry came after %v, want 40s and up to one more", d)
		}
	})
}

// While the pool is paused no retry sleeps on its own: the first in the queue goes first after the pause.
func TestDoJoinsTheQueueAtOnceWhileHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		s := &script{verdicts: []store.Verdict{store.VerdictThrottled, store.VerdictOK}}
		c := &crowd{tb: t, gate: g}
		c.wg.Go(func() { c.note("do", g.Do(context.Background(), from("a"), s.send)) })
		synctest.Wait()
		if got := state(t, g).Waiting[sluice.P2]; got != 1 {
			t.Errorf("%d wait right after the refusal, want 1", got)
		}
		c.order()
		if len(s.sent) != 2 || s.sent[1] != time.Minute {
			t.Errorf("sends came at %v, want the second as the pause ends", s.sent)
		}
	})
}

func TestDoIsCancelledInMidSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		s := &script{verdicts: []store.Verdict{store.VerdictError}, answer: sluice.Answer{RetryAfter: time.Minute}}
		var err error
		wantTook(t, "stopping", took(func() { err = g.Do(ctx, from("a"), s.send) }), 2*time.Second)
		wantError(t, err, sluice.ErrCancelled)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errSend) || len(s.sent) != 1 {
			t.Errorf("%d sends, error %v: want the context's and the last send's", len(s.sent), err)
		}
		wantQuiet(t, g)
	})
}

func TestDoClosesTheTicketWhenSendPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v, want the panic of send", r)
				}
			}()
			_ = g.Do(t.Context(), from("a"), func(context.Context, sluice.Ticket) (sluice.Answer, error) { panic("boom") })
		}()
		wantQuiet(t, g)
		if s := state(t, g); s.Sent != 1 {
			t.Errorf("sent %d, want 1: it may have been sent before the panic", s.Sent)
		}
	})
}

func TestDoSettlesUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Size: 1000, Window: time.Hour, Unit: "tokens"})
		err := g.Do(t.Context(), costs("a", sluice.Amount{Unit: "tokens", N: 500}), func(context.Context, sluice.Ticket) (sluice.Answer, error) {
			return sluice.Answer{Verdict: store.VerdictOK, Usage: []sluice.Amount{{Unit: "tokens", N: 123}}}, nil
		})
		if got := used(t, g, "tokens"); err != nil || got != 123 {
			t.Errorf("%d charged, want 123 (%v)", got, err)
		}
	})
}

// send has a fresh ticket and may call Answer while the body is still coming.
func TestDoLetsSendAnswerEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(1, 20*time.Second))
		err := g.Do(t.Context(), from("a"), func(_ context.Context, ticket sluice.Ticket) (sluice.Answer, error) {
			if ticket.Stale() {
				t.Error("the ticket is stale")
			}
			a := sluice.Answer{Verdict: store.VerdictOK}
			answer(t, ticket, a)
			time.Sleep(15 * time.Second)
			return a, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := took(func() { pass(t, g, from("a")) }); d > 6*time.Second {
			t.Errorf("the window was free %v after the end, want 5s: a window after the answer began", d)
		}
	})
}

func TestDoCallsDoNotMindEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openRetrying(t, retry.Policy{})
		c := &crowd{tb: t, gate: g}
		for i := range 20 {
			s := &script{verdicts: []store.Verdict{store.VerdictOK}, takes: time.Second}
			c.wg.Go(func() { c.note("", g.Do(t.Context(), from(fmt.Sprint(i)), s.send)) })
		}
		c.order()
		if last := c.entries[19].at; last != 4*time.Second {
			t.Errorf("20 calls of 1s over 5 places took %v, want 4s", last)
		}
		wantQuiet(t, g)
	})
}
