package sluice_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

func worksFor(tb testing.TB, g *sluice.Gate, child, parent string) {
	tb.Helper()
	if err := g.WorksFor(context.Background(), child, parent); err != nil {
		tb.Fatal(err)
	}
}

// Every process of the store knows a declared dependency, as long as it is repeated.
func TestParentWaitsForItsChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		c := sluice.Config{Agents: map[string]sluice.Agent{"configured": {WaitsFor: []string{"x"}}, "*": {WaitsFor: []string{"everyone's"}}}}
		one, two := s.open(t, c, places(10)), s.open(t, c, places(10))
		lease := join(t, one, sluice.JoinRequest{Agent: "boss"})
		for _, parent := range []string{"boss", "configured", "unknown", "hand", ""} {
			worksFor(t, one, "hand", parent)
		}
		if a := agent(t, two, "boss"); !slices.Equal(a.WaitsFor, []string{"everyone's", "hand"}) {
			t.Errorf("boss waits for %q", a.WaitsFor)
		}
		if got := living(t, two); got != "boss" {
			t.Errorf("alive are %q", got)
		}
		refuse(t, one, sluice.Answer{RetryAfter: time.Hour})
		crowd := &crowd{tb: t, gate: one}
		crowd.ask("hand", from("hand"))
		wantHeld(t, two, "boss hand", "api: paused for another 1h0m0s")
		wantHeld(t, two, "configured hand", "api: paused for another 1h0m0s")
		wantFreeToStart(t, two, "unknown", "x")
		time.Sleep(5*time.Minute - time.Second)
		wantHeld(t, two, "boss hand", "api: paused for another 55m1s")
		worksFor(t, one, "hand", "boss") // it goes on
		time.Sleep(time.Second)
		wantHeld(t, two, "boss hand", "api: paused for another 55m0s")
		wantFreeToStart(t, two, "configured") // nobody says so any more
		time.Sleep(5 * time.Minute)
		wantFreeToStart(t, two, "boss")
		leave(t, lease)
		if err := one.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		crowd.order()
	})
}

// A parent that appears later is known soon: earlier calls in vain do not matter.
func TestParentThatAppearsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, hundred())
		for i := range 100 {
			worksFor(t, g, "hand", fmt.Sprint("nobody", i))
		}
		worksFor(t, g, "hand", "boss")
		if err := g.Heartbeat(t.Context(), sluice.JoinRequest{Agent: "boss"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		worksFor(t, g, "hand", "boss")
		if a := agent(t, g, "boss"); !slices.Equal(a.WaitsFor, []string{"hand"}) {
			t.Errorf("it waits for %q", a.WaitsFor)
		}
	})
}

// What one agent can declare about others is bounded.
func TestParentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, hundred())
		for i := range 40 {
			if err := g.Heartbeat(t.Context(), sluice.JoinRequest{Agent: fmt.Sprintf("boss%02d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 40 {
			worksFor(t, g, "hand", fmt.Sprintf("boss%02d", i))
		}
		worksFor(t, g, "hand", strings.Repeat("x", 1000))
		worksFor(t, g, strings.Repeat("x", 1000), "boss00")
		n := 0
		for _, a := range status(t, g).Agents {
			n += len(a.WaitsFor)
		}
		if n != 16 {
			t.Errorf("%d wait for it, want 16", n)
		}
	})
}

func TestWhoIsHeldAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, b := chained(t, places(10))
		look := func(agent string) inspect.Backpressure {
			b, err := g.Backpressure(t.Context(), agent)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if got := fmt.Sprint(look("")); got != "{[] []}" {
			t.Errorf("it is %s", got)
		}
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("c", from("c"))
		if got, want := fmt.Sprint(look("")), "{[{a [a b c] api: paused for another 1m0s} {b [b c] api: paused for another 1m0s}] []}"; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(look("b")), "{[{b [b c] api: paused for another 1m0s}] []}"; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		if err := b.WaitFor(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for agent, want := range map[string]string{"": "{[] [[a b]]}", "a": "{[] [[a b]]}", "c": "{[] []}", "nobody": "{[] []}"} {
			if got := fmt.Sprint(look(agent)); got != want {
				t.Errorf("of %q it is %s, want %s", agent, got, want)
			}
		}
		c.order()
		leave(t, a, b)
	})
}
