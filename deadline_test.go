package sluice_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// wantWithin fails unless a request is granted that waits at most this long.
func wantWithin(t *testing.T, g *sluice.Gate, req sluice.Request, most time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	start := time.Now()
	ticket, err := g.Acquire(ctx, req)
	if err != nil {
		t.Errorf("%v after %v", err, time.Since(start))
		return
	}
	end(t, ticket)
}

// An urgent new request goes next, however many wait: they do not count against its deadline.
func TestDeadlineOfAnUrgentNewcomer(t *testing.T) {
	for _, order := range []store.Order{store.Fair, store.Strict} {
		t.Run(order.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := openSlow(t, order)
				for range 20 {
					c.ask("", classed("batch", sluice.P2))
				}
				time.Sleep(2500 * time.Millisecond)
				wantWithin(t, c.gate, classed("pager", sluice.P0), 800*time.Millisecond)
				c.order()
			})
		})
	}
}

func TestDeadlineOfANewAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		for range 20 {
			c.ask("", from("batch"))
		}
		time.Sleep(2500 * time.Millisecond)
		wantWithin(t, c.gate, from("newcomer"), 1800*time.Millisecond)
		c.order()
	})
}

// After a pause the rest of this window is available, and all of the next one after the reset.
func TestDeadlineAcrossAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{
			Name: "hour", Kind: sluice.Fixed, Size: 10, Window: time.Hour, Reset: time.Now().Add(5 * time.Minute),
		})
		for range 4 {
			pass(t, g, from("a"))
		}
		refuse(t, g, sluice.Answer{RetryAfter: 10 * time.Second})
		c := &crowd{tb: t, gate: g}
		for range 10 {
			c.send("", from("a"), 0, store.VerdictOK)
		}
		wantWithin(t, g, from("a"), 10*time.Minute)
		c.order()
	})
}

// A queue that shrinks makes room for requests whose deadline seemed too close.
func TestDeadlineIsNotMeasuredByThoseWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		ctx, cancel := context.WithCancel(t.Context())
		for range 20 {
			c.hold(ctx, "", from("a"), 0)
		}
		_, err := c.gate.Try(t.Context(), from("a"))
		if e := wantError(t, err, sluice.ErrNotNow); time.Until(e.RetryAt) != 21*time.Second {
			t.Errorf("behind twenty RetryAt is in %v, want 21s", time.Until(e.RetryAt))
		}
		cancel()
		c.wg.Wait()
		wantWithin(t, c.gate, from("a"), 1100*time.Millisecond)
	})
}

func TestQuotaGoneWithoutAHintPausesLikeARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(100, time.Hour))
		ticket := acquire(t, g, from("a"))
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictExhausted})
		end(t, ticket)
		wantTook(t, "the next", took(func() { pass(t, g, from("a")) }), time.Minute)
	})
}

// A renewal is first in its agent's queue: requests behind it do not count.
func TestDeadlineOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 2))
		ticket, refused := acquire(t, g, from("a")), acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		for range 20 {
			c.ask("", from("a"))
		}
		answer(t, refused, sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: 5 * time.Second})
		end(t, refused)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		wantTook(t, "renewing", took(func() {
			if err := ticket.Renew(ctx); err != nil {
				t.Error(err)
			}
		}), 5*time.Second)
		end(t, ticket)
		c.order()
	})
}

// Many agents that ask once each are served in turn, and the last one is refused at once if it would be late.
func TestDeadlineBehindManyAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		for i := range 100 {
			c.ask("", from(fmt.Sprint("agent", i)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		wantTook(t, "failing", took(func() {
			_, err := c.gate.Acquire(ctx, from("late"))
			wantError(t, err, sluice.ErrDeadline)
		}), 0)
		c.order()
	})
}
