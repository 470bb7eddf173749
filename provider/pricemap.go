package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxPriceModels bounds a price map. The widely used one has 3,000 models.
const maxPriceModels = 100_000

// PriceMap has prices in the JSON format of LiteLLM's model_prices_and_context_window.json: an object of models,
// each with input_cost_per_token, output_cost_per_token and so on, in dollars.
type PriceMap struct {
	exact map[string]Price // by full name
	plain map[string]Price // by plain name
}

// WithMap returns p with a price map. current is called for every lookup and may return a newer map each time.
// Configured prices take precedence over the map, and the map over the list of this version.
func (p *Prices) WithMap(current func() *PriceMap) *Prices {
	return &Prices{own: p.own, list: p.list, current: current}
}

// find returns the price of a model: that of its full name, or that of the longest name that it is a dated version
// of.
func (m *PriceMap) find(model string) (Price, bool) {
	if m == nil {
		return Price{}, false
	}
	if price, ok := m.exact[strings.ToLower(model)]; ok {
		return price, true
	}
	return longest(m.plain, pricedAs(model), sameModel)
}

var errNoPrices = errors.New("it has no prices: an object of models with input_cost_per_token is needed")

// ParsePriceMap reads prices that were current at the date asOf. It skips models without prices for tokens.
func ParsePriceMap(text []byte, asOf string) (*PriceMap, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	if len(all) > maxPriceModels {
		return nil, fmt.Errorf("it has %d models, more than %d", len(all), maxPriceModels)
	}
	exact, plain := map[string]Price{}, map[string]Price{}
	strength := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "sample_spec" {
			continue
		}
		price, ok := parseMapped(all[name])
		if !ok {
			continue
		}
		price.AsOf = asOf
		key := strings.ToLower(name)
		exact[key] = price
		// Several hosts may list the same model at different prices. A name without a host is the maker's. Of two
		// hosts, the more expensive one counts.
		known, how := plain[pricedAs(name)], 1
		switch {
		case strings.ReplaceAll(key, ".", "-") == pricedAs(name):
			how = 3
		case !strings.Contains(name, "/"):
			how = 2
		}
		if was := strength[pricedAs(name)]; how > was || how == was && price.Input+price.Output > known.Input+known.Output {
			plain[pricedAs(name)], strength[pricedAs(name)] = price, how
		}
	}
	if len(exact) == 0 {
		return nil, errNoPrices
	}
	return &PriceMap{exact, plain}, nil
}

// longField matches a price for requests with more than a number of thousand input tokens.
var longField = regexp.MustCompile(`^(.+)_above_([0-9]{1,7})k_tokens$`)

// parseMapped reads one model. It returns false if the model has no price for tokens, or an invalid one.
func parseMapped(text []byte) (p Price, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return p, false
	}
	usd := map[string]float64{} // per million tokens
	long := map[int64]map[string]float64{}
	for name, raw := range fields {
		var n float64
		if !strings.Contains(name, "cost") || bytes.HasPrefix(raw, []byte("null")) || json.Unmarshal(raw, &n) != nil {
			continue
		}
		n *= 1e6
		if m := longField.FindStringSubmatch(name); m != nil {
			k, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil || k == 0 {
				continue
			}
			if long[k] == nil {
				long[k] = map[string]float64{}
			}
			long[k][m[1]] = n
			continue
		}
		usd[name] = n
	}
	const in, out, read, write, far = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
		"cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"
	for _, name := range []string{in, out, read, write, far} {
		if n := usd[name]; !(n >= 0 && n <= maxPrice) {
			return p, false
		}
	}
	if _, there := usd[in]; !there {
		return p, false
	}
	or := func(m map[string]float64, name string, usual float64) float64 {
		if n, there := m[name]; there && n >= 0 && n <= maxPrice {
			return n
		}
		return usual
	}
	p = Price{Input: usd[in], Output: usd[out], CacheRead: or(usd, read, usd[in]), CacheWrite: or(usd, write, usd[in]), CacheLong: usd[far]}
	for _, k := range slices.Sorted(maps.Keys(long)) {
		l := long[k]
		if _, there := l[in]; !there {
			continue // for pictures, for example
		}
		p.step = step{above: k * 1000, in: or(l, in, p.Input), out: or(l, out, p.Output)}
		times := 1.0 // prices of the cache that are not stated rise as that of the input does
		if p.Input > 0 && p.step.in > p.Input {
			times = p.step.in / p.Input
		}
		p.step.read, p.step.write = or(l, read, times*p.CacheRead), or(l, write, times*p.CacheWrite)
		p.step.far = max(p.step.write, or(l, far, times*p.CacheLong))
		break
	}
	return p, true
}
