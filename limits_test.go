package sluice_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

func TestScopesAreCountedApart(t *testing.T) {
	base := sluice.Request{Resource: "api", Agent: "a", User: "u", Model: "m", Tool: "t", Key: "k"}
	for name, scope := range map[string]struct {
		per   sluice.Scope
		other func(*sluice.Request)
		text  string
	}{
		"agent": {sluice.PerAgent, func(r *sluice.Request) { r.Agent = "a2" }, "agent=a"},
		"user":  {sluice.PerUser, func(r *sluice.Request) { r.User = "u2" }, "user=u"},
		"model": {sluice.PerModel, func(r *sluice.Request) { r.Model = "m2" }, "model=m"},
		"tool":  {sluice.PerTool, func(r *sluice.Request) { r.Tool = "t2" }, "tool=t"},
		"key":   {sluice.PerKey, func(r *sluice.Request) { r.Key = "k2" }, "key=k"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, sluice.Limit{
					Name: "each", Kind: sluice.Bucket, Size: 1, Window: 10 * time.Second, Per: []sluice.Scope{scope.per},
				})
				pass(t, g, base)
				if got := state(t, g).Limits[0].Scope; got != scope.text {
					t.Errorf("scope reads %q, want %q", got, scope.text)
				}
				other := base
				scope.other(&other)
				wantTook(t, "another "+name, took(func() { pass(t, g, other) }), 0)
				_, err := g.Try(t.Context(), base)
				if e := wantError(t, err, sluice.ErrNotNow); e.Limit != "each" {
					t.Errorf("in the way is %q", e.Limit)
				}
				wantTook(t, "the same "+name, took(func() { pass(t, g, base) }), 10*time.Second)
			})
		})
	}
}

func TestScopesCombine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{
			Name: "each", Kind: sluice.Bucket, Size: 1, Window: 10 * time.Second, Per: []sluice.Scope{sluice.PerUser, sluice.PerModel},
		})
		for _, user := range []string{"u", "v"} {
			for _, model := range []string{"m", "n"} {
				req := sluice.Request{Resource: "api", Agent: "a", User: user, Model: model}
				wantTook(t, user+model, took(func() { pass(t, g, req) }), 0)
			}
		}
		_, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "b", User: "u", Model: "n"})
		wantError(t, err, sluice.ErrNotNow)
	})
}

// A request that lacks room on its own limit delays no other agent.
func TestOwnLimitHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := sluice.Limit{Name: "own", Kind: sluice.Bucket, Size: 1, Window: time.Minute, Per: []sluice.Scope{sluice.PerAgent}}
		g := open(t, own, bucket(100, time.Second, 100))
		pass(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("a", from("a"))
		wantTook(t, "another agent", took(func() { pass(t, g, from("b")) }), 0)
		wantOrder(t, c.order(), "a")
		if at := c.entries[0].at; at != time.Minute {
			t.Errorf("a went at %v, want 1m", at)
		}
	})
}

func TestUserComesFromTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents: map[string]sluice.Agent{"a": {User: "ann"}, "b": {User: "ann"}, "*": {User: "guest"}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
				{Name: "each", Kind: sluice.Bucket, Size: 1, Window: time.Minute, Per: []sluice.Scope{sluice.PerUser}},
			}}},
		})
		pass(t, g, from("a"))
		_, err := g.Try(t.Context(), from("b"))
		wantError(t, err, sluice.ErrNotNow)
		pass(t, g, from("c"))
		_, err = g.Try(t.Context(), from("d"))
		wantError(t, err, sluice.ErrNotNow)
		pass(t, g, sluice.Request{Resource: "api", Agent: "b", User: "bob"})
	})
}

func TestToolsCostWorkAndOneRequest(t *testing.T) {
	work := sluice.Limit{Name: "work", Kind: sluice.Bucket, Size: 100, Window: time.Hour, Unit: sluice.Work}
	requests := sluice.Limit{Name: "requests", Kind: sluice.Bucket, Size: 100, Window: time.Hour}
	for _, table := range []struct {
		name  string
		tools map[string]int64
		want  map[string]int64
	}{
		{"default", nil, map[string]int64{
			"web_search": 1, "read_page": 1, "llm_call": 3, "code_execute": 5, "image_generate": 10, "unheard_of": 1, "": 1,
		}},
		{"own", map[string]int64{"crawl": 7, "free": 0}, map[string]int64{"crawl": 7, "free": 0, "llm_call": 1}},
	} {
		for tool, want := range table.want {
			t.Run(table.name+"/"+tool, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := openConfig(t, sluice.Config{
						Tools:     table.tools,
						Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{work, requests}}},
					})
					held := acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Tool: tool})
					if got := used(t, g, "work"); got != want {
						t.Errorf("work charged: %d, want %d", got, want)
					}
					if got := used(t, g, "requests"); got != 1 {
						t.Errorf("requests charged: %d, want 1", got)
					}
					end(t, held)
				})
			})
		}
	}
}

// 50 at once and 5 per second for each agent, counting work.
func TestWorkOfEachAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{
			Name: "each-agent", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 50, Unit: sluice.Work,
			Per: []sluice.Scope{sluice.PerAgent},
		})
		draw := func(agent string) { pass(t, g, sluice.Request{Resource: "api", Agent: agent, Tool: "image_generate"}) }
		wantTook(t, "five images", took(func() {
			for range 5 {
				draw("a")
			}
		}), 0)
		wantTook(t, "the sixth", took(func() { draw("a") }), 2*time.Second)
		wantTook(t, "another agent's", took(func() { draw("b") }), 0)
	})
}

func TestUseIsAPartOfTheProvidersLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := sluice.Limit{Name: "own", Kind: sluice.Bucket, Size: 100, Window: time.Minute, Per: []sluice.Scope{sluice.PerAgent}}
		work := sluice.Limit{Name: "work", Kind: sluice.Bucket, Size: 100, Window: time.Minute, Unit: sluice.Work}
		one := sluice.Limit{Name: "one", Kind: sluice.Concurrency, Size: 1}
		learned := sluice.Limit{Name: "learned", Kind: sluice.Rolling, Window: time.Minute, Unit: "tokens"}
		g := openResource(t, sluice.Resource{
			Use: 80, Limits: []sluice.Limit{rolling(100, time.Minute), bucket(10, time.Second, 30), own, work, one, learned},
		})
		held := acquire(t, g, costs("a", sluice.Amount{Unit: "tokens", N: 1}))
		answer(t, held, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
			{Limit: "learned", Size: 500, Remaining: 499, ResetIn: store.NotStated},
			{Limit: "rolling", Size: 50, Remaining: 49, ResetIn: store.NotStated},
			{Limit: "unheard-of", Size: 1, Remaining: 0, ResetIn: time.Hour},
		}})
		want := map[string]int64{"rolling": 40, "bucket": 24, "own": 100, "work": 100, "one": 1, "learned": 400}
		for _, l := range state(t, g).Limits {
			if l.Limit != want[l.Name] {
				t.Errorf("limit %s is %d, want %d", l.Name, l.Limit, want[l.Name])
			}
		}
		end(t, held)
	})
}

func TestCostsInUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Hour),
			sluice.Limit{Name: "input", Kind: sluice.Rolling, Size: 2_000_000, Window: time.Minute, Unit: "input_tokens"},
			sluice.Limit{Name: "input-day", Kind: sluice.Rolling, Size: 9_000_000, Window: 24 * time.Hour, Unit: "input_tokens"})
		held := acquire(t, g, costs("a", sluice.Amount{Unit: "input_tokens", N: 1_500_000}, sluice.Amount{Unit: "not-counted", N: 5}))
		for limit, want := range map[string]int64{"rolling": 1, "input": 1_500_000, "input-day": 1_500_000} {
			if got := used(t, g, limit); got != want {
				t.Errorf("%s: %d used, want %d", limit, got, want)
			}
		}
		_, err := g.Try(t.Context(), costs("a", sluice.Amount{Unit: "input_tokens", N: 500_001}))
		if e := wantError(t, err, sluice.ErrNotNow); e.Limit != "input" {
			t.Errorf("in the way is %q, want input", e.Limit)
		}
		end(t, acquire(t, g, costs("a", sluice.Amount{Unit: "input_tokens", N: 500_000})))
		end(t, held)
	})
}

// Responses teach the limits that no configuration states.
func TestLimitsAreLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "hour", Kind: sluice.Fixed, Window: time.Hour})
		first := acquire(t, g, from("a"))
		_, err := g.Try(t.Context(), from("a"))
		if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "ramp" {
			t.Errorf("the reason is %q, want ramp: no limit is known", e.Reason)
		}
		answer(t, first, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
			{Limit: "hour", Size: 5, Remaining: 2, ResetIn: 10 * time.Minute},
		}})
		end(t, first)
		l := state(t, g).Limits[0]
		if l.Limit != 5 || l.Used != 3 || l.Remaining != 2 || l.Outside != 2 || l.ResetAt == nil {
			t.Errorf("learned %+v, want 5, of which others used 2", l)
		}
		time.Sleep(20 * time.Second) // the ramp is over
		pass(t, g, from("a"))
		pass(t, g, from("a"))
		d := took(func() { pass(t, g, from("a")) })
		if want := 10*time.Minute - 20*time.Second; d < want || d > want+2*time.Second {
			t.Errorf("waited %v, want about %v, until the reset", d, want)
		}
	})
}
