package provider

// priceList are prices of models in dollars per million tokens, by plain name (see pricedAs). They are
// list prices: without batches at half the price, flexible and fast requests, and contracts. Where a price depends on
// the hour, it is the higher one. Where nobody states what the cache costs, it is as Anthropic and OpenAI
// reckon: reading a tenth of input (or all of it, where even that is not known), writing as input.
var priceList = map[string]Price{
	"claude-fable-5-1": {Input: 10, Output: 50, CacheRead: 0.25, CacheWrite: 12.50, CacheLong: 20, AsOf: "2026-09"},
	"claude-opus-5-5":  {Input: 4, Output: 20, CacheRead: 0.20, CacheWrite: 5, CacheLong: 8, AsOf: "2026-10-04"},
	"claude-opus-5":    opus5,
	"claude-opus-4-8":  opus5,
	"claude-opus-4-7":  opus5,
	"claude-opus-4-6":  opus5,
	"claude-opus-4-5":  opus5,
	"claude-sonnet-5-5": {
		Input: 2, Output: 10, CacheRead: 0.20, CacheWrite: 2.50, CacheLong: 4, AsOf: "2026-10-04",
	},
	"claude-haiku-5-5": {
		Input: 0.10, Output: 0.50, CacheRead: 0.01, CacheWrite: 0.125, CacheLong: 0.20, AsOf: "2026-10-10",
		step: step{above: 100_000, in: 0.50, out: 2.50, read: 0.05, write: 0.625, far: 1},
	},
	"claude-haiku-4-5": {Input: 1, Output: 5, CacheRead: 0.10, CacheWrite: 1.25, CacheLong: 2, AsOf: "2026-10-04"},

	"gpt-6-1-sol":   doubled(Price{Input: 2, Output: 10, CacheRead: 0.10, CacheWrite: 2.50, AsOf: "2026-10"}),
	"gpt-6-1-terra": doubled(Price{Input: 1, Output: 5, CacheRead: 0.05, CacheWrite: 1.25, CacheLong: 2.50, AsOf: "2026-11"}),
	"gpt-6-luna":    doubled(Price{Input: 0.10, Output: 0.50, CacheRead: 0.01, CacheWrite: 0.125, AsOf: "2026-09-22"}),
	"gpt-5-4":       doubled(Price{Input: 2.50, Output: 15, CacheRead: 0.25, CacheWrite: 2.50, AsOf: "2026"}),
	"gpt-5-4-mini":  doubled(Price{Input: 0.75, Output: 4.50, CacheRead: 0.075, CacheWrite: 0.75, AsOf: "2026"}),

	// From 2027 on it costs twice as much.
	"gemini-3-8-flash": {Input: 0.75, Output: 3.75, CacheRead: 0.75, CacheWrite: 0.75, AsOf: "2026-10-07"},
	"gemini-3-1-pro": {
		Input: 2, Output: 12, CacheRead: 0.20, CacheWrite: 2, AsOf: "2026-10-07",
		step: step{above: 200_000, in: 4, out: 18, read: 0.40, write: 4, far: 4},
	},

	"grok-4-5": grok4,
	"grok-4-6": grok4,

	"deepseek-flash":    deepSeekFlash,
	"deepseek-v4-flash": deepSeekFlash,
	"deepseek-v4-pro":   {Input: 1.32, Output: 3.96, CacheRead: 0.044, CacheWrite: 1.32, AsOf: "2026-10-27"},
}

var (
	opus5 = Price{Input: 5, Output: 25, CacheRead: 0.50, CacheWrite: 6.25, CacheLong: 10, AsOf: "2026-10"}
	grok4 = Price{
		Input: 2, Output: 6, CacheRead: 0.50, CacheWrite: 2, AsOf: "2026",
		step: step{above: 200_000, in: 4, out: 12, read: 1, write: 4, far: 4},
	}
	deepSeekFlash = Price{Input: 0.30, Output: 1.20, CacheRead: 0.006, CacheWrite: 0.30, AsOf: "2026-10-27"}
)

// doubled is the step of OpenAI's models: above 272,000 tokens of input, input costs twice as much and
// output half as much again.
func doubled(p Price) Price {
	far := p.CacheLong
	if far == 0 {
		far = p.CacheWrite
	}
	p.step = step{above: 272_000, in: 2 * p.Input, out: 1.5 * p.Output, read: 2 * p.CacheRead, write: 2 * p.CacheWrite, far: 2 * far}
	return p
}
