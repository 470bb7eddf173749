package provider

import "github.com/sluicehq/sluice"

// OfAmounts is Micros for usage stated in units: input_tokens, output_tokens, cache_read_tokens and
// cache_write_tokens. If only tokens is stated, they count as output, which costs the most.
func (p *Prices) OfAmounts(model string, usage []sluice.Amount) (micros int64, known bool) {
	var u Usage
	var all int64
	for _, a := range usage {
		switch a.Unit {
		case "input_tokens":
			u.Input = a.N
		case sluice.OutputTokens:
			u.Output = a.N
		case "cache_read_tokens":
			u.CacheRead = a.N
		case "cache_write_tokens":
			u.CacheWrite = a.N
		case "tokens":
			all = a.N
		}
	}
	if u == (Usage{}) {
		u.Output = all
	}
	return p.Micros(model, &u)
}

// CountsTokens reports whether a provider serves language models, whose calls cost tokens and money.
func CountsTokens(d Dialect) bool {
	v, ok := d.(*vendor)
	return ok && v.models
}
