package api

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
)

// Bounds on the dollars that a caller below the highest class states with one ticket, in millionths of a dollar.
const (
	maxMicros   = 100_000_000 // regardless of what its tokens cost
	usualMicros = 10_000_000  // if its tokens cost less than half of that
)

// money bounds the dollars that a caller below the highest class states, reserved or used. A request costs about what
// its tokens cost. So a stated amount counts up to twice the list price, or 10 USD, and up to 100 USD in any case. What
// all such callers state beyond the list price, and beyond what they reserved, takes at most a quarter of a shared
// budget, plus an eighth per hour. Beyond that only the list price counts. A caller can still use up a shared budget by
// really spending it: the provider is paid for that.
func (c *call) money(resource, model string, reserved, list []sluice.Amount) []sluice.Amount {
	if !c.bounded() {
		return list
	}
	price, priced := inside.Of(c.api.Gate).ListPrice(resource, model, list)
	at := slices.IndexFunc(list, func(a sluice.Amount) bool { return a.Unit == sluice.USD })
	if at < 0 {
		if price > maxMicros {
			list = append(slices.Clip(list), sluice.Amount{Unit: sluice.USD, N: maxMicros})
		}
		return list
	}
	price = min(price, maxMicros)
	n := min(list[at].N, max(usualMicros, min(2*price, maxMicros)))
	if had := max(price, of(reserved, sluice.USD)); n > had && c.api.Shared > 0 {
		n = had + c.api.stated.add("money", n-had, bound{all: c.api.Shared / part, window: time.Hour}, time.Now())
	}
	list = slices.Clone(list)
	if n == price && priced {
		return slices.Delete(list, at, at+1) // the gate prices it, and flags an estimated price
	}
	list[at].N = n
	return list
}
