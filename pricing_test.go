package sluice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	dialects "github.com/sluicehq/sluice/provider"
)

func tokens(in, out int64) []sluice.Amount {
	return []sluice.Amount{{Unit: "input_tokens", N: in}, {Unit: sluice.OutputTokens, N: out}}
}

// Tokens are priced by the ticket's model, on acquire and on close, here or in another process, at the proxy's prices.
// A budget then refuses. A model without a price counts at the default price and is flagged.
func TestStatedUsageIsPriced(t *testing.T) {
	prices := dialects.DefaultPrices()
	for _, model := range []string{"claude-opus-4-5", "a-model/that nobody knows", ""} {
		for _, other := range []bool{false, true} {
			var told told
			g := openConfig(t, sluice.Config{
				Store: "mem:", Price: prices.OfAmounts, Events: told.event,
				Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
				Budgets:   []sluice.Budget{{Name: "all", Micros: 10_000_000}},
			})
			ticket, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Model: "part", Priced: model, Cost: tokens(1000, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if model == "" {
				model = "part"
			}
			used := func(micros int64) {
				t.Helper()
				list, err := g.Budgets(t.Context())
				if err != nil || len(list) != 1 || list[0].UsedUSD != float64(micros)/1e6 {
					t.Errorf("%q: used %+v, want %d (%v)", model, list, micros, err)
				}
			}
			estimate, known := prices.Micros(model, &dialects.Usage{Input: 1000})
			used(estimate)
			if other {
				if ticket, err = g.Ticket(ticket.ID()); err != nil || strings.ContainsAny(ticket.ID(), "/ ") {
					t.Fatal(ticket.ID(), err)
				}
			}
			if err := ticket.Close(tokens(500_000, 200_000)...); err != nil {
				t.Fatal(err)
			}
			actual, _ := prices.Micros(model, &dialects.Usage{Input: 500_000, Output: 200_000})
			used(actual)
			if e := told.of(inspect.EventSend); len(e) != 1 || e[0].Unpriced == known {
				t.Errorf("%q: %+v", model, e)
			}
			for range 3 { // until the budget is used up
				if ticket, err = g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Priced: model}); err == nil {
					err = ticket.Close(sluice.Amount{Unit: "tokens", N: 5_000_000})
				}
			}
			if !errors.Is(err, sluice.ErrBudget) {
				t.Errorf("%q: %v", model, err)
			}
		}
	}
}

// Stated dollars take precedence over any price.
func TestStatedDollarsCount(t *testing.T) {
	g := openConfig(t, sluice.Config{
		Store: "mem:", Price: dialects.DefaultPrices().OfAmounts, Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
		Budgets: []sluice.Budget{{Name: "all", Micros: 10_000_000}},
	})
	ticket, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Priced: "claude-opus-4-5"})
	if err == nil {
		err = ticket.Close(append(tokens(500_000, 200_000), usd(42))...)
	}
	if list, _ := g.Budgets(t.Context()); err != nil || list[0].UsedUSD != 0.000042 {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Unpaid: true}); err != nil {
		t.Error(err)
	}
}

// Each budget shows its spending at the default price, as an estimate and when it is settled, next to the spending at
// known prices. It refuses nothing by itself.
func TestUnpricedModelsAreFlaggedInBudgets(t *testing.T) {
	prices := dialects.DefaultPrices()
	for _, url := range []string{"mem:", "file:" + t.TempDir()} {
		g := openConfig(t, sluice.Config{
			Store: url, Price: prices.OfAmounts, Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
			Budgets: []sluice.Budget{{Name: "all", Micros: 3_000_000}, {Name: "each", Per: sluice.BudgetAgent, Micros: 50_000_000, Period: sluice.BudgetDay}},
		})
		guess := func(in, out int64) float64 {
			micros, known := prices.Micros("nobody-knows", &dialects.Usage{Input: in, Output: out})
			if known || micros == 0 {
				t.Fatal("it has a price")
			}
			return float64(micros) / 1e6
		}
		want := func(agent string, used, unpriced float64) {
			t.Helper()
			list, err := g.Budgets(t.Context())
			for _, b := range list {
				if b.Name == "each" && b.Who == agent && (b.UsedUSD != used || b.UnpricedUSD != unpriced) {
					t.Errorf("%s: %+v, want %v and %v", agent, b, used, unpriced)
				}
			}
			if err != nil || len(list) < 2 {
				t.Errorf("%+v %v", list, err)
			}
		}
		ticket, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Priced: "nobody-knows", Cost: tokens(1000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		want("a", guess(1000, 0), guess(1000, 0))
		if ticket, err = g.Ticket(ticket.ID()); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Close(tokens(2000, 500)...); err != nil {
			t.Fatal(err)
		}
		want("a", guess(2000, 500), guess(2000, 500))
		known, _ := prices.Micros("claude-opus-4-5", &dialects.Usage{Input: 500_000, Output: 200_000})
		if ticket, err = g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "b", Priced: "claude-opus-4-5"}); err == nil {
			err = ticket.Close(tokens(500_000, 200_000)...)
		}
		if err != nil {
			t.Fatal(err)
		}
		want("b", float64(known)/1e6, 0)
		if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Priced: "nobody-knows"}); !errors.Is(err, sluice.ErrBudget) {
			t.Error(err)
		}
	}
	if _, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Budgets: []sluice.Budget{{Name: "all (unpriced)", Micros: 1}}}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a budget called like an account beside one: %v", err)
	}
}
