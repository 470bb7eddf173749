package config

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

func TestBudgetsOfTheFile(t *testing.T) {
	t.Parallel()
	c := gate(t, parse(t, `
budgets:
  - {per: user, size: 10 usd/day}
  - {name: all, size: 0.5 usd/month, over: alert}
  - {per: agent, size: 7 usd, over: downgrade}
agents:
  writer: {budget: 5 usd/day}
  reader: {class: p1}
  "*": {budget: 1 usd/month}
`))
	want := []sluice.Budget{
		{Per: sluice.BudgetUser, Micros: 10_000_000, Period: sluice.BudgetDay, Over: sluice.OverDeny},
		{Name: "all", Per: sluice.BudgetFleet, Micros: 500_000, Period: sluice.BudgetMonth, Over: sluice.OverAlert},
		{Per: sluice.BudgetAgent, Micros: 7_000_000, Period: sluice.BudgetTotal, Over: sluice.OverDowngrade},
		{Per: sluice.BudgetAgent, Agent: "*", Micros: 1_000_000, Period: sluice.BudgetMonth, Over: sluice.OverDeny},
		{Per: sluice.BudgetAgent, Agent: "writer", Micros: 5_000_000, Period: sluice.BudgetDay, Over: sluice.OverDeny},
	}
	if !reflect.DeepEqual(c.Budgets, want) {
		t.Errorf("got\n%+v\nwant\n%+v", c.Budgets, want)
	}
	c.Store = "mem:"
	g, err := sluice.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// Routes know the prices of their models: as configured, from the provider's list, and approximately for families.
func TestRoutesOfTheFile(t *testing.T) {
	t.Parallel()
	f := parse(t, `
resources: {api: {limits: [{name: minute, size: 80/min}]}}
prices: {small: {input: 1, output: 5}}
routes:
  simple: [api/small, anthropic/haiku, gemini/flash]
  complex: [anthropic/opus, anthropic/sonnet, api/nobody-knows]
`)
	routes := gate(t, f).Routes
	price := map[string]float64{}
	for _, list := range routes {
		for _, c := range list {
			price[c.Resource+"/"+c.Model] = c.USDPerMTok
		}
	}
	if price["api/small"] != 2 || price["api/nobody-knows"] != 10 {
		t.Errorf("%v", price)
	}
	for _, cheaper := range [][2]string{{"anthropic/haiku", "anthropic/sonnet"}, {"anthropic/sonnet", "anthropic/opus"}} {
		if !(price[cheaper[0]] > 0 && price[cheaper[0]] < price[cheaper[1]]) {
			t.Errorf("%s is not cheaper than %s: %v", cheaper[0], cheaper[1], price)
		}
	}
	if got, _ := f.PriceList().Find("small"); got.CacheRead != 1 || got.Output != 5 {
		t.Errorf("%+v", got)
	}
	if len(routes["simple"]) != 3 || routes["simple"][0].Model != "small" {
		t.Errorf("%+v", routes)
	}
}

// Prices of a price file come after configured ones, and before those of this version. A lent configuration does not
// refer to the file, which is on another machine.
func TestPricesOfAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prices.json")
	text := `{"gpt-4o": {"input_cost_per_token": 0.001, "output_cost_per_token": 0.001}, "small": {"input_cost_per_token": 0.001}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := "resources: {api: {limits: [{name: minute, size: 80/min}]}}\nprices: {file: \"" + path + "\", small: {input: 1, output: 5}}\nroutes: {a: [api/gpt-4o, api/odd]}\n"
	f := parse(t, file)
	for model, want := range map[string]float64{"gpt-4o": 1000, "small": 1, "gpt-4o-mini": 0.15} {
		if got, known := f.PriceList().Find(model); !known || got.Input != want {
			t.Errorf("%s: %+v, want %v", model, got, want)
		}
	}
	route := gate(t, f).Routes["a"]
	if route[0].USDPerMTok != 1000 || route[0].Unpriced || !route[1].Unpriced {
		t.Errorf("%+v", route)
	}
	if shown, err := f.Show(); err != nil || !strings.Contains(string(shown), path) {
		t.Errorf("%s %v", shown, err)
	}
	if lent := string(f.Lend()); strings.Contains(lent, path) || !strings.Contains(lent, "small") {
		t.Errorf("%s", lent)
	}
	if err := os.WriteFile(path, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.GateConfig(time.Now()); err == nil || !strings.Contains(err.Error(), "prices.file: ") {
		t.Errorf("%v", err)
	}
	for bad, want := range map[string]string{
		"prices: {file: {input: 1, output: 2}}": "path of a file", "prices: {m: prices.json}": "a model has prices", "prices: {file: \"\"}": "path of a file",
	} {
		if _, err := Parse("x.yaml", []byte(bad), environment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
