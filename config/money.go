package config

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// unpriced lists what budgets cannot price, as far as the file tells.
func (f *File) unpriced() (all []string) {
	if len(f.gateBudgets()) == 0 {
		return nil
	}
	prices, priced := f.PriceList(), len(f.Prices) > 0
	for _, name := range sorted(f.Resources) {
		if f.added[name] {
			continue
		}
		r, path, paid := f.Resources[name], join("resources", name), provider.CountsTokens(f.Dialect(name))
		priced = priced || paid
		if r.Provider != "" && r.Provider != "generic" && !paid {
			continue // it costs no money
		}
		for i := range r.Limits {
			l := &r.Limits[i]
			if l.Unit == "" || l.Unit == sluice.Requests || l.Unit == sluice.Work || strings.HasSuffix(l.Unit, "tokens") {
				continue
			}
			all = append(all, fmt.Sprintf("%s counts %s, which has no price: budgets count such requests only if callers state usd", index(path+".limits", i), l.Unit))
		}
	}
	for _, task := range sorted(f.Routes) {
		for i, route := range f.Routes[task] {
			if _, model, _ := strings.Cut(route, "/"); model != "" {
				if _, known := perMillion(prices, model); !known {
					all = append(all, fmt.Sprintf("%s: %s has no price, so budgets count 10 usd per million tokens; add it to prices", index(join("routes", task), i), model))
				}
			}
		}
	}
	if !priced {
		all = append(all, "budgets: no resource has a provider with prices, and prices is empty: budgets count the usd that callers state, list prices of models that Sluice knows, and 10 usd per million tokens of others")
	}
	return all
}
