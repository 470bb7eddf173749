package pool

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// sent is a request as a provider sees it.
type sent struct {
	arrives, ends int64
	amounts       [store.MaxLimits]int64
}

// provider counts arriving requests exactly. It knows nothing about pools.
type provider struct {
	limits []store.Limit
	resets [store.MaxLimits]int64 // any true reset of each fixed window
	got    []*sent
}

// check describes the first limit that was exceeded.
func (v *provider) check() error {
	slices.SortStableFunc(v.got, func(a, b *sent) int { return cmp.Compare(a.arrives, b.arrives) })
	for k := range v.limits {
		l := &v.limits[k]
		var worst, size int64
		switch size = l.Size; l.Kind {
		case store.Rolling:
			worst = v.rolling(k, l.Window.Microseconds())
		case store.Fixed:
			worst = v.fixed(k, l.Window.Microseconds())
		case store.Bucket:
			worst, size = v.bucket(k, l), l.Burst
		case store.Concurrency:
			worst = v.places(k)
		}
		if worst > size {
			return fmt.Errorf("limit %d, %v of %d per %v, saw %d", k, l.Kind, size, l.Window, worst)
		}
	}
	return nil
}

func (v *provider) rolling(k int, window int64) (worst int64) {
	var sum int64
	first := 0
	for _, q := range v.got {
		for ; v.got[first].arrives <= q.arrives-window; first++ {
			sum -= v.got[first].amounts[k]
		}
		sum += q.amounts[k]
		worst = max(worst, sum)
	}
	return worst
}

func (v *provider) fixed(k int, window int64) (worst int64) {
	sums := map[int64]int64{}
	for _, q := range v.got {
		n := (q.arrives - v.resets[k] + 1000*window) / window
		sums[n] += q.amounts[k]
		worst = max(worst, sums[n])
	}
	return worst
}

func (v *provider) bucket(k int, l *store.Limit) (worst int64) {
	var level, last int64 // in 1/window
	window := l.Window.Microseconds()
	for _, q := range v.got {
		if q.amounts[k] == 0 {
			continue
		}
		level = max(level-(q.arrives-last)*l.Size, 0) + q.amounts[k]*window
		last = q.arrives
		worst = max(worst, (level+window-1)/window)
	}
	return worst
}

func (v *provider) places(k int) (worst int64) {
	type change struct{ at, n int64 }
	var list []change
	for _, q := range v.got {
		if q.amounts[k] > 0 && q.ends > q.arrives {
			list = append(list, change{q.arrives, q.amounts[k]}, change{q.ends, -q.amounts[k]})
		}
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	var sum int64
	for _, c := range list {
		sum += c.n
		worst = max(worst, sum)
	}
	return worst
}

// closing returns the close of a request. Half of the time it used less than it was charged, and the provider counted
// the smaller amount.
func closing(rng *rand.Rand, id store.ID, q *sent, limits []store.Limit) store.Op {
	op := store.Op{Kind: store.OpClose, ID: id}
	if rng.IntN(2) == 0 {
		return op
	}
	for k := range limits {
		if q.amounts[k] > 0 {
			q.amounts[k] = rng.Int64N(q.amounts[k] + 1)
			op.Amounts = append(op.Amounts, store.Amount{Unit: limits[k].Unit, N: q.amounts[k]})
		}
	}
	return op
}
