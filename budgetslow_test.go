package sluice_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// slowConfig is a budget of 10 usd a day that slows down.
func slowConfig(over string) sluice.Config {
	return sluice.Config{
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
		Budgets:   []sluice.Budget{{Name: "all", Micros: 10_000_000, Period: sluice.BudgetDay, Over: over}},
	}
}

// A fleet wants three times its budget: p0 is never slowed, and the budget is used up by the reset.
func TestSlowBudgetLastsUntilItsReset(t *testing.T) {
	for name, every := range map[string]time.Duration{"with p0": 10 * time.Minute, "without p0": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openConfig(t, slowConfig(sluice.OverSlow))
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var mu sync.Mutex
				sent, longest := map[string]int{}, time.Duration(0)
				send := func(agent, class string, estimate, actual int64) bool {
					req := costs(agent, usd(estimate))
					req.Class = class
					began := time.Now()
					ticket, err := g.Acquire(ctx, req)
					if err != nil {
						if ctx.Err() == nil {
							t.Errorf("%s at %v: %v", class, time.Since(bubbleStart), err)
						}
						return false
					}
					mu.Lock()
					if sent[class]++; class == "p0" {
						longest = max(longest, time.Since(began))
					}
					mu.Unlock()
					time.Sleep(time.Second)
					end(t, ticket, usd(actual))
					return true
				}
				for _, a := range []struct{ agent, class string }{{"one", "p1"}, {"two", "p2"}, {"three", "p2"}} {
					all.Go(func() { // 864 a day each, of 0.0116 usd: 30 usd together, and the estimates are twice that
						for send(a.agent, a.class, 23_000, 11_600) && ctx.Err() == nil {
							time.Sleep(100 * time.Second)
						}
					})
				}
				if every > 0 {
					all.Go(func() {
						for send("boss", "p0", 20_000, 10_000) && ctx.Err() == nil {
							time.Sleep(every - time.Second)
						}
					})
				}
				time.Sleep(24*time.Hour - time.Minute)
				used := spent(t, g, "all", "")
				mu.Lock()
				before, waited := maps.Clone(sent), longest
				mu.Unlock()
				t.Logf("%d of 10000000 used at the reset, p0 waited %v at most, sent %v", used, waited, before)
				if used < 9_800_000 || used > 10_000_000 {
					t.Errorf("%d of 10000000 used at the reset, want at least 98%%", used)
				}
				if waited > 0 || every > 0 && before["p0"] != 144 {
					t.Errorf("%d of class p0 went, and waited up to %v, want 144 and no wait", before["p0"], waited)
				}
				if before["p1"] < before["p2"]/4 || before["p2"] < 100 {
					t.Errorf("%v: a class starved", before)
				}
				time.Sleep(30 * time.Minute) // a new day
				mu.Lock()
				if sent["p2"]-before["p2"] < 30 {
					t.Errorf("%d of class p2 went in the half hour after the reset", sent["p2"]-before["p2"])
				}
				mu.Unlock()
				stop()
				all.Wait()
			})
		})
	}
}

func TestSlowBudgetSaysWhatItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &told{}
		c := slowConfig(sluice.OverSlow)
		c.Events, c.Alert = h.event, h.alert
		g := openConfig(t, c)
		req := func(agent, class string, n int64) sluice.Request {
			r := costs(agent, usd(n))
			r.Class = class
			return r
		}
		end(t, acquire(t, g, req("batch", "p2", 4_000_000)), usd(4_000_000))
		if b := budgetsOf(t, g)[0]; b.Slowing || len(b.Waiting) > 0 {
			t.Errorf("%+v: it is not slowed yet", b)
		}
		end(t, acquire(t, g, req("boss", "p0", 3_000_000)), usd(3_000_000))
		_, err := g.Try(t.Context(), req("batch", "p2", 100_000))
		e := wantError(t, err, sluice.ErrNotNow)
		if e.Resource != "api" || e.Limit != "all" || e.Reason != "slowed" || e.RetryAt.IsZero() ||
			!strings.HasPrefix(e.Message, `api: slowed by budget "all": 7.00 of 10.00 usd spent, and the rest has to last until 2000-01-02T00:00:00Z, next about 2000-01-01T`) {
			t.Errorf("%+v", e)
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := g.Acquire(ctx, req("batch", "p2", 100_000))
			if e := wantError(t, err, sluice.ErrCancelled); !strings.Contains(e.Message, `slowed by budget "all"`) {
				t.Error(e)
			}
		})
		time.Sleep(time.Second)
		waiting, err := g.Why(t.Context(), "api")
		if err != nil || len(waiting) != 1 || waiting[0].Agent != "batch" || waiting[0].Class != "p2" || waiting[0].Reason != "slowed" || waiting[0].Limit != "all" || waiting[0].ExpectedAt == nil || !strings.HasPrefix(waiting[0].Ticket, "api.slow") {
			t.Errorf("%+v, %v", waiting, err)
		}
		if s := state(t, g); s.State != inspect.StateQueueing || s.Waiting["p2"] != 1 || s.Reason != "1 request waits: slowed by budget all, which has to last until its reset" {
			t.Errorf("%s: %s, %v", s.State, s.Reason, s.Waiting)
		}
		if b := budgetsOf(t, g)[0]; !b.Slowing || b.Waiting["p2"] != 1 {
			t.Errorf("%+v", b)
		}
		stop()
		all.Wait()
		time.Sleep(time.Second)
		if waiting, err := g.Why(t.Context(), "api"); err != nil || len(waiting) > 0 {
			t.Errorf("%+v, %v: it has gone away", waiting, err)
		}
		// What waited is told of the send.
		ticket := acquire(t, g, req("batch", "p2", 100_000))
		if sends := h.of(inspect.EventSend); ticket.Waited() < time.Hour || sends[len(sends)-1].Reason != "slowed" || sends[len(sends)-1].Limit != "all" {
			t.Errorf("waited %v, %+v", ticket.Waited(), sends[len(sends)-1])
		}
		end(t, ticket, usd(100_000))
		// The highest class stops at the end of the budget, the others wait for the reset.
		end(t, acquire(t, g, req("boss", "p0", 2_900_000)), usd(2_900_000))
		_, err = g.Acquire(t.Context(), req("boss", "p0", 1))
		wantError(t, err, sluice.ErrBudget)
		if len(h.alerts) != 1 || h.alerts[0].Over != sluice.OverSlow {
			t.Errorf("%+v", h.alerts)
		}
		if ticket = acquire(t, g, req("batch", "p2", 100_000)); time.Since(bubbleStart) < 24*time.Hour {
			t.Errorf("went at %v", time.Since(bubbleStart))
		}
		end(t, ticket)
		wantSpent(t, g, "all", "", 100_000)
	})
}

// Another process ends the ticket, and the pacer learns the actual cost.
func TestSlowBudgetOnEveryStore(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		c := sluice.Config{Budgets: []sluice.Budget{{Name: "each", Per: sluice.BudgetUser, Micros: 1_000_000, Period: sluice.BudgetMonth, Over: sluice.OverSlow}}}
		g, other := open(c), open(c)
		req := func(user string, n int64) sluice.Request {
			r := costs("a", usd(n))
			r.User = user
			return r
		}
		// What is left at the end of a month is spread over little time: so most is taken first.
		first := acquire(t, g, req("ana", 400_000))
		same, err := other.Ticket(first.ID())
		if err != nil {
			t.Fatal(err)
		}
		end(t, same, usd(10_000))
		wantSpent(t, g, "each", "ana", 10_000)
		for range 2 { // it would not fit twice with the estimate
			end(t, acquire(t, g, req("ana", 400_000)), usd(10_000))
		}
		if _, err := other.Try(t.Context(), req("ana", 999_000)); err == nil {
			t.Error("all of it at once, and the last of a hundred parts is kept")
		}
		r := req("ana", 969_000)
		r.Class = "p0"
		end(t, acquire(t, g, r), usd(969_000))
		end(t, acquire(t, other, req("bo", 100_000)), usd(100_000)) // each has its own
		_, err = other.Try(t.Context(), req("ana", 500))
		if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "slowed" || !strings.Contains(e.Message, `slowed by budget "each" of user "ana"`) {
			t.Errorf("%+v", e)
		}
	})
}

func TestSlowBudgetNeedsAReset(t *testing.T) {
	_, err := sluice.Open(t.Context(), sluice.Config{Budgets: []sluice.Budget{{Micros: 1, Over: sluice.OverSlow}}})
	if e := wantError(t, err, sluice.ErrInvalid); !strings.Contains(e.Message, "never resets") {
		t.Error(e)
	}
}

// A pool is a cache: if it is lost, it learns the spending from the ledger.
func TestSlowBudgetCatchesUpWithItsBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, slowConfig(sluice.OverAlert)) // counts, and slows nothing
		end(t, acquire(t, g, costs("a", usd(9_000_000))))
		slow := slowConfig(sluice.OverSlow)
		slow.Store = "mem:"
		later, err := sluice.OpenWithStore(t.Context(), sluice.StoreOf(g), slow)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = later.Close() }()
		_, err = later.Try(t.Context(), costs("a", usd(100_000)))
		wantError(t, err, sluice.ErrNotNow)
	})
}

func budgetsOf(tb testing.TB, g *sluice.Gate) []inspect.BudgetStatus {
	tb.Helper()
	list, err := g.Budgets(context.Background())
	if err != nil || len(list) == 0 {
		tb.Fatal(list, err)
	}
	return list
}
