package pool

import (
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
)

// headerTime is the median of how long the last answers took to begin, from the
// grant on.
// It changes between steps, so that it is the same for all operations of one. From the first 16 answers on it is found anew with every fourth.
type headerTime struct {
	samples [16]int64
	n       int64
	median  int64
	seen    int64 // how many the median is of
}

func (h *headerTime) add(d int64) {
	h.samples[h.n%int64(len(h.samples))] = d
	h.n++
}

// isDue reports whether the median is to be found anew.
func (h *headerTime) isDue() bool {
	few := h.n - h.seen
	return few > 3 || few > 0 && h.n <= int64(len(h.samples))
}

// judge finds the median.
func (h *headerTime) judge() {
	h.seen = h.n
	sorted := h.samples
	k := min(h.n, int64(len(sorted)))
	slices.Sort(sorted[:k])
	h.median = sorted[(k-1)/2]
}

// slowerThan reports that headers take so long that the slack bounds arrivals better.
func (h *headerTime) slowerThan(d *meter.Def, r *meter.Ring) bool {
	return h.median > 0 && d.Guard == meter.Auto && h.median > meter.SlowBeyond(d, r)
}
