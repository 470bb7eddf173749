package sluice_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

func TestAcquireWaitsAsLongAsABucketNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(5, time.Second, 10))
		wantTook(t, "the burst", took(func() {
			for range 10 {
				pass(t, g, from("a"))
			}
		}), 0)
		for range 5 {
			wantTook(t, "one more", took(func() { pass(t, g, from("a")) }), 200*time.Millisecond)
		}
		wantTook(t, "half the burst", took(func() {
			pass(t, g, costs("a", sluice.Amount{Unit: sluice.Requests, N: 5}))
		}), time.Second)
	})
}

func TestAcquireWaitsForARollingWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = time.Minute
		g := open(t, rolling(3, window))
		for range 3 {
			pass(t, g, from("a"))
			time.Sleep(10 * time.Second)
		}
		// The first is a window old in 30 s, and its slice of 1/256 window a little later.
		d := took(func() { pass(t, g, from("a")) })
		if d < 30*time.Second || d > 30*time.Second+window/256 {
			t.Errorf("waited %v, want 30s and at most a slice", d)
		}
		d = took(func() { pass(t, g, from("a")) })
		if d > 10*time.Second || d < 10*time.Second-window/256 {
			t.Errorf("the next waited %v, want until the second one is a window old", d)
		}
	})
}

func TestAcquireWaitsForTheResetOfAFixedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := time.Now().Add(20 * time.Minute)
		g := open(t, sluice.Limit{Name: "hour", Kind: sluice.Fixed, Size: 2, Window: time.Hour, Reset: reset})
		pass(t, g, from("a"))
		pass(t, g, from("a"))
		d := took(func() { pass(t, g, from("a")) })
		// A stated reset was rounded to seconds: the new window opens at the end of what it may mean.
		if d < 20*time.Minute || d > 20*time.Minute+1200*time.Millisecond {
			t.Errorf("waited %v, want until the reset in 20m", d)
		}
		pass(t, g, from("a"))
		if d := took(func() { pass(t, g, from("a")) }); d < 59*time.Minute || d > time.Hour {
			t.Errorf("waited %v for the second reset, want about an hour", d)
		}
	})
}

func TestAcquireWaitsForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(2))
		c := &crowd{tb: t, gate: g}
		c.hold(t.Context(), "long", from("a"), 7*time.Second)
		c.hold(t.Context(), "short", from("b"), 3*time.Second)
		wantTook(t, "a place", took(func() {
			ticket := acquire(t, g, from("c"))
			if ticket.Waited() != 3*time.Second {
				t.Errorf("Waited says %v", ticket.Waited())
			}
			if got := ticket.GrantedAt(); !got.Equal(time.Now()) {
				t.Errorf("GrantedAt says %v, now is %v", got, time.Now())
			}
			end(t, ticket)
		}), 3*time.Second)
		c.order()
	})
}

func TestAcquireTakesFromAllLimitsOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1), sluice.Limit{Name: "roomy", Kind: sluice.Bucket, Size: 100, Window: time.Second})
		first := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		if got := used(t, g, "roomy"); got != 1 {
			t.Errorf("one that waits holds %d of the limit that has room, want nothing", got-1)
		}
		end(t, first)
		c.order()
	})
}

func TestCancelledWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 1))
		pass(t, g, from("a"))
		ctx, cancel := context.WithCancel(t.Context())
		c := &crowd{tb: t, gate: g}
		c.hold(ctx, "gone", from("a"), 0)
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if len(c.entries) != 1 || c.entries[0].at != time.Second {
			t.Fatalf("the cancelled one has not returned at once: %+v", c.entries)
		}
		e := wantError(t, c.entries[0].err, sluice.ErrCancelled)
		if !errors.Is(e, context.Canceled) || e.Resource != "api" || e.Agent != "a" {
			t.Errorf("got %+v, want the context's error and who asked", e)
		}
		wantTook(t, "the next", took(func() { pass(t, g, from("a")) }), 9*time.Second)
	})
}

func TestDeadlineThatCannotBeMetFailsAtOnce(t *testing.T) {
	for _, limit := range []sluice.Limit{
		bucket(1, 10*time.Second, 1), rolling(1, 10*time.Second),
		{Name: "fixed", Kind: sluice.Fixed, Size: 1, Window: time.Hour, Reset: bubbleStart.Add(10 * time.Second)},
	} {
		t.Run(limit.Kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, limit)
				pass(t, g, from("a"))
				ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
				defer cancel()
				var err error
				wantTook(t, "failing", took(func() { _, err = g.Acquire(ctx, from("a")) }), 0)
				e := wantError(t, err, sluice.ErrDeadline)
				if e.Limit != limit.Name || e.Reason != "deadline" {
					t.Errorf("got limit %q, reason %q", e.Limit, e.Reason)
				}
				if at := time.Until(e.RetryAt); at < 10*time.Second || at > 12*time.Second {
					t.Errorf("RetryAt is %v from now, want about 10s", at)
				}
				if s := state(t, g); s.Sent != 1 || s.Waiting[sluice.P2] != 0 {
					t.Errorf("something was charged or left: %+v", s)
				}
			})
		})
	}
}

func TestDeadlineThatCanBeMetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 1))
		pass(t, g, from("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		wantTook(t, "waiting", took(func() {
			if _, err := g.Acquire(ctx, from("a")); err != nil {
				t.Error(err)
			}
		}), 10*time.Second)
	})
}

func TestDeadlineCountsThoseAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 1))
		pass(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("first", from("a"))
		c.ask("second", from("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		wantTook(t, "failing", took(func() {
			_, err := g.Acquire(ctx, from("a"))
			wantError(t, err, sluice.ErrDeadline)
		}), 0)
		c.order()
	})
}

// It is unknown when the open ticket will be closed, so Acquire waits until the deadline.
func TestDeadlinePassesWhileWaitingForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		held := acquire(t, g, from("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var err error
		wantTook(t, "waiting", took(func() { _, err = g.Acquire(ctx, from("b")) }), 4*time.Second)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want it to match the context's error", err)
		}
		end(t, held)
		if s := state(t, g); s.Sent != 1 || s.InFlight != 0 {
			t.Errorf("the one that left has been charged: %+v", s)
		}
	})
}

func TestTrySaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 1))
		ticket, err := g.Try(t.Context(), from("a"))
		if err != nil {
			t.Fatal(err)
		}
		end(t, ticket)
		var e *sluice.Error
		wantTook(t, "refusing", took(func() {
			_, err := g.Try(t.Context(), from("a"))
			e = wantError(t, err, sluice.ErrNotNow)
		}), 0)
		if e.Limit != "bucket" || e.Reason != "limit" || !e.RetryAt.Equal(time.Now().Add(10*time.Second)) {
			t.Errorf("got %+v, want limit bucket until 10s from now", e)
		}
		time.Sleep(time.Until(e.RetryAt))
		if _, err := g.Try(t.Context(), from("a")); err != nil {
			t.Errorf("at RetryAt: %v", err)
		}
	})
}

func TestTryDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, time.Second, 4))
		pass(t, g, costs("a", sluice.Amount{Unit: sluice.Requests, N: 4}))
		c := &crowd{tb: t, gate: g}
		c.ask("big", costs("a", sluice.Amount{Unit: sluice.Requests, N: 4}))
		time.Sleep(2 * time.Second) // there is room for a small one
		for _, agent := range []string{"a", "b"} {
			_, err := g.Try(t.Context(), from(agent))
			wantError(t, err, sluice.ErrNotNow)
		}
		c.order()
		if at := c.entries[0].at; at != 4*time.Second {
			t.Errorf("the one who waited went at %v, want 4s", at)
		}
	})
}

// A deadline in years is further away than a store looks ahead.
func TestDeadlineInYearsIsNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, time.Second, 1))
		ctx, cancel := context.WithTimeout(t.Context(), 20*365*24*time.Hour)
		defer cancel()
		for range 2 {
			if _, err := g.Acquire(ctx, from("a")); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTryWhilePlacesAreTakenKnowsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		held := acquire(t, g, from("a"))
		_, err := g.Try(t.Context(), from("b"))
		if e := wantError(t, err, sluice.ErrNotNow); !e.RetryAt.IsZero() || e.Limit != "places" {
			t.Errorf("got %+v, want limit places and no time", e)
		}
		end(t, held)
		if s := state(t, g); s.Sent != 1 {
			t.Errorf("sent %d, want 1", s.Sent)
		}
	})
}

func TestAWaitIsSaidInTwoDigits(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		29_999 * time.Millisecond: "30s", 30 * time.Second: "30s", 987_654 * time.Microsecond: "990ms",
		99_999 * time.Microsecond: "100ms", time.Microsecond: "1µs", 1: "0s", 90*time.Minute + 17*time.Second: "1h30m0s",
	} {
		if got := sluice.InWords(wait).String(); got != want {
			t.Errorf("%v is said as %s, want %s", wait, got, want)
		}
	}
}
