package pool

import "github.com/sluicehq/sluice/store"

// amountsFor states amounts of the pool's first limits, in their order. Negative ones are not stated.
func amountsFor(p *Pool, amounts ...int64) (list []store.Amount) {
	for k, n := range amounts[:min(len(amounts), len(p.spec.Limits))] {
		if l := &p.spec.Limits[k]; n >= 0 && !p.isRetired(k) {
			list = append(list, store.Amount{Unit: l.Unit, Limit: l.Name, N: n})
		}
	}
	return list
}
