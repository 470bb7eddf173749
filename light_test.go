package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// urgent returns a request that may use what others must leave.
func urgent(agent string) sluice.Request {
	return sluice.Request{Resource: "api", Agent: agent, Class: "p0", Emergency: true}
}

// spend sends n requests.
func spend(tb testing.TB, g *sluice.Gate, req sluice.Request, n int) {
	tb.Helper()
	for i := range n {
		t, err := g.Try(context.Background(), req)
		if err != nil {
			tb.Fatalf("request %d of %d: %v", i, n, err)
		}
		end(tb, t)
	}
}

// wantRefused fails unless a request is refused now for the given reason.
func wantRefused(tb testing.TB, g *sluice.Gate, req sluice.Request, reason string) *sluice.Error {
	tb.Helper()
	t, err := g.Try(context.Background(), req)
	if err == nil {
		_ = t.Cancel()
		tb.Fatalf("%s of %s may go, want it refused: %s", req.Agent, req.Class, reason)
	}
	e := wantError(tb, err, sluice.ErrNotNow)
	if e.Reason != reason {
		tb.Errorf("%s of %s is refused because of %s (%v), want %s", req.Agent, req.Class, e.Reason, e, reason)
	}
	return e
}

// wantTrue fails unless a refusal is accurate: the request can go at the stated time, and not before.
func wantTrue(tb testing.TB, g *sluice.Gate, req sluice.Request, reason string) {
	tb.Helper()
	e := wantRefused(tb, g, req, reason)
	if e.RetryAt.IsZero() {
		tb.Fatalf("refused because of %s, with no word until when", reason)
	}
	if !strings.Contains(e.Error(), reason) || !strings.Contains(e.Error(), e.Limit) || e.Limit == "" {
		tb.Errorf("the error says %q, want %s and the limit", e, reason)
	}
	wait := time.Until(e.RetryAt)
	if wait <= 0 {
		tb.Fatalf("refused until %v, which has been", e.RetryAt)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait/2)
	defer cancel()
	wantTook(tb, "a refusal", took(func() {
		_, err := g.Acquire(ctx, req)
		if d := wantError(tb, err, sluice.ErrDeadline); d.RetryAt != e.RetryAt || d.Limit != e.Limit {
			tb.Errorf("with a deadline it is refused with %+v, want %s until %v", d, e.Limit, e.RetryAt)
		}
	}), 0)
	if early := wait - wait/50 - time.Millisecond; early > 0 {
		time.Sleep(early)
		if t, err := g.Try(context.Background(), req); err == nil {
			_ = t.Cancel()
			tb.Errorf("%s: it can go %v before the moment stated, which is %v ahead", reason, time.Until(e.RetryAt), wait)
		}
	}
	time.Sleep(time.Until(e.RetryAt))
	t, err := g.Try(context.Background(), req)
	if err != nil {
		tb.Fatalf("%s: it cannot go when it was said to, %v later: %v", reason, wait, err)
	}
	_ = t.Cancel()
}

// wantExpected fails unless Why states the reason and an accurate time.
func wantExpected(tb testing.TB, g *sluice.Gate, req sluice.Request, reason string) {
	tb.Helper()
	c := &crowd{tb: tb, gate: g}
	c.ask("", req)
	list, err := g.Why(context.Background(), "api")
	if err != nil || len(list) != 1 {
		tb.Fatalf("why says %+v, %v", list, err)
	}
	w := list[0]
	if w.Reason != reason || w.Limit == "" || w.ExpectedAt == nil {
		tb.Fatalf("why says %+v, want %s, a limit and when", w, reason)
	}
	c.order()
	if late := time.Since(*w.ExpectedAt); late.Abs() > time.Second {
		tb.Errorf("%s: it went %v after it was expected", reason, late)
	}
}

// only turns off everything that these tests are not about.
func only(light sluice.Light, limits ...sluice.Limit) sluice.Config {
	return sluice.Config{
		NoShares: true, NoPacing: true,
		Resources: map[string]sluice.Resource{"api": {Light: light, Breaker: sluice.Breaker{Off: true}, Limits: limits}},
	}
}

// The literal rule: above 20% all classes, from 5 to 20% the highest class, below that emergencies.
func TestStaticLight(t *testing.T) {
	for _, c := range []struct {
		light      sluice.Light
		limit      sluice.Limit
		amber, red int // so many of 1000 can be sent while it is green, and before it is red
	}{
		{sluice.Light{Static: true}, hourly(1000), 800, 950},
		{sluice.Light{Static: true, Green: 50, Red: 30}, hourly(1000), 500, 700},
		{sluice.Light{Static: true, Green: 6}, hourly(1000), 940, 970},
		{sluice.Light{Static: true, Green: 1}, hourly(1000), 990, 1000},
		{sluice.Light{All: true}, rolling(1000, time.Minute), 800, 950},
		{sluice.Light{All: true}, bucket(1000, time.Hour, 1000), 800, 950},
		{sluice.Light{All: true, Static: true}, sluice.Limit{
			Name: "minute", Kind: sluice.Fixed, Size: 1000, Window: time.Minute, Reset: bubbleStart,
		}, 800, 950},
	} {
		t.Run(fmt.Sprintf("%+v %s", c.light, c.limit.Kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openConfig(t, only(c.light, c.limit))
				low, high := classed("low", "p1"), classed("high", "p0")
				spend(t, g, low, c.amber)
				if s := state(t, g); s.Light != "green" || s.Limits[0].Light != "green" {
					t.Errorf("the light is %s with %d used, want green: no less than the threshold is left", s.Light, s.Sent)
				}
				wantRefused(t, g, low, "light")
				if c.red < 1000 {
					spend(t, g, high, c.red-c.amber)
					if s := state(t, g); s.Light != "amber" || s.Limits[0].Light != "amber" {
						t.Errorf("the light is %s with %d used, want amber", s.Light, s.Sent)
					}
					wantRefused(t, g, high, "light")
				}
				spend(t, g, urgent("urgent"), 1000-c.red)
				want := "red"
				if c.red == 1000 {
					spend(t, g, high, 10)
					want = "amber" // there is no red
				}
				if s := state(t, g); s.Light != want {
					t.Errorf("the light is %s with %d used, want %s", s.Light, s.Sent, want)
				}
				wantRefused(t, g, urgent("urgent"), "limit") // nothing is left
			})
		})
	}
}

// On a quota that recovers by itself the light is shown, and holds no request.
func TestLightShinesOnFlows(t *testing.T) {
	for _, limit := range []sluice.Limit{
		rolling(100, time.Minute), bucket(100, time.Minute, 100),
		{Name: "short", Kind: sluice.Fixed, Size: 100, Window: 9 * time.Minute, Reset: bubbleStart},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := openConfig(t, only(sluice.Light{}, limit))
			spend(t, g, classed("low", "p2"), 85)
			if s := state(t, g); s.Light != "amber" {
				t.Errorf("%s: the light is %s", limit.Kind, s.Light)
			}
			spend(t, g, classed("low", "p2"), 15)
			if s := state(t, g); s.Light != "red" {
				t.Errorf("%s: the light is %s", limit.Kind, s.Light)
			}
			wantRefused(t, g, classed("low", "p2"), "limit")
		})
	}
	synctest.Test(t, func(t *testing.T) { // places that are taken are no quota that runs out
		g := openConfig(t, only(sluice.Light{}, places(2)))
		ticket := acquire(t, g, from("a"))
		other := acquire(t, g, from("a"))
		if s := state(t, g); s.Light != "green" {
			t.Errorf("the light is %s", s.Light)
		}
		end(t, ticket)
		end(t, other)
	})
}

// The remaining amount that the provider states counts, not only what we have sent.
func TestLightFollowsTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, only(sluice.Light{Static: true}, hourly(1000)))
		says := func(remaining int64) {
			ticket := acquire(t, g, urgent("x"))
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
				{Limit: "hour", Size: 1000, Remaining: remaining, ResetIn: time.Hour - time.Since(bubbleStart)%time.Hour},
			}})
			end(t, ticket)
		}
		for _, c := range []struct {
			remaining int64
			light     string
		}{{201, "green"}, {100, "amber"}, {49, "red"}} {
			says(c.remaining)
			if s := state(t, g); s.Light != c.light || s.Limits[0].Outside == 0 {
				t.Errorf("%d remain and the light is %s, want %s; outside %d", c.remaining, s.Light, c.light, s.Limits[0].Outside)
			}
		}
		wantRefused(t, g, classed("high", "p0"), "light")
		spend(t, g, urgent("x"), 40)
		time.Sleep(time.Hour + 2*time.Second)
		if s := state(t, g); s.Light != "green" || s.Limits[0].Outside != 0 {
			t.Errorf("after the reset the light is %s, outside %d", s.Light, s.Limits[0].Outside)
		}
		spend(t, g, classed("low", "p2"), 800)
	})
}

// Thresholds sink with the time left to the reset.
func TestLightShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, only(sluice.Light{}, hourly(1000)))
		spend(t, g, classed("low", "p2"), 800)
		time.Sleep(30 * time.Minute)
		spend(t, g, classed("low", "p2"), 100)
		wantRefused(t, g, classed("low", "p2"), "light")
		if s := state(t, g); s.Light != "green" {
			t.Errorf("the light is %s, want green: a tenth is what must be left", s.Light)
		}
		spend(t, g, classed("high", "p0"), 75)
		wantRefused(t, g, classed("high", "p0"), "light")
		time.Sleep(30*time.Minute - time.Second)
		spend(t, g, classed("low", "p2"), 25)
	})
}

func TestEmergencyIsForTheHighestClass(t *testing.T) {
	g := open(t, places(1))
	for _, class := range []string{"p1", "p2", ""} {
		_, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a", Class: class, Emergency: true})
		if e := wantError(t, err, sluice.ErrInvalid); !strings.Contains(e.Error(), `"p0" alone`) || e.Agent != "a" {
			t.Errorf("the error is %q", e)
		}
	}
	wantUntouched(t, g)
}

func TestEmergencyGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		held := acquire(t, g, from("holder"))
		c := &crowd{tb: t, gate: g}
		c.ask("low", classed("low", "p2"))
		c.ask("high", classed("high", "p0"))
		c.ask("emergency", urgent("urgent"))
		if s := state(t, g); s.Waiting["p0"] != 2 || s.Waiting["p2"] != 1 {
			t.Errorf("waiting are %v", s.Waiting)
		}
		end(t, held)
		if got := strings.Join(c.order(), " "); got != "emergency high low" {
			t.Errorf("they went as %s", got)
		}
	})
}

// An emergency need not leave anything to others, but a pause holds it.
func TestEmergencyWaitsForAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		refuse(t, g, sluice.Answer{})
		wantTook(t, "an emergency", took(func() { pass(t, g, urgent("urgent")) }), time.Minute)
	})
}

// Every refusal that keeps room from a request states the time when the request can go.
func TestRefusalsAreTrue(t *testing.T) {
	off := sluice.Light{Off: true}
	noBreaker := sluice.Breaker{Off: true}
	for _, c := range []struct {
		name, reason string
		config       sluice.Config
		resource     sluice.Resource
		prepare      func(tb testing.TB, g *sluice.Gate)
		req          sluice.Request
	}{
		{
			name: "light", reason: "light", resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Breaker: noBreaker},
			prepare: func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("low", "p2"), 800) },
			req:     classed("low", "p2"),
		},
		{
			name: "light for the highest", reason: "light", resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Breaker: noBreaker},
			prepare: func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("high", "p0"), 950) },
			req:     classed("high", "p0"),
		},
		{
			name: "static light", reason: "light",
			resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: sluice.Light{Static: true}, Breaker: noBreaker},
			prepare:  func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("low", "p2"), 800) },
			req:      classed("low", "p2"),
		},
		{
			name: "light on a bucket", reason: "light",
			resource: sluice.Resource{Limits: []sluice.Limit{bucket(100, time.Minute, 100)}, Light: sluice.Light{All: true}},
			prepare:  func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("low", "p2"), 80) },
			req:      classed("low", "p2"),
		},
		{
			name: "light on a window", reason: "light",
			resource: sluice.Resource{Limits: []sluice.Limit{rolling(100, time.Minute)}, Light: sluice.Light{All: true}},
			prepare:  func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("low", "p2"), 80) },
			req:      classed("low", "p2"),
		},
		{
			name: "share", reason: "share", resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: off, Breaker: noBreaker},
			prepare: func(tb testing.TB, g *sluice.Gate) {
				spend(tb, g, classed("high", "p0"), 1)
				for t, err := g.Try(context.Background(), classed("low", "p2")); err == nil; t, err = g.Try(context.Background(), classed("low", "p2")) {
					end(tb, t)
				}
			},
			req: classed("low", "p2"),
		},
		{
			name: "reserve", reason: "reserve",
			resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: off, Breaker: noBreaker, Reserve: 30},
			prepare:  func(tb testing.TB, g *sluice.Gate) { spend(tb, g, classed("high", "p0"), 700) },
			req:      classed("high", "p0"),
		},
		{
			name: "pace", reason: "pace", resource: sluice.Resource{Limits: []sluice.Limit{rolling(60, time.Minute)}},
			prepare: func(tb testing.TB, g *sluice.Gate) {
				pass(tb, g, classed("high", "p0"))
				spend(tb, g, classed("low", "p2"), 3)
			},
			req: classed("low", "p2"),
		},
		{
			name: "breaker", reason: "breaker",
			resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: off},
			prepare:  func(tb testing.TB, g *sluice.Gate) { trip(tb, g, "low", "p2") },
			req:      classed("low", "p2"),
		},
		{
			name: "open breaker", reason: "breaker",
			resource: sluice.Resource{Limits: []sluice.Limit{hourly(1000)}, Light: off, Breaker: sluice.Breaker{Open: true}},
			prepare:  func(tb testing.TB, g *sluice.Gate) { trip(tb, g, "low", "p2") },
			req:      classed("low", "p2"),
		},
	} {
		for _, way := range []string{"try", "why"} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := c.config
					config.Resources = map[string]sluice.Resource{"api": c.resource}
					g := openConfig(t, config)
					c.prepare(t, g)
					if way == "try" {
						wantTrue(t, g, c.req, c.reason)
					} else {
						wantExpected(t, g, c.req, c.reason)
					}
				})
			})
		}
	}
}

// trip sends as fast as possible, with responses that state the remaining amount, until the breaker trips.
func trip(tb testing.TB, g *sluice.Gate, agent, class string) {
	tb.Helper()
	for i := range 900 {
		t, err := g.Try(context.Background(), classed(agent, class))
		if err != nil {
			if e := (*sluice.Error)(nil); errors.As(err, &e) && e.Reason == "breaker" {
				return
			}
			tb.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		answer(tb, t, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
			{Limit: "hour", Size: 1000, Remaining: int64(999 - i), ResetIn: time.Hour - time.Since(bubbleStart)%time.Hour},
		}})
		end(tb, t)
	}
	tb.Fatal("nothing tripped it")
}

// A person at the keyboard has room, whatever the fleet does.
func TestReserveIsForEmergencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{hourly(100)}, Reserve: 30, Light: sluice.Light{Off: true}},
		}})
		spend(t, g, classed("high", "p0"), 70)
		wantRefused(t, g, classed("high", "p0"), "reserve")
		spend(t, g, urgent("person"), 30)
	})
}

func TestLightBreakerAndReserveThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		resource sluice.Resource
		says     string
	}{
		{sluice.Resource{Light: sluice.Light{Green: -1}}, "light: green at -1%"},
		{sluice.Resource{Light: sluice.Light{Green: 100}}, "light: green at 100%"},
		{sluice.Resource{Light: sluice.Light{Red: -1}}, "red at -1%"},
		{sluice.Resource{Light: sluice.Light{Red: 20}}, "green at 20% and red at 20%"},
		{sluice.Resource{Light: sluice.Light{Green: 10, Red: 15}}, "red below green"},
		{sluice.Resource{Reserve: -1}, "reserve: -1%"},
		{sluice.Resource{Reserve: 100}, "reserve: 100%"},
		{sluice.Resource{Breaker: sluice.Breaker{Within: -1}}, "breaker"},
		{sluice.Resource{Breaker: sluice.Breaker{Within: 25 * time.Hour}}, "at most 24h"},
		{sluice.Resource{Breaker: sluice.Breaker{Samples: -1}}, "breaker"},
		{sluice.Resource{Breaker: sluice.Breaker{Samples: 2}}, "3 to 64"},
		{sluice.Resource{Breaker: sluice.Breaker{Samples: 65}}, "3 to 64"},
	} {
		g, err := sluice.Open(t.Context(), sluice.Config{Resources: map[string]sluice.Resource{"api": c.resource}})
		if err == nil {
			t.Errorf("%+v was accepted (%v)", c.resource, g.Close())
			continue
		}
		if e := wantError(t, err, sluice.ErrInvalid); !strings.Contains(e.Error(), c.says) || !strings.Contains(e.Error(), `"api"`) || e.Resource != "api" {
			t.Errorf("the error is %q about %q, want it to say %q", e, e.Resource, c.says)
		}
	}
}

// A light that is calmer than its percentages says so, with the level at which it turns now. One that is static, or that the
// percentages explain, says nothing.
func TestACalmLightIsExplained(t *testing.T) {
	why := func(static bool, used int, after time.Duration) string {
		t.Helper()
		out := ""
		synctest.Test(t, func(t *testing.T) {
			g := newShared(t).open(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {
				Limits: []sluice.Limit{{Name: "fixed", Size: 100, Window: time.Hour, Kind: store.Fixed}}, Light: sluice.Light{Static: static}, Breaker: sluice.Breaker{Off: true},
			}}})
			answer := sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "fixed", Size: 100, Remaining: int64(100 - used), ResetIn: time.Hour - after}}}
			if err := g.Observe(t.Context(), from("a"), answer); err != nil {
				t.Fatal(err)
			}
			out = state(t, g).Limits[0].LightReason
		})
		return out
	}
	for _, c := range []struct {
		static bool
		used   int
		after  time.Duration
		want   string
	}{
		{false, 82, 12 * time.Minute, "green with 18% left: it turns amber below 16%, which shrinks from 20% to 0 until the reset (mode: static keeps 20%)"},
		{false, 96, 30 * time.Minute, "amber with 4% left: it turns red below 2.5%, which shrinks from 5% to 0 until the reset (mode: static keeps 5%)"},
		{true, 82, 12 * time.Minute, ""},
		{false, 82, 0, ""},
		{false, 60, 30 * time.Minute, ""},
		{false, 100, 30 * time.Minute, ""},
	} {
		if got := why(c.static, c.used, c.after); got != c.want {
			t.Errorf("%d used after %v, static %v: %q, want %q", c.used, c.after, c.static, got, c.want)
		}
	}
}
