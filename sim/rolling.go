package sim

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Rolling admits at most n in any span (t-window, t]. The charge of a request ends exactly one window after its
// arrival.
type Rolling struct {
	n      int64
	window store.Time
	taken  []charge // oldest first
	used   int64    // sum over taken
}

type charge struct {
	at   store.Time
	cost int64
}

// NewRolling returns a rolling window of n. It panics if n or window is not positive.
func NewRolling(n int64, window time.Duration) *Rolling {
	if n < 1 || window < time.Microsecond {
		panic(fmt.Sprintf("sim: rolling window of %d per %v", n, window))
	}
	return &Rolling{n: n, window: store.Time(window.Microseconds())}
}

// Earliest implements [Rule].
func (r *Rolling) Earliest(t store.Time, cost int64) store.Time {
	if cost > r.n {
		return Never
	}
	room := r.n - max(cost, 0)
	used := r.used
	for _, c := range r.taken {
		if back := c.at + r.window; back > t {
			if used <= room {
				return t
			}
			t = back
		}
		used -= c.cost
	}
	return t
}

// Take implements [Rule].
func (r *Rolling) Take(t store.Time, cost int64) {
	gone := 0
	for gone < len(r.taken) && r.taken[gone].at+r.window <= t {
		r.used -= r.taken[gone].cost
		gone++
	}
	r.taken = r.taken[gone:]
	if cost < 0 {
		r.giveBack(-cost)
		return
	}
	r.taken = append(r.taken, charge{t, cost})
	r.used += cost
}

// giveBack reduces the youngest charges. A separate negative charge would outlive the one it corrects, and admit too
// much then.
func (r *Rolling) giveBack(amount int64) {
	for i := len(r.taken) - 1; i >= 0 && amount > 0; i-- {
		part := min(amount, r.taken[i].cost)
		r.taken[i].cost -= part
		r.used -= part
		amount -= part
	}
}

// Done implements [Rule]. The end of a request changes nothing.
func (*Rolling) Done(store.Time, int64) {}

// State implements [Rule]. Reset is when the youngest charge ends.
func (r *Rolling) State(t store.Time) State {
	used := r.used
	for _, c := range r.taken {
		if c.at+r.window > t {
			break
		}
		used -= c.cost
	}
	s := State{Size: r.n, Remaining: min(max(r.n-used, 0), r.n), Reset: t}
	if last := len(r.taken) - 1; last >= 0 {
		s.Reset = max(t, r.taken[last].at+r.window)
	}
	return s
}
