package pool

import (
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
)

// headerTime is the median time from grant to response headers, over the last 16 responses. It changes only between
// steps, so that all operations of a step see the same value. After the first 16 responses it is updated once per four.
type headerTime struct {
	samples [16]int64
	n       int64 // number of samples so far
	median  int64
	seen    int64 // value of n when the median was computed
}

func (h *headerTime) add(d int64) {
	h.samples[h.n%int64(len(h.samples))] = d
	h.n++
}

// isDue reports whether the median needs an update.
func (h *headerTime) isDue() bool {
	few := h.n - h.seen
	return few > 3 || few > 0 && h.n <= int64(len(h.samples))
}

// judge computes the median.
func (h *headerTime) judge() {
	h.seen = h.n
	sorted := h.samples
	k := min(h.n, int64(len(sorted)))
	slices.Sort(sorted[:k])
	h.median = sorted[(k-1)/2]
}

// slowerThan reports whether headers take so long that the slack is the better bound for arrivals.
func (h *headerTime) slowerThan(d *meter.Def, r *meter.Ring) bool {
	return h.median > 0 && d.Guard == meter.Auto && h.median > meter.SlowBeyond(d, r)
}
