package mock

import "github.com/sluicehq/sluice/store"

// maxTracked bounds how many requests of one window are tracked.
const maxTracked = 1 << 20

// window counts the requests that were accepted in the span that ends with the latest one.
type window struct {
	length store.Time
	at     []store.Time // times of acceptance within the span, oldest first
}

// add records a request accepted at t. It returns the number of requests in the span that ends at t, including this
// one.
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
