package provider

import (
	"math"
	"math/bits"
	"strings"
)

// Price is what a model costs, in dollars per million tokens: that is, in millionths of a dollar per
// token.
type Price struct {
	Input, Output float64
	CacheRead     float64 // of input that is read from a cache
	CacheWrite    float64 // of input that is written to one for minutes
	CacheLong     float64 // or for an hour or more; 0: as CacheWrite
	// AsOf is the day or month of which the price is known.
	AsOf string

	step step
}

// step is a price for requests with much input. It is that of the whole request.
type step struct {
	above      int64 // tokens of input, read from a cache or not; 0: there is no step
	in, out    float64
	read       float64
	write, far float64
}

// unknownPrice is what every token of a model that nobody knows costs, in dollars per million.
const unknownPrice = 10

// maxPrice is the most that a million tokens can cost.
const maxPrice = 1_000_000

// Prices are what models cost. They do not change once they are made, but for those of a map that is read again.
type Prices struct {
	own     map[string]Price // what was configured, by plain name
	current func() *PriceMap // nil: there is none
	list    map[string]Price
}

// DefaultPrices returns the prices that come with this version. They change often: see each one's AsOf,
// and state those that matter to you in the configuration.
func DefaultPrices() *Prices { return &Prices{list: priceList} }

// With returns prices of which some are others. The name of a model stands for all that begin with it.
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

// Find returns the price of a model. known is false if there is none: then every token costs the same, a
// lot.
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

// Micros is what usage costs, in millionths of a dollar, rounded once, half up. What the provider itself
// says that it costs counts first.
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

// PerMillion is about what a million tokens of a model cost, with three of input for each of output.
func (p *Prices) PerMillion(model string) (usd float64, known bool) {
	price, known := p.Find(model)
	return (3*price.Input + price.Output) / 4, known
}

// scale makes whole numbers of prices: a millionth of a dollar per million tokens is the smallest.
const scale = 1_000_000

// total is a sum of tokens times prices, in 128 bits: nothing is rounded before its end.
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
	if hi >= scale/2 { // more than there is
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, scale)
	return int64(n)
}

// pricedAs is a model's name as prices know it: without who makes and who hosts it, and with dashes
// instead of dots, which some write.
func pricedAs(model string) string { return strings.ReplaceAll(bareModel(model), ".", "-") }

// longest finds the longest name that a model's begins with, and what follows it may follow.
func longest(prices map[string]Price, model string, may func(rest string) bool) (Price, bool) {
	for end := len(model); end > 0; end = strings.LastIndexByte(model[:end], '-') {
		if price, ok := prices[model[:end]]; ok && may(model[end:]) {
			return price, true
		}
	}
	return Price{}, false
}

func anyRest(string) bool { return true }

// sameModel reports that what follows a model's name names no other model: a date does not, a number
// (another version) or a word (another size) does.
func sameModel(rest string) bool {
	word, _, _ := strings.Cut(strings.TrimPrefix(rest, "-"), "-")
	switch word {
	case "", "latest", "preview", "exp", "experimental", "beta", "thinking", "v1", "v2", "fast", "flex":
		return true
	}
	return isDigits(word) && len(word) >= 4
}
