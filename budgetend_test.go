package sluice_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	dialects "github.com/sluicehq/sluice/provider"
)

// myPrices is a price for one model: 100 dollars per million tokens.
func myPrices() *dialects.Prices {
	return dialects.DefaultPrices().With(map[string]dialects.Price{"my-model": {Input: 100, Output: 100}})
}

// What a ticket states when it is closed is charged, although nothing was stated when it was acquired: dollars or
// tokens, with a model that has a price, with another, and without one, by the ticket itself or by its id. Then the
// budget binds. Closing twice charges once.
func TestUsageStatedOnlyAtTheEndBindsABudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model   string
		usage   []sluice.Amount
		guessed bool
	}{
		"tokens of a model with a price": {"my-model", tokens(500, 500), false},
		"dollars of one":                 {"my-model", []sluice.Amount{usd(100_000)}, false},
		"tokens of an unknown model":     {"nobody-knows", tokens(5000, 5000), true},
		"dollars of one that is unknown": {"nobody-knows", []sluice.Amount{usd(100_000)}, false},
		"tokens of no model":             {"", []sluice.Amount{{Unit: "tokens", N: 10_000}}, true},
		"dollars of no model":            {"", []sluice.Amount{usd(100_000)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
				config := sluice.Config{Price: myPrices().OfAmounts, Budgets: []sluice.Budget{{Name: "all", Micros: 300_000, Period: sluice.BudgetDay}}}
				g := open(config)
				config.ReadOnly = true // as for sluice release
				other := open(config)
				req := sluice.Request{Resource: "api", Agent: "a", Model: c.model, Detached: true}
				n := 0
				for ; n < 10; n++ {
					ticket, err := g.Acquire(t.Context(), req) // Redis may pause for a moment
					if errors.Is(err, sluice.ErrBudget) {
						break
					} else if err != nil {
						t.Fatal(err)
					}
					if n%2 == 0 {
						if ticket, err = other.Ticket(ticket.ID()); err != nil {
							t.Fatal(err)
						}
					}
					end(t, ticket, c.usage...)
					end(t, ticket, c.usage...)
				}
				// Another process's charge is seen within a second.
				if n < 3 || n > 4 {
					t.Errorf("%d requests went, want 3", n)
				}
				list, err := other.Budgets(t.Context())
				want := float64(n) / 10
				if err != nil || len(list) != 1 || list[0].UsedUSD != want || (list[0].UnpricedUSD == want) != c.guessed || !c.guessed && list[0].UnpricedUSD != 0 {
					t.Errorf("%+v %v, want %v, a guess: %v", list, err, want, c.guessed)
				}
			})
		})
	}
}

// A request that never costs anything goes although the budget is used up, and leaves nothing in its books: not when it
// is closed without usage, cancelled, sent without a ticket, or unanswered.
func TestRequestsWithoutUsageCostNothing(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		g := open(sluice.Config{Price: myPrices().OfAmounts, Budgets: []sluice.Budget{
			{Name: "all", Micros: 100}, {Name: "each", Per: sluice.BudgetAgent, Micros: 100},
		}})
		end(t, acquire(t, g, costs("paid", usd(100))))
		once := from("free")
		once.Spent = true
		acquire(t, g, once)
		end(t, acquire(t, g, from("free")))
		if err := errors.Join(acquire(t, g, from("free")).Cancel(), acquire(t, g, from("free")).CloseUnanswered()); err != nil {
			t.Error(err)
		}
		held, err := g.Ticket(acquire(t, g, from("free")).ID())
		if err != nil {
			t.Fatal(err)
		}
		end(t, held)
		wantSpent(t, g, "all", "", 100)
		wantSpent(t, g, "each", "free", 0)
		list, err := g.Budgets(context.Background())
		if err != nil || slices.ContainsFunc(list, func(b inspect.BudgetStatus) bool { return b.Who == "free" || len(b.Uncounted) > 0 }) {
			t.Errorf("%+v %v", list, err)
		}
		if _, err := g.Acquire(context.Background(), sluice.Request{Resource: "api", Agent: "b", Model: "my-model"}); !errors.Is(err, sluice.ErrBudget) {
			t.Errorf("a model with a price, and no tokens: %v", err)
		}
	})
}

// Usage in a unit without a price is no dollar, so the budget says that it does not count it: by the unit if a limit
// counts it, since callers choose the names of others. Dollars beside it are enough.
func TestUsageWithoutAPriceIsSaid(t *testing.T) {
	t.Parallel()
	limits := []sluice.Limit{rolling(1000, time.Minute), {Name: "credits", Kind: sluice.Rolling, Unit: "credits", Size: 1000, Window: time.Minute}}
	g := openConfig(t, sluice.Config{
		Price: myPrices().OfAmounts, Budgets: []sluice.Budget{{Name: "all", Micros: 100_000_000}},
		Resources: map[string]sluice.Resource{"api": {Limits: limits}, "dollars": {Limits: limits}, "free": {Free: true, Limits: limits}},
	})
	for _, c := range []struct {
		resource string
		usage    []sluice.Amount
	}{
		{"api", []sluice.Amount{{Unit: "credits", N: 5}}}, {"api", []sluice.Amount{{Unit: "pennies", N: 5}}}, {"free", []sluice.Amount{{Unit: "credits", N: 5}}},
		{"dollars", []sluice.Amount{{Unit: "credits", N: 5}, usd(7)}}, {"dollars", []sluice.Amount{{Unit: sluice.Requests, N: 1}}},
	} {
		end(t, acquire(t, g, sluice.Request{Resource: c.resource, Agent: "a"}), c.usage...)
	}
	list, err := g.Budgets(t.Context())
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Uncounted, []string{"api credits", "api other"}) || list[0].UsedUSD != 0.000007 {
		t.Errorf("%+v %v", list, err)
	}
}

// A budget that slows down counts late charges too, and its pacer hears of them.
func TestUsageStatedOnlyAtTheEndSlowsDown(t *testing.T) {
	t.Parallel()
	g := openConfig(t, sluice.Config{
		Price: myPrices().OfAmounts, Budgets: []sluice.Budget{{Name: "all", Micros: 300_000, Period: sluice.BudgetDay, Over: sluice.OverSlow}},
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
	})
	req := sluice.Request{Resource: "api", Agent: "a", Class: sluice.P2}
	n := 0
	for ; n < 10; n++ {
		ticket, err := g.Try(t.Context(), req)
		if err != nil {
			if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "slowed" {
				t.Error(e)
			}
			break
		}
		end(t, ticket, usd(100_000))
	}
	if n == 0 || n > 3 {
		t.Errorf("%d went", n)
	}
}

// Mode observe refuses nothing, and counts what the end states.
func TestUsageStatedOnlyAtTheEndIsObserved(t *testing.T) {
	t.Parallel()
	g := openConfig(t, sluice.Config{
		Budgets:   []sluice.Budget{{Name: "all", Micros: 100}},
		Resources: map[string]sluice.Resource{"api": {Observe: true, Limits: []sluice.Limit{rolling(1, time.Minute)}}},
	})
	for range 3 {
		end(t, acquire(t, g, from("a")), usd(80))
	}
	wantSpent(t, g, "all", "", 240)
}
