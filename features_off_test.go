package sluice_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// everything is a configuration in which all features are active.
func everything() sluice.Config {
	return sluice.Config{
		Slots:  sluice.Slots{Max: 1},
		Agents: map[string]sluice.Agent{"upstream": {WaitsFor: []string{"downstream"}}},
		Resources: map[string]sluice.Resource{
			"api":  {Limits: []sluice.Limit{hourly(1000)}},
			"flow": {Limits: []sluice.Limit{rolling(60, time.Minute)}},
		},
	}
}

// change changes the resource named api.
func change(c *sluice.Config, f func(*sluice.Resource)) {
	r := c.Resources["api"]
	f(&r)
	c.Resources["api"] = r
}

// stoppedBy sends as much as it may, and returns why it has to stop.
func stoppedBy(tb testing.TB, g *sluice.Gate, req sluice.Request) string {
	tb.Helper()
	for {
		t, err := g.Try(context.Background(), req)
		if err != nil {
			return wantError(tb, err, sluice.ErrNotNow).Reason
		}
		end(tb, t)
	}
}

// features lists what can be turned off, each with a check that it is active.
var features = []struct {
	name  string
	works func(tb testing.TB, g *sluice.Gate) bool
}{
	{"light", func(tb testing.TB, g *sluice.Gate) bool {
		return stoppedBy(tb, g, classed("low", "p2")) == "light" && state(tb, g).Light == "green"
	}},
	{"breaker", func(tb testing.TB, g *sluice.Gate) bool {
		for i := range 100 {
			t, err := g.Try(context.Background(), classed("low", "p2"))
			if err != nil {
				return wantError(tb, err, sluice.ErrNotNow).Reason == "breaker" && state(tb, g).Limits[0].Breaker == "gliding"
			}
			time.Sleep(10 * time.Millisecond)
			answer(tb, t, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
				{Limit: "hour", Size: 1000, Remaining: int64(999 - i), ResetIn: time.Hour - time.Since(bubbleStart)},
			}})
			end(tb, t)
		}
		return false
	}},
	{"shares", func(tb testing.TB, g *sluice.Gate) bool {
		pass(tb, g, classed("high", "p0"))
		return stoppedBy(tb, g, classed("low", "p2")) == "share"
	}},
	{"pacing", func(tb testing.TB, g *sluice.Gate) bool {
		pass(tb, g, sluice.Request{Resource: "flow", Agent: "high", Class: "p0"})
		return stoppedBy(tb, g, sluice.Request{Resource: "flow", Agent: "low", Class: "p2"}) == "pace"
	}},
	{"cascade", func(tb testing.TB, g *sluice.Gate) bool {
		refuse(tb, g, sluice.Answer{})
		c := &crowd{tb: tb, gate: g}
		c.ask("", from("downstream"))
		upstream := acquire(tb, g, sluice.Request{Resource: "flow", Agent: "upstream"}) // so that it is alive
		w := newWork(tb, g, "upstream")
		held := !w.Start && len(w.Chain) == 2
		for _, a := range status(tb, g).Agents {
			if a.Name == "upstream" && (a.State == "held") != held {
				tb.Errorf("start new work is %v, but its state is %s", w.Start, a.State)
			}
		}
		end(tb, upstream)
		c.order()
		return held
	}},
	{"leases", func(tb testing.TB, g *sluice.Gate) bool {
		lease := join(tb, g, sluice.JoinRequest{Agent: "a", Class: "p1"})
		pass(tb, g, from("b"))
		time.Sleep(5*time.Minute + time.Second)
		alive := living(tb, g) == "a" && len(pool(tb, g).Allocations) == 1
		if err := lease.WaitFor(context.Background(), "b"); err != nil || lease.Err() != nil {
			tb.Error(err, lease.Err())
		}
		leave(tb, lease, lease)
		return alive
	}},
	{"slots", func(tb testing.TB, g *sluice.Gate) bool {
		lease := join(tb, g, sluice.JoinRequest{Agent: "a", User: "u"})
		second, err := g.Join(context.Background(), sluice.JoinRequest{Agent: "b", User: "u"})
		if err == nil {
			leave(tb, second)
		}
		leave(tb, lease)
		return errors.Is(err, sluice.ErrSlots)
	}},
}

// One setting turns a feature off, and the others are not affected.
func TestEachFeatureCanBeTurnedOff(t *testing.T) {
	for _, c := range []struct {
		name string
		off  func(*sluice.Config)
		gone []string
	}{
		{"nothing", func(*sluice.Config) {}, nil},
		{"light", func(c *sluice.Config) { change(c, func(r *sluice.Resource) { r.Light.Off = true }) }, []string{"light"}},
		{"breaker", func(c *sluice.Config) { change(c, func(r *sluice.Resource) { r.Breaker.Off = true }) }, []string{"breaker"}},
		{"shares", func(c *sluice.Config) { c.NoShares = true }, []string{"shares"}},
		{"pacing", func(c *sluice.Config) { c.NoPacing = true }, []string{"pacing"}},
		{"cascade", func(c *sluice.Config) { c.NoCascade = true }, []string{"cascade"}},
		{"slots", func(c *sluice.Config) { c.Slots = sluice.Slots{} }, []string{"slots"}},
		// Where nobody counts as alive, nothing is kept for anybody. Slots are leases.
		{
			"leases", func(c *sluice.Config) { c.Leases.Off, c.Slots.Max = true, 0 },
			[]string{"leases", "slots", "shares", "pacing"},
		},
		// Other orders have another idea of what a class is due.
		{"strict order", func(c *sluice.Config) { c.Order = store.Strict }, []string{"shares"}},
		{"first come, first served", func(c *sluice.Config) { c.Order = store.FIFO }, []string{"shares", "pacing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range features {
				want := true
				for _, name := range c.gone {
					want = want && name != f.name
				}
				t.Run(f.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						config := everything()
						c.off(&config)
						if works := f.works(t, openConfig(t, config)); works != want {
							t.Errorf("without %s, %s at work: %v", c.name, f.name, works)
						}
					})
				})
			}
		})
	}
}

// A fleet can use just one feature.
func TestEachFeatureWorksAlone(t *testing.T) {
	for _, f := range features {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := everything()
				change(&config, func(r *sluice.Resource) { r.Light.Off, r.Breaker.Off = f.name != "light", f.name != "breaker" })
				config.NoShares, config.NoPacing, config.NoCascade = f.name != "shares", f.name != "pacing", f.name != "cascade"
				if f.name != "slots" {
					config.Slots = sluice.Slots{}
				}
				switch f.name {
				case "light", "breaker", "cascade":
					config.Leases.Off = true
				}
				if !f.works(t, openConfig(t, config)) {
					t.Errorf("alone it does not work")
				}
			})
		})
	}
}
