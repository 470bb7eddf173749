package provider

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/store"
	"pgregory.net/rapid"
)

func TestMicros(t *testing.T) {
	p := DefaultPrices().With(map[string]Price{"my-model": {Input: 1.5, Output: 3}, "gpt-5.4": {Input: 1}, "claude-opus": {Input: 7}})
	for _, tt := range []struct {
		model string
		usage Usage
		want  int64
		known bool
	}{
		{"claude-opus-5-5", Usage{Input: 1_000_000}, 7_000_000, true}, // what is configured stands for all that begin with it
		{"claude-sonnet-5-5-20261001", Usage{Input: 1000, Output: 1000, CacheRead: 1000, CacheWrite: 1000, CacheLong: 1000}, 2000 + 10000 + 200 + 2500 + 4000, true},
		{"anthropic/claude-sonnet-5.5", Usage{Input: 3}, 6, true},
		{"us.anthropic.claude-haiku-4-5-20251001-v1:0", Usage{Output: 1}, 5, true},
		{"claude-haiku-5-5", Usage{Input: 100_000}, 10_000, true},
		{"claude-haiku-5-5", Usage{Input: 50_000, CacheRead: 50_001, Output: 100}, 25_000 + 2500 + 250, true},
		{"claude-haiku-5-5", Usage{Input: 5}, 1, true}, // 0.5, half up
		{"claude-haiku-5-5", Usage{Input: 4}, 0, true},
		{"gpt-5-4", Usage{Input: 5}, 5, true},
		{"gpt-5.4-mini-2026-03-05", Usage{Input: 272_000}, 272_000, true}, // so here
		{"gpt-6.1-sol", Usage{Input: 272_001, Output: 1000}, 1_088_004 + 15_000, true},
		{"models/gemini-3.1-pro-preview", Usage{Input: 200_001, Output: 1000}, 800_004 + 18_000, true},
		{"grok-4.5", Usage{CacheRead: 1000}, 500, true},
		{"my-model-7b", Usage{Input: 1, Output: 1, CacheLong: 5}, 5, true}, // 4.5
		{"claude-haiku-6", Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CacheLong: 5}, 150, false},
		{"gpt-6-luna-nano", Usage{Input: 1}, 10, false},
		{"gpt-6", Usage{Input: 1}, 10, false},
		{"", Usage{Input: 1}, 10, false},
		{"z-ai/glm:free", Usage{Input: 1000}, 0, true},
		{"whatever", Usage{Input: 1000, Micros: 412}, 412, true},
		{"claude-sonnet-5-5", Usage{Input: -5}, 0, true},
		{"my-model", Usage{Input: store.MaxAmount, Output: store.MaxAmount}, 4947802324992, true},
	} {
		if got, known := p.Micros(tt.model, &tt.usage); got != tt.want || known != tt.known {
			t.Errorf("%s %+v: %d, %v; want %d, %v", tt.model, tt.usage, got, known, tt.want, tt.known)
		}
	}
}

func TestPerMillion(t *testing.T) {
	p := DefaultPrices()
	if usd, known := p.PerMillion("claude-opus-5-5"); usd != 8 || !known {
		t.Errorf("%v, %v", usd, known)
	}
	if usd, known := p.PerMillion("nobody's"); usd != 10 || known {
		t.Errorf("%v, %v", usd, known)
	}
}

func TestPriceListIsComplete(t *testing.T) {
	for model, p := range priceList {
		if pricedAs(model) != model {
			t.Errorf("%s is never found", model)
		}
		if p.AsOf == "" || !(p.Input > 0 && (p.Output > 0 || strings.HasPrefix(model, "text-embedding")) && p.CacheRead > 0 && p.CacheWrite > 0) || p.CacheRead > p.Input || p.CacheWrite < p.Input {
			t.Errorf("%s: %+v", model, p)
		}
		if s := p.step; s.above != 0 && !(s.in > p.Input && s.out > p.Output && s.read > 0 && s.write > 0 && s.far > 0) {
			t.Errorf("%s: %+v", model, s)
		}
	}
}

func TestOverridesAreApart(t *testing.T) {
	a := DefaultPrices()
	b := a.With(map[string]Price{"x": {Input: 1}})
	c := b.With(map[string]Price{"x": {Input: 2}, "y": {Input: math.NaN(), Output: math.Inf(1)}})
	for _, tt := range []struct {
		p    *Prices
		want int64
	}{{a, 10}, {b, 1}, {c, 2}} {
		if got, _ := tt.p.Micros("x", &Usage{Input: 1}); got != tt.want {
			t.Errorf("%d, want %d", got, tt.want)
		}
	}
	if got, _ := c.Micros("y", &Usage{Input: 1, Output: 1}); got != maxPrice {
		t.Errorf("a price that is none: %d", got)
	}
}

// A sum is exact and rounded once, however large.
func TestMicrosAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, store.MaxAmount)
		price := rapid.Int64Range(0, maxPrice*1000) // thousandths of a dollar
		u := Usage{Input: tokens.Draw(t, "input"), Output: tokens.Draw(t, "output"), CacheRead: tokens.Draw(t, "read")}
		in, out, read := price.Draw(t, "in"), price.Draw(t, "out"), price.Draw(t, "cached")
		p := DefaultPrices().With(map[string]Price{"m": {Input: float64(in) / 1000, Output: float64(out) / 1000, CacheRead: float64(read) / 1000}})
		want := new(big.Int)
		for _, part := range [][2]int64{{u.Input, in}, {u.Output, out}, {u.CacheRead, read}} {
			want.Add(want, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		want.Add(want, big.NewInt(500)).Div(want, big.NewInt(1000))
		if got, _ := p.Micros("m", &u); !want.IsInt64() || got != want.Int64() {
			t.Fatalf("%d, want %v", got, want)
		}
	})
}
