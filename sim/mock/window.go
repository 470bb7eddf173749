package mock

import "github.com/sluicehq/sluice/store"

// maxTracked bounds how many requests of one window are tracked.
const maxTracked = 1 << 20

// window finds the most requests that were accepted in any span of its length.
type window struct {
	length store.Time
	at     []store.Time // accepted within the last length, oldest first
}

// add records a request accepted at t. It returns how many were accepted in the span that ends with it, including
// itself.
func (w *window) add(t store.Time) int64 {
	gone := 0
	for gone < len(w.at) && w.at[gone]+w.length <= t {
		gone++
	}
	if len(w.at)-gone >= maxTracked {
		gone = len(w.at) - maxTracked + 1
	}
	w.at = append(w.at[gone:], t)
	return int64(len(w.at))
}
