package sluice_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// openSlow opens a gate that grants one request per second, and uses up the first.
func openSlow(tb testing.TB, order store.Order) *crowd {
	tb.Helper()
	g := openConfig(tb, sluice.Config{
		Order:     order,
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{bucket(1, time.Second, 1)}}},
	})
	pass(tb, g, from("nobody"))
	return &crowd{tb: tb, gate: g}
}

func classed(agent, class string) sluice.Request {
	return sluice.Request{Resource: "api", Agent: agent, Class: class}
}

func wantOrder(tb testing.TB, got []string, want string) {
	tb.Helper()
	if s := strings.Join(got, " "); s != want {
		tb.Errorf("order is\n  %s, want\n  %s", s, want)
	}
}

func TestAgentIsServedInTheOrderItAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		var want []string
		for i := range 20 {
			name := fmt.Sprint("a", i)
			want = append(want, name)
			c.ask(name, from("a"))
		}
		wantOrder(t, c.order(), strings.Join(want, " "))
		for i, e := range c.entries {
			if e.at != time.Duration(i+1)*time.Second {
				t.Errorf("%s went at %v, want %ds", e.who, e.at, i+1)
			}
		}
	})
}

func TestAgentsOfAClassTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		for i := range 4 {
			c.ask(fmt.Sprint("a", i), from("a"))
		}
		for i := range 3 {
			c.ask(fmt.Sprint("b", i), from("b"))
		}
		wantOrder(t, c.order(), "a0 b0 a1 b1 a2 b2 a3")
	})
}

func TestClassesGetTheirShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		const each = 60
		for i, class := range []string{sluice.P2, sluice.P1, sluice.P0} {
			for k := range each {
				c.ask(class, classed(fmt.Sprintf("agent-%d-%d", i, k%3), class))
			}
		}
		order := c.order()
		count := map[string]int{}
		const contended = 100 // p0's 60 last for 150 grants
		for _, class := range order[:contended] {
			count[class]++
		}
		for class, share := range map[string]float64{sluice.P0: 40, sluice.P1: 35, sluice.P2: 25} {
			if got := float64(count[class]) * 100 / contended; math.Abs(got-share) > 2 {
				t.Errorf("%s got %.1f%% of the grants, want %.0f%%", class, got, share)
			}
		}
	})
}

func TestLoneClassUsesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Fair)
		for i := range 10 {
			c.ask(fmt.Sprint(i), classed("a", sluice.P2))
		}
		c.order()
		if last := c.entries[9].at; last != 10*time.Second {
			t.Errorf("the tenth went at %v, want 10s: nothing is kept for classes that want nothing", last)
		}
	})
}

func TestStrictOrderPutsClassesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.Strict)
		for i, class := range []string{sluice.P2, sluice.P1, sluice.P0} {
			for k := range 2 {
				c.ask(fmt.Sprint(class, k), classed(fmt.Sprint("agent", i), class))
			}
		}
		wantOrder(t, c.order(), "p00 p01 p10 p11 p20 p21")
	})
}

func TestFIFOIsFirstComeFirstServedOverEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openSlow(t, store.FIFO)
		var want []string
		for i, class := range []string{sluice.P2, sluice.P0, sluice.P2, sluice.P1, sluice.P0, sluice.P2} {
			name := fmt.Sprint(i)
			want = append(want, name)
			c.ask(name, classed(fmt.Sprint("agent", i%2), class))
		}
		wantOrder(t, c.order(), strings.Join(want, " "))
	})
}

func TestClassComesFromTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Order:     store.Strict,
			Classes:   []sluice.Class{{Name: "urgent", Share: 3}, {Name: "normal", Share: 2}, {Name: "idle", Share: 1}},
			Agents:    map[string]sluice.Agent{"pager": {Class: "urgent"}, "batch": {Class: "idle"}, "*": {Class: "normal"}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{bucket(1, time.Second, 1)}}},
		})
		pass(t, g, from("nobody"))
		c := &crowd{tb: t, gate: g}
		c.ask("batch", from("batch"))
		c.ask("other", from("somebody"))
		c.ask("pager", from("pager"))
		c.ask("asked-for", classed("batch", "urgent"))
		if got := state(t, g).Waiting; got["urgent"] != 2 || got["normal"] != 1 || got["idle"] != 1 {
			t.Errorf("waiting by class: %v", got)
		}
		wantOrder(t, c.order(), "pager asked-for other batch")
	})
}

// A request that needs much of two limits is not starved by small ones on each, and requests that need neither do not
// wait for it.
func TestBigRequestGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := sluice.Limit{Name: "tokens", Kind: sluice.Bucket, Size: 10, Window: time.Second, Burst: 100, Unit: "tokens"}
		points := sluice.Limit{Name: "points", Kind: sluice.Bucket, Size: 10, Window: time.Second, Burst: 100, Unit: "points"}
		g := open(t, tokens, points)
		none := sluice.Amount{Unit: sluice.Requests}
		pass(t, g, costs("x", none, sluice.Amount{Unit: "tokens", N: 100}, sluice.Amount{Unit: "points", N: 100}))
		c := &crowd{tb: t, gate: g}
		c.ask("big", costs("big", none, sluice.Amount{Unit: "tokens", N: 90}, sluice.Amount{Unit: "points", N: 90}))
		for i := range 100 {
			unit := []string{"tokens", "points"}[i%2]
			c.ask("small", costs(unit, none, sluice.Amount{Unit: unit, N: 2}))
		}
		c.ask("free", costs("other", sluice.Amount{Unit: "images", N: 1}))
		c.order()
		big := slices.IndexFunc(c.entries, func(e entry) bool { return e.who == "big" })
		if at := c.entries[big].at; at > 12*time.Second {
			t.Errorf("the big one went at %v, want about the 9s that its cost implies", at)
		}
		if first := c.entries[0]; first.who != "free" || first.at != 0 {
			t.Errorf("first was %s at %v, want the one that needs neither limit, at once", first.who, first.at)
		}
	})
}

func TestOtherModelIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(1, time.Minute, 1)
		l.Per = []sluice.Scope{sluice.PerModel}
		g := open(t, l)
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		haiku := sluice.Request{Resource: "api", Agent: "a", Model: "haiku"}
		pass(t, g, opus)
		c := &crowd{tb: t, gate: g}
		c.ask("opus", opus)
		wantTook(t, "the other model", took(func() { pass(t, g, haiku) }), 0)
		c.order()
	})
}
