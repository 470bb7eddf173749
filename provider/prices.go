package provider

import (
	"math"
	"math/bits"
	"strings"
)

// Price is what a model costs, in dollars per million tokens, which is millionths of a dollar per token.
type Price struct {
	Input, Output float64
	CacheRead     float64 // input read from a cache
	CacheWrite    float64 // input written to a cache for minutes
	CacheLong     float64 // input written to a cache for an hour or more; 0: as CacheWrite
	// AsOf is the day or month at which the price was known.
	AsOf string

	step step
}

// step is the price of requests with much input. It applies to the whole request.
type step struct {
	above      int64 // input tokens, including those read from a cache; 0: there is no step
	in, out    float64
	read       float64
	write, far float64
}

// unknownPrice is the price of every token of an unknown model, in dollars per million.
const unknownPrice = 10

// maxPrice bounds the price of a million tokens, in dollars.
const maxPrice = 1_000_000

// Prices are the prices of models. They are immutable, except for a price map that is read again.
type Prices struct {
	own     map[string]Price // configured prices, by plain name
	current func() *PriceMap // nil: there is no price map
	list    map[string]Price
}

// DefaultPrices returns the prices that come with this version. Prices change often: check AsOf, and state the
// prices that matter to you in the configuration.
func DefaultPrices() *Prices { return &Prices{list: priceList} }

// With returns p with some prices overridden. The name of a model stands for all models whose names begin with it.
func (p *Prices) With(overrides map[string]Price) *Prices {
	all := &Prices{list: p.list, current: p.current, own: make(map[string]Price, len(p.own)+len(overrides))}
	for model, price := range p.own {
		all.own[model] = price
	}
	for model, price := range overrides {
		all.own[pricedAs(model)] = price
	}
	return all
}

// Find returns the price of a model. If the price is unknown, known is false and every token costs the same high
// price.
func (p *Prices) Find(model string) (price Price, known bool) {
	m := pricedAs(model)
	if price, ok := longest(p.own, m, anyRest); ok {
		return price, true
	}
	if p.current != nil {
		if price, ok := p.current().find(model); ok {
			return price, true
		}
	}
	if strings.HasSuffix(strings.ToLower(model), ":free") {
		return Price{}, true
	}
	if price, ok := longest(p.list, m, sameModel); ok {
		return price, true
	}
	return Price{Input: unknownPrice, Output: unknownPrice, CacheRead: unknownPrice, CacheWrite: unknownPrice, CacheLong: unknownPrice}, false
}

// Micros returns the cost of usage in millionths of a dollar, rounded once, half up. A cost that the provider states
// takes precedence.
func (p *Prices) Micros(model string, u *Usage) (micros int64, known bool) {
	if u.Micros > 0 {
		return u.Micros, true
	}
	price, known := p.Find(model)
	if input := u.Input + u.CacheRead + u.CacheWrite + u.CacheLong; price.step.above > 0 && input > price.step.above {
		s := &price.step
		price.Input, price.Output, price.CacheRead, price.CacheWrite, price.CacheLong = s.in, s.out, s.read, s.write, s.far
	}
	if price.CacheLong == 0 {
		price.CacheLong = price.CacheWrite
	}
	var sum total
	sum.add(u.Input, price.Input)
	sum.add(u.Output, price.Output)
	sum.add(u.CacheRead, price.CacheRead)
	sum.add(u.CacheWrite, price.CacheWrite)
	sum.add(u.CacheLong, price.CacheLong)
	return sum.micros(), known
}

// PerMillion returns the approximate price of a million tokens, with three input tokens for each output token.
func (p *Prices) PerMillion(model string) (usd float64, known bool) {
	price, known := p.Find(model)
	return (3*price.Input + price.Output) / 4, known
}

// scale converts prices to integers: the smallest is a millionth of a dollar per million tokens.
const scale = 1_000_000

// total is a sum of tokens times prices, in 128 bits. It is rounded only once, at the end.
type total struct{ hi, lo uint64 }

func (t *total) add(tokens int64, price float64) {
	if tokens <= 0 || !(price > 0) {
		return
	}
	hi, lo := bits.Mul64(uint64(tokens), uint64(math.Round(min(price, maxPrice)*scale)))
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, lo, 0)
	t.hi += hi + carry
}

func (t *total) micros() int64 {
	lo, carry := bits.Add64(t.lo, scale/2, 0)
	hi := t.hi + carry
	if hi >= scale/2 { // overflow
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, scale)
	return int64(n)
}

// pricedAs returns a model's name in the form of the price list: without maker and host, and with dashes instead of
// dots, which some write.
func pricedAs(model string) string { return strings.ReplaceAll(bareModel(model), ".", "-") }

// longest finds the longest listed name that model begins with, if may accepts the rest of the model's name.
func longest(prices map[string]Price, model string, may func(rest string) bool) (Price, bool) {
	for end := len(model); end > 0; end = strings.LastIndexByte(model[:end], '-') {
		if price, ok := prices[model[:end]]; ok && may(model[end:]) {
			return price, true
		}
	}
	return Price{}, false
}

func anyRest(string) bool { return true }

// sameModel reports whether the rest after a listed name still means the same model. A date does; a number (another
// version) or a word (another size) does not.
func sameModel(rest string) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(rest, "-"), "-")
	switch word {
	case "", "latest", "preview", "exp", "experimental", "beta", "thinking", "v1", "v2", "fast", "flex":
		return true
	}
	return isDigits(word) && len(word) >= 4
}
