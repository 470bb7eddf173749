package sluicehttp

import (
	"context"
	"errors"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// Units of usage, in addition to those of the dialect.
const (
	unitInput  = "input_tokens"
	unitTokens = "tokens"
	unitUSD    = sluice.USD // in millionths of a dollar
)

// reckon estimates the cost of the request.
func (f *flight) reckon() {
	a, list := &f.asked, f.cost[:0]
	if a.Tokens {
		est := &f.told.Estimated
		est.Model = a.Model
		est.Input = f.t.book.Input(f.caller.Agent, a.Model, a.Text)
		est.Output = f.t.book.Output(f.caller.Agent, a.Model, a.MaxOutput)
		list = f.tokens(list, est)
		if f.t.Prices != nil {
			f.told.EstimatedMicros, f.told.Priced = f.t.Prices(a.Model, est)
			list, f.ask.Unpriced = set(list, unitUSD, f.told.EstimatedMicros), !f.told.Priced
		}
		if a.Reserved {
			list = set(list, unitTokens, f.reserved(est))
		}
	}
	for _, c := range a.Cost {
		list = set(list, c.Unit, c.N)
	}
	if len(f.t.windows) > 0 {
		list = f.reckonPlan(list)
	}
	f.ask.Cost, f.ask.Priced, f.ask.Unpaid = f.away.Reserve(list), a.Model, !a.Tokens
}

// bytesPerToken is how many bytes of text a provider takes for a token when it estimates the input from its length.
const bytesPerToken = 4

// reserved returns the tokens that the provider charges when the call arrives. Where that is the larger of input and
// maximum output, the input is the larger of our estimate and the provider's, which comes from the length of the text.
func (f *flight) reserved(est *provider.Usage) int64 {
	a := &f.asked
	if a.Larger && a.MaxOutput > 0 {
		return max(a.MaxOutput, est.Input, (a.Text+bytesPerToken-1)/bytesPerToken)
	}
	return est.Input + max(a.MaxOutput, est.Output)
}

// tokens adds usage in all units in which it can be counted. The dialect's own amounts take precedence.
func (f *flight) tokens(list []sluice.Amount, u *provider.Usage) []sluice.Amount {
	input := u.Input + u.CacheRead + u.CacheWrite + u.CacheLong
	list = set(list, unitInput, input)
	list = set(list, sluice.OutputTokens, u.Output)
	list = set(list, unitTokens, input+u.Output)
	for _, a := range f.t.speaker.Spent(u) {
		list = set(list, a.Unit, a.N)
	}
	return list
}

// set sets the amount of a unit. It clamps the amount, because one that is out of range would fail the request.
func set(list []sluice.Amount, unit string, n int64) []sluice.Amount {
	n = min(max(n, 0), store.MaxAmount)
	for i := range list {
		if list[i].Unit == unit {
			list[i].N = n
			return list
		}
	}
	return append(list, sluice.Amount{Unit: unit, N: n})
}

// rough reports whether the cost in a unit is an estimate.
func (f *flight) rough(unit string) bool {
	if !f.asked.Tokens || unit == unitTokens && f.asked.Reserved {
		return false
	}
	for _, a := range f.asked.Cost {
		if a.Unit == unit {
			return false
		}
	}
	return true
}

// shrink lowers an estimate to the size of the limit that is too small for it, and reports whether it did. A limit
// smaller than an estimate must not block the request for good: the request goes once the whole limit is free, and the
// provider decides.
func (f *flight) shrink(ctx context.Context, err error) bool {
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(e.Err, sluice.ErrCapacity) {
		return false
	}
	status, err := f.t.Gate.Status(ctx)
	if err != nil {
		return false
	}
	for _, r := range status.Resources {
		if r.Name != f.t.Resource {
			continue
		}
		for _, l := range r.Limits {
			if l.Name == e.Limit && l.Limit > 0 && f.lower(l.Unit, l.Limit) {
				return true
			}
		}
	}
	return false
}

func (f *flight) lower(unit string, most int64) bool {
	if !f.rough(unit) {
		return false
	}
	for i := range f.ask.Cost {
		if c := &f.ask.Cost[i]; c.Unit == unit && c.N > most {
			c.N = most
			return true
		}
	}
	return false
}
