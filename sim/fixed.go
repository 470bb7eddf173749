package sim

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Fixed admits n between two resets, which come at fixed times, one window apart.
type Fixed struct {
	n      int64
	window store.Time
	phase  store.Time // of the resets, in [0, window)
	period store.Time // number of the window that used belongs to
	used   int64
}

// NewFixed returns a fixed window of n that resets at firstReset, and every window before and after it. It panics if n
// or window is not positive.
func NewFixed(n int64, window time.Duration, firstReset store.Time) *Fixed {
	if n < 1 || window < time.Microsecond {
		panic(fmt.Sprintf("sim: fixed window of %d per %v", n, window))
	}
	w := store.Time(window.Microseconds())
	return &Fixed{n: n, window: w, phase: ((firstReset % w) + w) % w}
}

// at returns the number of the window that t falls in, and when the next one begins. A request at the time of a reset
// belongs to the new window.
func (f *Fixed) at(t store.Time) (period, next store.Time) {
	period = (t - f.phase) / f.window
	if t < f.phase {
		period--
	}
	return period, (period+1)*f.window + f.phase
}

func (f *Fixed) usedAt(t store.Time) (used int64, next store.Time) {
	period, next := f.at(t)
	if period == f.period {
		used = f.used
	}
	return used, next
}

// Earliest implements [Rule].
func (f *Fixed) Earliest(t store.Time, cost int64) store.Time {
	if cost > f.n {
		return Never
	}
	used, next := f.usedAt(t)
	if used+max(cost, 0) <= f.n {
		return t
	}
	return next
}

// Take implements [Rule].
func (f *Fixed) Take(t store.Time, cost int64) {
	period, _ := f.at(t)
	if period != f.period {
		f.period, f.used = period, 0
	}
	f.used = max(f.used+cost, 0)
}

// Done implements [Rule]. The end of a request changes nothing.
func (*Fixed) Done(store.Time, int64) {}

// State implements [Rule].
func (f *Fixed) State(t store.Time) State {
	used, next := f.usedAt(t)
	return State{Size: f.n, Remaining: max(f.n-used, 0), Reset: next}
}
