package config

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/pricefile"
	"github.com/sluicehq/sluice/provider"
)

// PriceList returns the prices of models: built-in prices of providers, then the price file, then the prices in this
// file. It leaves out a price file that it cannot read; [File.GateConfig] returns the error.
func (f *File) PriceList() *provider.Prices {
	prices, _ := f.priceList()
	return prices
}

func (f *File) priceList() (*provider.Prices, error) {
	prices, err := provider.DefaultPrices(), error(nil)
	own := map[string]provider.Price{}
	for model, p := range f.Prices {
		if model == priceFile {
			current, failed := pricefile.Open(p.path)
			if err = failed; err == nil {
				prices = prices.WithMap(current)
			}
			continue
		}
		p.defaults()
		own[model] = provider.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.CacheRead, CacheWrite: *p.CacheWrite, AsOf: "configured"}
	}
	return prices.With(own), err
}

// gateBudgets returns the budgets of the file, including the budgets of single agents.
func (f *File) gateBudgets() []sluice.Budget {
	var list []sluice.Budget
	for _, b := range f.Budgets {
		list = append(list, sluice.Budget{
			Name: b.Name, Per: string(b.Per), Micros: b.Size.Micros, Period: b.Size.period(), Over: string(b.Over),
		})
	}
	for _, name := range sorted(f.Agents) {
		if m := f.Agents[name].Budget; m != (Money{}) {
			list = append(list, sluice.Budget{Per: sluice.BudgetAgent, Agent: name, Micros: m.Micros, Period: m.period(), Over: sluice.OverDeny})
		}
	}
	return list
}

func (m Money) period() string {
	return cmp.Or(m.Period, sluice.BudgetTotal)
}

// gateRoutes returns the routes of the file with the prices of their models.
func (f *File) gateRoutes() map[string][]sluice.RouteChoice {
	if len(f.Routes) == 0 {
		return nil
	}
	prices := f.PriceList()
	routes := map[string][]sluice.RouteChoice{}
	for task, list := range f.Routes {
		for _, route := range list {
			resource, model, _ := strings.Cut(route, "/")
			usd, known := perMillion(prices, model)
			routes[task] = append(routes[task], sluice.RouteChoice{
				Resource: resource, Model: model, Part: f.partOf(resource, model), USDPerMTok: usd, Unpriced: !known,
			})
		}
	}
	return routes
}

// families maps the short name of a model family to one of its models. The others of a family cost about the same.
var families = map[string]string{
	"haiku": "claude-haiku-5-5", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5",
	"flash": "gemini-3-8-flash", "pro": "gemini-3-1-pro", "mini": "gpt-5-4-mini",
}

func perMillion(prices *provider.Prices, model string) (usd float64, known bool) {
	usd, known = prices.PerMillion(model)
	if family, ok := families[model]; ok && !known {
		return prices.PerMillion(family)
	}
	return usd, known
}

// partOf returns the name under which the provider limits a model, or "" if the dialect does not know. It asks the
// dialect with a made-up request for the model.
func (f *File) partOf(resource, model string) string {
	speaker, ok := f.dialectOf(resource).(provider.Speaker)
	if !ok {
		return ""
	}
	body, err := json.Marshal(map[string]any{"model": model, "max_tokens": 1})
	if err != nil {
		return ""
	}
	for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1beta/models/" + model + ":generateContent"} {
		asked := speaker.Ask(&provider.Call{Method: "POST", Path: path, Body: body, Whole: true, Size: int64(len(body))})
		if asked.Tokens {
			return asked.Part
		}
	}
	return ""
}

// dialectOf is like Dialect, and also finds a provider that has no resource in the file.
func (f *File) dialectOf(resource string) provider.Dialect {
	if _, there := f.Resources[resource]; !there && slices.Contains(provider.Names(), resource) {
		d, _ := provider.Lookup(resource)
		return d
	}
	return f.Dialect(resource)
}
