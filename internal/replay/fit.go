package replay

import (
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Bounds of finding limits.
const (
	fewRefusals = 5      // with fewer refusals no limit is derived
	fitSends    = 20_000 // number of sends to examine, from the start
)

// fit finds the limit on requests that best explains the log's refusals. For each kind and window it picks the size
// that refuses as many sends too many as too few. It returns nil if there are too few refusals, or if no limit explains
// them.
func (r *Replay) fit() (limits []sim.Limit, refused int) {
	arrivals := r.arrivals()
	arrivals = arrivals[:min(len(arrivals), fitSends)]
	for i := range arrivals {
		if !arrivals[i].Accepted {
			refused++
		}
	}
	if refused < fewRefusals {
		return nil, refused
	}
	var best sim.Limit
	least := -1
	for _, window := range []time.Duration{time.Minute, time.Hour, time.Second, 10 * time.Second} {
		for _, kind := range []store.Kind{store.Bucket, store.Rolling, store.Fixed} {
			l := sim.Limit{Name: "requests", Kind: kind, Unit: sim.Requests, Window: window, PerModel: r.setup.PerModel}
			if kind == store.Fixed {
				l.Phase = r.start.Truncate(window).Add(window).Sub(r.start)
			}
			if l, wrong := fitSize(l, arrivals); least < 0 || wrong < least {
				best, least = l, wrong
			}
		}
	}
	if !explains(least, refused) { // something else refuses: a limit on tokens, or other users of the key
		return nil, refused
	}
	return []sim.Limit{best}, refused
}

// explains reports whether limits explain a number of refusals: they are wrong about at most half as many sends.
func explains(wrong, refused int) bool { return wrong <= refused/2 }

// fitSize returns the limit with the best size, and the number of sends that it does not explain.
func fitSize(l sim.Limit, arrivals []sim.Arrival) (sim.Limit, int) {
	sized := func(n int64) sim.Limit {
		l.Size, l.Burst = n, 0
		if l.Kind == store.Bucket {
			l.Burst = n
		}
		return l
	}
	wrong := func(n int64) (differ int, tooMany bool) {
		e := sim.Explain([]sim.Limit{sized(n)}, arrivals)
		return e.Differ, e.Model > e.Refused
	}
	low, high := int64(1), int64(len(arrivals))
	for low < high { // the smallest size that refuses no more than the log
		mid := (low + high) / 2
		if _, tooMany := wrong(mid); tooMany {
			low = mid + 1
		} else {
			high = mid
		}
	}
	best, least := low, -1
	for n := max(low-2, 1); n <= low+2; n++ {
		if differ, _ := wrong(n); least < 0 || differ < least {
			best, least = n, differ
		}
	}
	// Providers state round numbers: use a nearby one if it explains the log about as well.
	slack := max(1, len(arrivals)/200)
	for _, step := range []int64{1000, 500, 100, 50, 10, 5} {
		n := (best + step/2) / step * step
		if n < 1 || n*20 < best*19 || n*20 > best*21 {
			continue
		}
		if differ, _ := wrong(n); differ <= least+slack {
			return sized(n), differ
		}
	}
	return sized(best), least
}
