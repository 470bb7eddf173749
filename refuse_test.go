package sluice_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// ways are the ways to ask for a ticket.
var ways = map[string]func(context.Context, *sluice.Gate, sluice.Request) error{
	"Acquire": func(ctx context.Context, g *sluice.Gate, r sluice.Request) error {
		_, err := g.Acquire(ctx, r)
		return err
	},
	"Try": func(ctx context.Context, g *sluice.Gate, r sluice.Request) error {
		_, err := g.Try(ctx, r)
		return err
	},
	"Do": func(ctx context.Context, g *sluice.Gate, r sluice.Request) error {
		return g.Do(ctx, r, func(context.Context, sluice.Ticket) (sluice.Answer, error) {
			return sluice.Answer{}, errors.New("sent although it was to be refused")
		})
	},
}

func TestRequestsThatMakeNoSenseAreRefusedAtOnce(t *testing.T) {
	long := strings.Repeat("x", store.MaxName+1)
	tokens := func(n int64) []sluice.Amount { return []sluice.Amount{{Unit: "tokens", N: n}} }
	for name, c := range map[string]struct {
		req   sluice.Request
		about error
		limit string
	}{
		"unknown resource":  {sluice.Request{Resource: "nothing", Agent: "a"}, sluice.ErrUnknownResource, ""},
		"no resource":       {sluice.Request{Agent: "a"}, sluice.ErrUnknownResource, ""},
		"long resource":     {sluice.Request{Resource: long, Agent: "a"}, sluice.ErrUnknownResource, ""},
		"no agent":          {sluice.Request{Resource: "api"}, sluice.ErrInvalid, ""},
		"long agent":        {sluice.Request{Resource: "api", Agent: long}, sluice.ErrInvalid, ""},
		"long user":         {sluice.Request{Resource: "api", Agent: "a", User: long}, sluice.ErrInvalid, ""},
		"long model":        {sluice.Request{Resource: "api", Agent: "a", Model: long}, sluice.ErrInvalid, ""},
		"long tool":         {sluice.Request{Resource: "api", Agent: "a", Tool: long}, sluice.ErrInvalid, ""},
		"long key":          {sluice.Request{Resource: "api", Agent: "a", Key: long}, sluice.ErrInvalid, ""},
		"unknown class":     {sluice.Request{Resource: "api", Agent: "a", Class: "p9"}, sluice.ErrInvalid, ""},
		"negative cost":     {sluice.Request{Resource: "api", Agent: "a", Cost: tokens(-1)}, sluice.ErrInvalid, ""},
		"smallest cost":     {sluice.Request{Resource: "api", Agent: "a", Cost: tokens(math.MinInt64)}, sluice.ErrInvalid, ""},
		"absurd cost":       {sluice.Request{Resource: "api", Agent: "a", Cost: tokens(math.MaxInt64)}, sluice.ErrInvalid, ""},
		"cost of no unit":   {sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{{N: 1}}}, sluice.ErrInvalid, ""},
		"negative ttl":      {sluice.Request{Resource: "api", Agent: "a", TTL: -1}, sluice.ErrInvalid, ""},
		"absurd ttl":        {sluice.Request{Resource: "api", Agent: "a", TTL: math.MaxInt64}, sluice.ErrInvalid, ""},
		"above capacity":    {sluice.Request{Resource: "api", Agent: "a", Cost: tokens(1001)}, sluice.ErrCapacity, "tokens"},
		"far above":         {sluice.Request{Resource: "api", Agent: "a", Cost: tokens(store.MaxAmount)}, sluice.ErrCapacity, "tokens"},
		"above own":         {sluice.Request{Resource: "api", Agent: "a", Tool: "image_generate"}, sluice.ErrCapacity, "own"},
		"above burst":       {costs("a", sluice.Amount{Unit: sluice.Requests, N: 6}), sluice.ErrCapacity, "bucket"},
		"above concurrency": {costs("a", sluice.Amount{Unit: "places", N: 3}), sluice.ErrCapacity, "seats"},
	} {
		for way, ask := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := open(t, bucket(50, time.Second, 5),
						sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Size: 1000, Window: time.Minute, Unit: "tokens"},
						sluice.Limit{Name: "own", Kind: sluice.Bucket, Size: 9, Window: time.Minute, Unit: sluice.Work, Per: []sluice.Scope{sluice.PerAgent}},
						sluice.Limit{Name: "seats", Kind: sluice.Concurrency, Size: 2, Unit: "places"})
					var e *sluice.Error
					wantTook(t, "refusing", took(func() { e = wantError(t, ask(t.Context(), g, c.req), c.about) }), 0)
					if e.Resource != c.req.Resource || e.Limit != c.limit || !e.RetryAt.IsZero() {
						t.Errorf("got resource %q, limit %q, retry at %v", e.Resource, e.Limit, e.RetryAt)
					}
					if c.about != sluice.ErrInvalid && e.Hint == "" {
						t.Error("there is no hint")
					}
					if len(e.Error()) > 200 {
						t.Errorf("the message repeats what it was given: %d bytes", len(e.Error()))
					}
					wantUntouched(t, g)
				})
			})
		}
	}
}

func TestContextThatIsOverIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, everyKind(time.Time{})...)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancelLate()
		for way, ask := range ways {
			for ctx, cause := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
				err := ask(ctx, g, from("a"))
				wantError(t, err, sluice.ErrCancelled)
				if !errors.Is(err, cause) {
					t.Errorf("%s: %v does not match %v", way, err, cause)
				}
			}
		}
		wantUntouched(t, g)
	})
}

func TestQueueThatIsFullRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{MaxWaiting: 3, Limits: []sluice.Limit{bucket(1, time.Second, 1)}})
		pass(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		for range 3 {
			c.ask("a", from("a"))
		}
		var e *sluice.Error
		wantTook(t, "refusing", took(func() {
			_, err := g.Acquire(t.Context(), from("b"))
			e = wantError(t, err, sluice.ErrFull)
		}), 0)
		if e.Reason != "full" || e.Hint == "" || e.Agent != "b" {
			t.Errorf("got %+v", e)
		}
		if s := state(t, g); s.Waiting[sluice.P2] != 3 || s.Sent != 1 {
			t.Errorf("waiting %v, sent %d", s.Waiting, s.Sent)
		}
		c.order()
		pass(t, g, from("b"))
	})
}

func TestClosedGateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		ticket := acquire(t, g, from("a"))
		for range 2 {
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for way, ask := range ways {
			if err := ask(t.Context(), g, from("a")); !errors.Is(err, sluice.ErrClosed) {
				t.Errorf("%s: %v", way, err)
			}
		}
		_, err := g.Status(t.Context())
		wantError(t, err, sluice.ErrClosed)
		_, err = g.Why(t.Context(), "api")
		wantError(t, err, sluice.ErrClosed)
		_, err = ticket.Answer(sluice.Answer{})
		wantError(t, err, sluice.ErrClosed)
		wantError(t, ticket.Close(), sluice.ErrClosed)
		wantError(t, ticket.Cancel(), sluice.ErrClosed)
		wantError(t, ticket.Renew(t.Context()), sluice.ErrClosed)
	})
}

// No answer, however odd, breaks the gate.
func TestAnswersThatMakeNoSenseDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, everyKind(time.Now().Add(time.Minute))...)
		for _, n := range []int64{math.MinInt64, -7, 0, 1 << 41, math.MaxInt64} {
			for _, limit := range []string{"bucket", "rolling", "fixed", "places", "", "unheard-of"} {
				ticket := acquire(t, g, from("a"))
				answer(t, ticket, sluice.Answer{
					Verdict: store.VerdictOK, RetryAfter: time.Duration(n), Scope: sluice.Scope(n), Cause: strings.Repeat("x", 1000),
					Limits: []sluice.ObservedLimit{{Limit: limit, Size: n, Remaining: n, ResetIn: time.Duration(n)}},
				})
				end(t, ticket, sluice.Amount{Unit: sluice.Requests, N: n}, sluice.Amount{Unit: "", N: n})
				time.Sleep(time.Hour)
			}
		}
		for _, l := range state(t, g).Limits {
			if l.Limit != 10 || l.Used < 0 || l.Remaining < 0 || l.Remaining > 10 {
				t.Errorf("limit is now %+v", l)
			}
		}
		ticket := acquire(t, g, from("a"))
		if held := answer(t, ticket, sluice.Answer{Verdict: store.Verdict(200)}); held {
			t.Error("a verdict that does not exist holds the resource")
		}
		end(t, ticket)
	})
}

func TestHintsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(100, time.Minute))
		for _, hint := range []time.Duration{math.MaxInt64, math.MinInt64} {
			ticket := acquire(t, g, from("a"))
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: hint})
			end(t, ticket)
			if d := time.Until(*state(t, g).PausedUntil); d <= 0 || d > 24*time.Hour {
				t.Errorf("a hint of %v pauses for %v, want at most a day", hint, d)
			}
		}
	})
}
