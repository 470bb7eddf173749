package sluice_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// routed opens a gate with two resources and a route over three models.
func routed(tb testing.TB) *sluice.Gate {
	tb.Helper()
	tokens := sluice.Limit{Name: "tokens", Kind: sluice.Fixed, Size: 1000, Window: time.Minute, Unit: "tokens", Reset: bubbleStart, Per: []sluice.Scope{sluice.PerModel}}
	return openConfig(tb, sluice.Config{
		Resources: map[string]sluice.Resource{
			"cheap": {Guard: store.GuardOff, Light: sluice.Light{Off: true}, Limits: []sluice.Limit{tokens}},
			"dear":  {Guard: store.GuardOff, Limits: []sluice.Limit{rolling(2, time.Hour)}},
		},
		NoShares: true,
		Routes: map[string][]sluice.RouteChoice{"simple": {
			{Resource: "dear", Model: "large", USDPerMTok: 20},
			{Resource: "cheap", Model: "small", USDPerMTok: 1},
			{Resource: "cheap", Model: "middle-2026", Part: "middle", USDPerMTok: 5},
			{Resource: "nowhere", Model: "free"},
		}},
	})
}

func wantRoute(tb testing.TB, g *sluice.Gate, model, code string, wait time.Duration, need ...sluice.Amount) inspect.Route {
	tb.Helper()
	time.Sleep(time.Second) // what was seen before is not looked at again
	r, err := g.Route(context.Background(), "simple", sluice.Request{Agent: "router", Cost: need})
	if err != nil {
		tb.Fatal(err)
	}
	if r.Model != model || r.Code != code || r.Wait.Round(10*time.Second) != wait || r.Reason == "" {
		tb.Errorf("%+v, want %s, %s, %v", r, model, code, wait)
	}
	return r
}

func TestRoutesToTheCheapestWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := routed(t)
		spend := func(resource, model string, n int64) {
			t.Helper()
			req := sluice.Request{Resource: resource, Agent: "a", Model: model, Cost: []sluice.Amount{{Unit: "tokens", N: n}}}
			end(t, acquire(t, g, req))
		}
		tokens := func(n int64) sluice.Amount { return sluice.Amount{Unit: "tokens", N: n} }
		wantRoute(t, g, "small", "cheapest", 0)
		spend("cheap", "small", 600)
		time.Sleep(10 * time.Second)              // until it is known what requests usually take
		wantRoute(t, g, "middle-2026", "room", 0) // 600 as before do not fit
		wantRoute(t, g, "small", "cheapest", 0, tokens(300))
		wantRoute(t, g, "middle-2026", "room", 0, tokens(500))
		spend("cheap", "middle", 900)
		wantRoute(t, g, "large", "room", 0, tokens(500))
		spend("dear", "large", 0)
		spend("dear", "large", 0)
		wantRoute(t, g, "small", "soonest", 40*time.Second, tokens(500)) // until the minute is over
		time.Sleep(time.Minute)
		if name, err := g.CheaperModel(t.Context(), sluice.Request{Resource: "dear", Model: "large", Agent: "router"}); err != nil || name != "cheap/small" {
			t.Errorf("%q, %v", name, err)
		}
		if err := g.Pause(t.Context(), "cheap", 20*time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if r := wantRoute(t, g, "small", "soonest", 20*time.Minute, tokens(1)); r.Resource != "cheap" || r.USDPerMTok != 1 {
			t.Errorf("%+v", r)
		}
		if name, err := g.CheaperModel(t.Context(), sluice.Request{Resource: "dear", Model: "large", Agent: "router"}); err != nil || name != "" {
			t.Errorf("%q, %v", name, err)
		}
	})
}

func TestRouteOfWhatThereIsNot(t *testing.T) {
	t.Parallel()
	g := routed(t)
	_, err := g.Route(context.Background(), "hard", from("router"))
	if e := wantError(t, err, sluice.ErrUnknownTask); e.Hint != "there are routes for simple" {
		t.Errorf("%+v", e)
	}
	for _, c := range []sluice.RouteChoice{{Model: "x"}, {Resource: "x"}, {Resource: "x", Model: "x", USDPerMTok: -1}} {
		_, err := sluice.Open(context.Background(), sluice.Config{Routes: map[string][]sluice.RouteChoice{"a": {c}}})
		wantError(t, err, sluice.ErrInvalid)
	}
	g = openConfig(t, sluice.Config{Routes: map[string][]sluice.RouteChoice{"a": {{Resource: "nowhere", Model: "x"}}}})
	_, err = g.Route(context.Background(), "a", from("router"))
	wantError(t, err, sluice.ErrUnknownResource)
}

// Waiting requests go first: there is no room for others.
func TestRouteSeesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(1)}}},
			Routes:    map[string][]sluice.RouteChoice{"simple": {{Resource: "api", Model: "m", USDPerMTok: 1}}},
		})
		held := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		r := wantRoute(t, g, "m", "blind", 0)
		if !r.Unknown && r.Wait == 0 {
			t.Errorf("%+v", r)
		}
		end(t, held)
		c.order()
		wantRoute(t, g, "m", "cheapest", 0)
	})
}

// Models without a price keep their position: a guess is no reason to try one before another.
func TestModelsWithoutAPriceKeepTheirPlaceInARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := sluice.Resource{Guard: store.GuardOff, Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1, Per: []sluice.Scope{sluice.PerModel}}}}
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": places}, NoShares: true,
			Routes: map[string][]sluice.RouteChoice{"simple": {
				{Resource: "api", Model: "odd", USDPerMTok: 10, Unpriced: true},
				{Resource: "api", Model: "dear", USDPerMTok: 20},
				{Resource: "api", Model: "odder", USDPerMTok: 10, Unpriced: true},
				{Resource: "api", Model: "cheap", USDPerMTok: 1},
			}},
		})
		var order []string
		for range 4 {
			time.Sleep(time.Second)
			r, err := g.Route(context.Background(), "simple", from("router"))
			if err != nil {
				t.Fatal(err)
			}
			if odd := r.Model == "odd" || r.Model == "odder"; odd != r.Unpriced {
				t.Errorf("%+v", r)
			}
			order = append(order, r.Model)
			acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: r.Model})
		}
		if got := strings.Join(order, " "); got != "odd cheap odder dear" {
			t.Errorf("%s", got)
		}
		for model, want := range map[string]string{"dear": "", "odd": ""} { // of odd nobody knows what is cheaper, and cheap has no room
			if got, err := g.CheaperModel(context.Background(), sluice.Request{Resource: "api", Model: model, Agent: "router"}); err != nil || got != want {
				t.Errorf("%s: %q %v", model, got, err)
			}
		}
	})
}
