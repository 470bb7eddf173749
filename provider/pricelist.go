package provider

// priceList has prices of models in dollars per million tokens, by plain name (see pricedAs). They are list prices:
// without batches at half the price, flexible and fast requests, and contracts. Where a price depends on the hour,
// the list has the higher one. Where the price of caching is not published, it follows Anthropic and OpenAI: reading
// costs a tenth of input (or all of it, where even that is unknown), and writing costs as much as input.
var priceList = map[string]Price{
	"claude-fable-5":   {Input: 10, Output: 50, CacheRead: 1, CacheWrite: 12.50, CacheLong: 20, AsOf: "2026-09"},
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
	"claude-sonnet-5":   {Input: 2, Output: 10, CacheRead: 0.20, CacheWrite: 2.50, CacheLong: 4, AsOf: "2026-09-22"},
	"claude-sonnet-4-6": {Input: 3, Output: 15, CacheRead: 0.30, CacheWrite: 3.75, CacheLong: 6, AsOf: "2026-09-22"},
	"claude-sonnet-4-5": sonnet4,
	"claude-sonnet-4":   sonnet4,
	"claude-3-7-sonnet": {Input: 3, Output: 15, CacheRead: 0.30, CacheWrite: 3.75, CacheLong: 6, AsOf: "2026-05"},
	"claude-opus-4-1":   opus4,
	"claude-opus-4":     opus4,
	"claude-3-5-haiku":  {Input: 0.80, Output: 4, CacheRead: 0.08, CacheWrite: 1, CacheLong: 1.60, AsOf: "2025-08"},
	"claude-3-haiku":    {Input: 0.25, Output: 1.25, CacheRead: 0.03, CacheWrite: 0.30, CacheLong: 0.50, AsOf: "2026-03-21"},
	"claude-haiku-5-5": {
		Input: 0.10, Output: 0.50, CacheRead: 0.01, CacheWrite: 0.125, CacheLong: 0.20, AsOf: "2026-10-10",
		step: step{above: 100_000, in: 0.50, out: 2.50, read: 0.05, write: 0.625, far: 1},
	},
	"claude-haiku-4-5": {Input: 1, Output: 5, CacheRead: 0.10, CacheWrite: 1.25, CacheLong: 2, AsOf: "2026-10-04"},

	"gpt-6-1-sol":   doubled(Price{Input: 2, Output: 10, CacheRead: 0.10, CacheWrite: 2.50, AsOf: "2026-10"}),
	"gpt-6-1-terra": doubled(Price{Input: 1, Output: 5, CacheRead: 0.05, CacheWrite: 1.25, CacheLong: 2.50, AsOf: "2026-11"}),
	"gpt-6-luna":    doubled(Price{Input: 0.10, Output: 0.50, CacheRead: 0.01, CacheWrite: 0.125, AsOf: "2026-09-22"}),
	"gpt-5-6-sol":   doubled(Price{Input: 5, Output: 30, CacheRead: 0.50, CacheWrite: 6.25, AsOf: "2026-10"}),
	"gpt-5-6-terra": doubled(Price{Input: 2, Output: 12, CacheRead: 0.20, CacheWrite: 2.50, AsOf: "2026-10"}),
	"gpt-5-6-luna": {
		Input: 0.20, Output: 1.20, CacheRead: 0.02, CacheWrite: 0.25, AsOf: "2026-10",
		step: step{above: 200_000, in: 0.40, out: 1.80, read: 0.04, write: 0.50, far: 0.50},
	},
	"gpt-5-5":       doubled(Price{Input: 5, Output: 30, CacheRead: 0.50, CacheWrite: 5, AsOf: "2026-10"}),
	"gpt-5-5-pro":   {Input: 30, Output: 180, CacheRead: 30, CacheWrite: 30, AsOf: "2026-06"},
	"gpt-5-4-pro":   {Input: 30, Output: 180, CacheRead: 30, CacheWrite: 30, AsOf: "2026-05"},
	"gpt-5-4-nano":  {Input: 0.20, Output: 1.25, CacheRead: 0.02, CacheWrite: 0.20, AsOf: "2026-10"},
	"gpt-5-3-codex": gpt52,
	"gpt-5-2":       gpt52,
	"gpt-5-2-codex": gpt52,
	"gpt-5-1":       gpt5,
	"gpt-5-1-codex": gpt5,
	"gpt-5":         gpt5,
	"gpt-5-codex":   gpt5,
	"gpt-5-pro":     {Input: 15, Output: 120, CacheRead: 15, CacheWrite: 15, AsOf: "2026-03-21"},
	"gpt-5-mini":    {Input: 0.25, Output: 2, CacheRead: 0.025, CacheWrite: 0.25, AsOf: "2026-10"},
	"gpt-5-nano":    {Input: 0.05, Output: 0.40, CacheRead: 0.005, CacheWrite: 0.05, AsOf: "2026-03-21"},
	"gpt-4-1":       {Input: 2, Output: 8, CacheRead: 0.50, CacheWrite: 2, AsOf: "2026-04"},
	"gpt-4-1-mini":  {Input: 0.40, Output: 1.60, CacheRead: 0.10, CacheWrite: 0.40, AsOf: "2026-04"},
	"gpt-4-1-nano":  {Input: 0.10, Output: 0.40, CacheRead: 0.025, CacheWrite: 0.10, AsOf: "2026-04"},
	"gpt-4o":        {Input: 2.50, Output: 10, CacheRead: 1.25, CacheWrite: 2.50, AsOf: "2026-06"},
	"gpt-4o-mini":   {Input: 0.15, Output: 0.60, CacheRead: 0.075, CacheWrite: 0.15, AsOf: "2026-06"},
	"o4-mini":       {Input: 1.10, Output: 4.40, CacheRead: 0.275, CacheWrite: 1.10, AsOf: "2026-03-21"},
	"o3":            {Input: 2, Output: 8, CacheRead: 0.50, CacheWrite: 2, AsOf: "2026-04"},
	"o3-mini":       {Input: 1.10, Output: 4.40, CacheRead: 0.55, CacheWrite: 1.10, AsOf: "2026-05"},
	"o1":            {Input: 15, Output: 60, CacheRead: 7.50, CacheWrite: 15, AsOf: "2026-05"},

	"text-embedding-3-large": {Input: 0.13, CacheRead: 0.13, CacheWrite: 0.13, AsOf: "2026-04"},
	"text-embedding-3-small": {Input: 0.02, CacheRead: 0.02, CacheWrite: 0.02, AsOf: "2026-04"},

	"gpt-5-4":      doubled(Price{Input: 2.50, Output: 15, CacheRead: 0.25, CacheWrite: 2.50, AsOf: "2026"}),
	"gpt-5-4-mini": doubled(Price{Input: 0.75, Output: 4.50, CacheRead: 0.075, CacheWrite: 0.75, AsOf: "2026"}),

	// The price doubles in 2027.
	"gemini-3-8-flash": {Input: 0.75, Output: 3.75, CacheRead: 0.75, CacheWrite: 0.75, AsOf: "2026-10-07"},
	"gemini-3-1-pro": {
		Input: 2, Output: 12, CacheRead: 0.20, CacheWrite: 2, AsOf: "2026-10-07",
		step: step{above: 200_000, in: 4, out: 18, read: 0.40, write: 4, far: 4},
	},

	// These two prices double in 2027.
	"gemini-3-7-flash":      {Input: 0.75, Output: 3.75, CacheRead: 0.075, CacheWrite: 0.75, AsOf: "2026-10"},
	"gemini-3-6-flash":      {Input: 0.75, Output: 3.75, CacheRead: 0.075, CacheWrite: 0.75, AsOf: "2026-10"},
	"gemini-3-5-flash":      {Input: 1.50, Output: 9, CacheRead: 0.15, CacheWrite: 1.50, AsOf: "2026-10"},
	"gemini-3-1-flash-lite": {Input: 0.25, Output: 1.50, CacheRead: 0.25, CacheWrite: 0.25, AsOf: "2026-06"},
	"gemini-3-flash":        {Input: 0.50, Output: 3, CacheRead: 0.50, CacheWrite: 0.50, AsOf: "2026-06"},
	"gemini-2-5-pro": {
		Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25, AsOf: "2026-06",
		step: step{above: 200_000, in: 2.50, out: 15, read: 0.25, write: 2.50, far: 2.50},
	},
	"gemini-2-5-flash":      {Input: 0.30, Output: 2.50, CacheRead: 0.03, CacheWrite: 0.30, AsOf: "2026-06"},
	"gemini-2-5-flash-lite": {Input: 0.10, Output: 0.40, CacheRead: 0.01, CacheWrite: 0.10, AsOf: "2026-06"},
	"gemini-2-0-flash":      {Input: 0.10, Output: 0.40, CacheRead: 0.10, CacheWrite: 0.10, AsOf: "2026-06"},

	"grok-4-5": grok4,
	"grok-4-6": grok4,

	"deepseek-flash":    deepSeekFlash,
	"deepseek-v4-flash": deepSeekFlash,
	"deepseek-v4-pro":   {Input: 1.32, Output: 3.96, CacheRead: 0.044, CacheWrite: 1.32, AsOf: "2026-10-27"},
}

var (
	opus4   = Price{Input: 15, Output: 75, CacheRead: 1.50, CacheWrite: 18.75, CacheLong: 30, AsOf: "2026-03-21"}
	sonnet4 = Price{
		Input: 3, Output: 15, CacheRead: 0.30, CacheWrite: 3.75, CacheLong: 6, AsOf: "2026-10",
		step: step{above: 200_000, in: 6, out: 22.50, read: 0.60, write: 7.50, far: 12},
	}
	gpt52 = Price{Input: 1.75, Output: 14, CacheRead: 0.175, CacheWrite: 1.75, AsOf: "2026-10"}
	gpt5  = Price{Input: 1.25, Output: 10, CacheRead: 0.125, CacheWrite: 1.25, AsOf: "2026-03-21"}
	opus5 = Price{Input: 5, Output: 25, CacheRead: 0.50, CacheWrite: 6.25, CacheLong: 10, AsOf: "2026-10"}
	grok4 = Price{
		Input: 2, Output: 6, CacheRead: 0.50, CacheWrite: 2, AsOf: "2026",
		step: step{above: 200_000, in: 4, out: 12, read: 1, write: 4, far: 4},
	}
	deepSeekFlash = Price{Input: 0.30, Output: 1.20, CacheRead: 0.006, CacheWrite: 0.30, AsOf: "2026-10-27"}
)

// doubled adds the step of OpenAI's models: above 272,000 input tokens, input costs twice as much and output 1.5
// times as much.
func doubled(p Price) Price {
	far := p.CacheLong
	if far == 0 {
		far = p.CacheWrite
	}
	p.step = step{above: 272_000, in: 2 * p.Input, out: 1.5 * p.Output, read: 2 * p.CacheRead, write: 2 * p.CacheWrite, far: 2 * far}
	return p
}
