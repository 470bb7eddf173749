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

func newWork(tb testing.TB, g *sluice.Gate, agent string) inspect.NewWork {
	tb.Helper()
	w, err := g.StartNewWork(context.Background(), agent)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// wantHeld fails unless an agent is told to start no new work, because of a chain.
func wantHeld(tb testing.TB, g *sluice.Gate, chain, reason string) {
	tb.Helper()
	names := strings.Fields(chain)
	if w := newWork(tb, g, names[0]); w.Start || !slices.Equal(w.Chain, names) || w.Reason != reason {
		tb.Errorf("%s is told %+v, want to start nothing because of %s: %s", names[0], w, chain, reason)
	}
}

func wantFreeToStart(tb testing.TB, g *sluice.Gate, agents ...string) {
	tb.Helper()
	for _, a := range agents {
		if w := newWork(tb, g, a); !w.Start || len(w.Chain) != 0 || w.Chain == nil || w.Reason != "" {
			tb.Errorf("%s is told %+v, want to go on", a, w)
		}
	}
}

// states lists the state of each agent, and for held agents the chain that holds them.
func states(tb testing.TB, g *sluice.Gate) string {
	tb.Helper()
	var list []string
	for _, a := range status(tb, g).Agents {
		s := a.Name + " " + a.State
		if len(a.PauseChain) > 0 {
			s += " (" + strings.Join(a.PauseChain, ">") + ")"
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// chained returns three agents, each of which waits for the next: by configuration, and by what they declare.
func chained(tb testing.TB, limits ...sluice.Limit) (g *sluice.Gate, a, b *sluice.Lease) {
	tb.Helper()
	g = openConfig(tb, sluice.Config{
		Agents:    map[string]sluice.Agent{"a": {WaitsFor: []string{"b"}}},
		Resources: map[string]sluice.Resource{"api": {Limits: limits}},
	})
	return g, join(tb, g, sluice.JoinRequest{Agent: "a"}), join(tb, g, sluice.JoinRequest{Agent: "b", WaitsFor: []string{"c"}})
}

func TestPauseHoldsEveryoneUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, b := chained(t, places(10))
		wantFreeToStart(t, g, "a", "b", "c")
		refuse(t, g, sluice.Answer{})
		wantFreeToStart(t, g, "a", "b", "c") // a pause that holds nobody up is no reason to stop
		c := &crowd{tb: t, gate: g}
		c.ask("c", from("c"))
		wantHeld(t, g, "a b c", "api: paused for another 1m0s")
		wantHeld(t, g, "b c", "api: paused for another 1m0s")
		wantHeld(t, g, "c", "api: paused for another 1m0s")
		wantFreeToStart(t, g, "d", "")
		if w, err := a.StartNewWork(t.Context()); err != nil || w.Start || !slices.Equal(w.Chain, []string{"a", "b", "c"}) {
			t.Errorf("the lease is told %+v, %v", w, err)
		}
		if got, want := states(t, g), "a held (a>b>c), b held (b>c), c limited, refused active"; got != want {
			t.Errorf("states are\n  %s, want\n  %s", got, want)
		}
		time.Sleep(30 * time.Second)
		wantHeld(t, g, "a b c", "api: paused for another 30s")
		c.order()
		wantFreeToStart(t, g, "a", "b", "c")
		if got, want := states(t, g), "a active, b active, c active, refused active"; got != want {
			t.Errorf("states are\n  %s, want\n  %s", got, want)
		}
		leave(t, a, b)
	})
}

// A short wait for its turn does not hold the agents upstream; a wait of a second or more does.
func TestLongWaitHoldsEveryoneUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, b := chained(t, places(1))
		held := acquire(t, g, from("holder"))
		c := &crowd{tb: t, gate: g}
		c.ask("c", from("c"))
		time.Sleep(time.Second - time.Millisecond)
		wantFreeToStart(t, g, "a", "b", "c")
		if got, want := states(t, g), "a active, b active, c waiting, holder active"; got != want {
			t.Errorf("states are\n  %s, want\n  %s", got, want)
		}
		time.Sleep(time.Millisecond)
		wantHeld(t, g, "a b c", `api: limit (limit "places"), waiting for 1s`)
		c.ask("a", from("a")) // what has begun goes on
		if got, want := states(t, g), "a held (a>b>c), b held (b>c), c limited, holder active"; got != want {
			t.Errorf("states are\n  %s, want\n  %s", got, want)
		}
		end(t, held)
		if got := c.order(); !slices.Equal(got, []string{"c", "a"}) {
			t.Errorf("served %q", got)
		}
		wantFreeToStart(t, g, "a", "b", "c")
		leave(t, a, b)
	})
}

func TestWaitForReplacesWhatWasDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, b := chained(t, places(10))
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("c", from("c"))
		wantHeld(t, g, "a b c", "api: paused for another 1m0s")
		if err := b.WaitFor(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFreeToStart(t, g, "a", "b")
		if err := a.WaitFor(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, g, "a c", "api: paused for another 1m0s")
		if got := agent(t, g, "a").WaitsFor; !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("it waits for %q, want what is configured and what it declared last", got)
		}
		leave(t, a)
		wantFreeToStart(t, g, "a") // the configuration alone counts, and b waits for nobody
		leave(t, b)
		c.order()
	})
}

// Configured dependencies need no lease, also for agents that are not named.
func TestConfiguredWaitsNeedNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents:    map[string]sluice.Agent{"a": {WaitsFor: []string{"c"}}, "c": {}, "*": {WaitsFor: []string{"a", "any"}}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(10)}}},
		})
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("c", from("c"))
		wantHeld(t, g, "a c", "api: paused for another 1m0s")
		wantHeld(t, g, "unknown a c", "api: paused for another 1m0s")
		unnamed := join(t, g, sluice.JoinRequest{Agent: "any"}) // one of those not named cannot wait for itself
		wantHeld(t, g, "any a c", "api: paused for another 1m0s")
		if got := status(t, g).Cycles; len(got) != 0 {
			t.Errorf("cycles are %q", got)
		}
		leave(t, unnamed)
		c.order()
	})
}

// A limit on one resource holds the agents that wait for it on another.
func TestCascadeCrossesResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{places(1)}}, "other": {Limits: []sluice.Limit{hourly(10)}, Light: sluice.Light{Static: true}},
		}})
		writer := join(t, g, sluice.JoinRequest{Agent: "writer", WaitsFor: []string{"reader"}, Resources: []string{"api"}})
		ask := sluice.Request{Resource: "other", Agent: "reader", Class: "p1"}
		for range 8 {
			pass(t, g, ask)
		}
		c := &crowd{tb: t, gate: g}
		ctx, cancel := context.WithCancel(t.Context())
		c.hold(ctx, "", ask, 0)
		wantHeld(t, g, "writer reader", `other: light (limit "hour"), waiting for 0s`)
		cancel()
		c.wg.Wait()
		wantFreeToStart(t, g, "writer")
		leave(t, writer)
	})
}

func TestCyclesAreReportedAndNotFollowedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents:    map[string]sluice.Agent{"a": {WaitsFor: []string{"b"}}, "b": {WaitsFor: []string{"c"}}, "up": {WaitsFor: []string{"a"}}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(10)}}},
		})
		last := join(t, g, sluice.JoinRequest{Agent: "c", WaitsFor: []string{"a"}})
		circle := []string{"a", "b", "c"}
		for _, name := range circle {
			if w := newWork(t, g, name); !w.Start || !slices.Equal(w.Cycle, circle) {
				t.Errorf("%s is told %+v, want of the circle, and to go on: nobody is limited", name, w)
			}
		}
		if w := newWork(t, g, "up"); !w.Start || w.Cycle != nil {
			t.Errorf("up is told %+v, but it is in no circle", w)
		}
		if got := status(t, g).Cycles; len(got) != 1 || !slices.Equal(got[0], circle) {
			t.Errorf("cycles are %q", got)
		}
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		wantHeld(t, g, "up a b", "api: paused for another 1m0s")
		wantHeld(t, g, "c a b", "api: paused for another 1m0s")
		if w := newWork(t, g, "c"); !slices.Equal(w.Cycle, circle) {
			t.Errorf("c is told %+v", w)
		}
		c.order()
		leave(t, last)
		if got := status(t, g).Cycles; len(got) != 0 {
			t.Errorf("cycles are %q after one has left", got)
		}
	})
}

func TestNewWorkAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, b := chained(t, places(1))
		v := asJSON(t, newWork(t, g, "a"))
		if got := keys(t, v); got != "chain reason start_new_work" {
			t.Errorf("keys are %s", got)
		}
		if _, ok := at(t, v, "chain").([]any); !ok {
			t.Errorf("the chain is %v, want a list", at(t, v, "chain"))
		}
		const want = "allocated class lease_expires_at lease_started_at leased machine name pause_chain resource slots state used user waits_for"
		if got := keys(t, at(t, asJSON(t, status(t, g)), "agents", 0)); got != want {
			t.Errorf("keys of an agent are\n  %s, want\n  %s", got, want)
		}
		leave(t, a, b)
	})
}

// A long chain, and an agent that many agents wait for.
func TestLongChains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agents := map[string]sluice.Agent{}
		for i := range 1000 {
			agents[fmt.Sprint("a", i)] = sluice.Agent{WaitsFor: []string{fmt.Sprint("a", i+1)}}
			agents[fmt.Sprint("b", i)] = sluice.Agent{WaitsFor: []string{"a1000"}}
		}
		g := openConfig(t, sluice.Config{Agents: agents, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(1)}}}})
		refuse(t, g, sluice.Answer{})
		c := &crowd{tb: t, gate: g}
		c.ask("", from("a1000"))
		if w := newWork(t, g, "a0"); w.Start || len(w.Chain) != 1001 {
			t.Errorf("told %v with a chain of %d", w.Start, len(w.Chain))
		}
		wantHeld(t, g, "b77 a1000", "api: paused for another 1m0s")
		c.order()
	})
}
