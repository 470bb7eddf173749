package provider

import (
	"strings"
	"testing"
)

const priceMap = `{
	"sample_spec": {"input_cost_per_token": 0.0, "litellm_provider": "one of them"},
	"dall-e-2": {"input_cost_per_pixel": 1.9e-08, "mode": "image_generation"},
	"gpt-4o": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "cache_read_input_token_cost": 1e-06, "max_tokens": "LEGACY"},
	"azure/eu/gpt-4o": {"input_cost_per_token": 3e-06, "output_cost_per_token": 9e-06},
	"gemini/new-model": {"input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06, "input_cost_per_token_above_200k_tokens": 2e-06,
		"output_cost_per_token_above_200k_tokens": 6e-06, "cache_read_input_token_cost": null},
	"vertex_ai/new-model": {"input_cost_per_token": 5e-07, "output_cost_per_token": 1e-06},
	"claude-x-20260101": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_creation_input_token_cost": 3.75e-06,
		"cache_creation_input_token_cost_above_1hr": 6e-06, "cache_read_input_token_cost": 3e-07},
	"steps": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_creation_input_token_cost": 3.75e-06,
		"cache_creation_input_token_cost_above_1hr": 6e-06, "cache_read_input_token_cost": 3e-07,
		"input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05},
	"stated": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "cache_read_input_token_cost": 1e-07, "input_cost_per_token_above_200k_tokens": 2e-06,
		"cache_read_input_token_cost_above_200k_tokens": 3e-07, "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 9e-06},
	"bad": {"input_cost_per_token": -1}, "worse": {"input_cost_per_token": 1e300}, "strange": [1]
}`

func TestPricesOfAMap(t *testing.T) {
	m, err := ParsePriceMap([]byte(priceMap), "2026-11-01")
	if err != nil {
		t.Fatal(err)
	}
	p := DefaultPrices().With(map[string]Price{"mine": {Input: 7, Output: 7}}).WithMap(func() *PriceMap { return m })
	for model, want := range map[string]struct {
		u      Usage
		micros int64
		known  bool
	}{
		"gpt-4o":                         {Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6}, 11e6, true},
		"gpt-4o-2024-08-06":              {Usage{Input: 1e6}, 2e6, true},
		"gpt-4o-mini":                    {Usage{Input: 1e6}, 150_000, true}, // another model, in the list of this version
		"azure/eu/gpt-4o":                {Usage{Input: 1e6}, 3e6, true},
		"azure/us/gpt-4o":                {Usage{Input: 1e6}, 2e6, true}, // the maker's price
		"new-model":                      {Usage{Input: 1e5}, 100_000, true},
		"models/new-model":               {Usage{Input: 1e6, Output: 1e6}, 8e6, true},
		"gemini/new-model":               {Usage{CacheRead: 1e6}, 2e6, true}, // no discount is known
		"steps":                          {Usage{CacheRead: 1e6, CacheWrite: 1e6, CacheLong: 1e6}, 600_000 + 7_500_000 + 12e6, true},
		"stated":                         {Usage{CacheRead: 1e6, CacheWrite: 1e6, CacheLong: 1e6}, 300_000 + 2e6 + 9e6, true},
		"vertex_ai/new-model":            {Usage{Input: 1e6}, 500_000, true},
		"claude-x-20260101":              {Usage{Input: 1e6, CacheRead: 1e6, CacheWrite: 1e6, CacheLong: 1e6}, 3e6 + 300_000 + 3_750_000 + 6e6, true},
		"us.anthropic.claude-x-20260101": {Usage{Input: 1e6}, 3e6, true},
		"mine-2":                         {Usage{Input: 1e6}, 7e6, true},
		"dall-e-2":                       {Usage{Input: 1e6}, 10e6, false},
		"bad":                            {Usage{Input: 1e6}, 10e6, false},
		"worse":                          {Usage{Input: 1e6}, 10e6, false},
	} {
		if got, known := p.Micros(model, &want.u); got != want.micros || known != want.known {
			t.Errorf("%s: %d %v, want %d %v", model, got, known, want.micros, want.known)
		}
	}
	if price, _ := p.Find("gpt-4o"); price.AsOf != "2026-11-01" {
		t.Errorf("the price is of %q", price.AsOf)
	}
}

func TestModelsThatAreOfferedHaveAPrice(t *testing.T) {
	for _, model := range strings.Fields("claude-sonnet-4-5-20250929 claude-sonnet-4-6 claude-sonnet-5 claude-sonnet-4-20250514 claude-opus-4-1-20250805 claude-fable-5 " +
		"gpt-4o gpt-4o-2024-11-20 gpt-4o-mini gpt-5 gpt-5-mini gpt-5-nano gpt-5.1 gpt-5.2 gpt-5.5 gpt-5.6-sol gpt-5.6-luna gpt-4.1 gpt-4.1-mini o3 o4-mini " +
		"gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-2.0-flash gemini-3-flash-preview gemini-3.5-flash gemini-3.7-flash text-embedding-3-small") {
		if price, known := DefaultPrices().Find(model); !known || price.AsOf == "" {
			t.Errorf("%s: %+v", model, price)
		}
	}
	for _, model := range []string{"gpt-5-large", "claude-sonnet-6", "gemini-2.5-ultra", "o5"} {
		if _, known := DefaultPrices().Find(model); known {
			t.Errorf("%s has a price", model)
		}
	}
}
