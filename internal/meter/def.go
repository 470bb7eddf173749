package meter

import (
	"fmt"
	"time"
)

// Bounds of the arithmetic.
const (
	MaxAmount = 1 << 40 // largest capacity and cost
	maxExact  = 1 << 52 // largest intermediate value: halves are still exact in a double
	slots     = 512     // slots of a ring
	perWindow = 256     // slices of a rolling window
)

// Def is a limit in the form that the arithmetic needs.
type Def struct {
	Kind   Kind
	Guard  Guard
	Late   bool  // the close of a ticket bounds a charge, not the response
	Window int64 // microseconds
	Slice  int64 // width of a ring's slots, in microseconds
	Slack  int64 // initial arrival slack
	Given  bool  // the configuration sets the slack
	Most   int64 // upper bound of the slack
	Part   int64 // part of every meter that is withheld now, in 1/Parts
}

// Compile checks a limit and derives its constants. A slack of 0 selects the default: 1.5% of the window, at least 1
// s and at most 30 s.
func Compile(kind Kind, guard Guard, window, slack time.Duration) (Def, error) {
	d := Def{Kind: kind, Guard: guard, Window: window.Microseconds()}
	if kind == Concurrency {
		return d, nil
	}
	if d.Window < 1000 || window > 100*24*time.Hour {
		return d, fmt.Errorf("window %v: must be between 1ms and 100 days", window)
	}
	if slack < 0 || slack > time.Hour {
		return d, fmt.Errorf("arrival slack %v: must be between 0 and 1h", slack)
	}
	if guard != Off {
		d.Slack = ceilDiv(slack.Nanoseconds(), 1000)
		d.Given = slack != 0
		if slack == 0 {
			d.Slack = min(max(d.Window*15/1000, 1_000_000), 30_000_000)
		}
		d.Most = max(d.Slack, d.Window/8)
	}
	if kind == Bucket {
		// A bucket's ring holds only granted charges without a bound.
		d.Slice = max(ceilDiv(d.Most, perWindow), 1)
	} else {
		d.Reslice()
	}
	return d, nil
}

// Reslice derives the width of a window's slices from its length and slack.
func (d *Def) Reslice() {
	if d.Guard != Off {
		d.Most = max(d.Slack, d.Window/8)
	}
	d.Slice = max(ceilDiv(d.Window, perWindow), ceilDiv(d.Window+d.Most, slots-4))
}

// NeedsRing reports whether meters of this limit keep slices.
func (d *Def) NeedsRing() bool {
	switch d.Kind {
	case Bucket:
		return d.Guard != Off
	case Rolling:
		return true
	case Fixed:
		return d.Guard != Off
	default:
		return false
	}
}

// Rate returns the drain rate of a bucket that gives back size every window, as the fraction n/w in lowest terms.
// Where capacity times w would exceed the exact range, Rate scales both down, n rounded down and w up. The result is
// then at most 0.1% slower, and never faster.
func Rate(size, window, capacity int64) (n, w int64, err error) {
	n, w = size, window
	for a, b := n, w; ; a, b = b, a%b {
		if b == 0 {
			n, w = n/a, w/a
			break
		}
	}
	for capacity > maxExact/w || n > maxExact/w {
		if n < 2048 {
			return 0, 0, fmt.Errorf("a capacity of %d at %d per %v is too large to count exactly", capacity, size,
				time.Duration(window)*time.Microsecond)
		}
		n, w = n/2, ceilDiv(w, 2)
	}
	return n, w, nil
}

// Start initializes a new meter at time t. size is per window for all kinds but concurrency; burst is for buckets. A
// size of 0 means that the size is not known yet.
func (m *Meter) Start(d *Def, r *Ring, t, size, burst, reset int64) error {
	if err := m.Resize(d, size, burst); err != nil {
		return err
	}
	switch {
	case d.Kind == Bucket:
		m.Last = t
		if r != nil {
			r.Tail = t / d.Slice
		}
	case d.Kind == Fixed && d.Guard == Off:
		// One of Sluice's own windows without a stated reset follows the calendar.
		m.Hi = nextReset(reset, d.Window, t)
		m.Last, m.Since = m.Hi, m.Hi-d.Window
	case d.Kind == Fixed && reset != 0 && d.phased(2*resetSlop):
		next := nextReset(reset, d.Window, t)
		m.Last, m.Hi = next-resetSlop, next+resetSlop
		m.Since = m.Last - d.Window
	default:
		if r != nil {
			r.Tail = (t - d.Window) / d.Slice
		}
	}
	return nil
}

// resetSlop is how far a stated reset may be off. Providers round it to seconds, by their own clock.
const resetSlop = 1_200_000

// phased reports whether resets known to within width are precise enough to count a fixed window by. A placed charge
// must not reach past the next window. Where it could, or where the phase is almost unknown, the meter counts a
// rolling window instead.
func (d *Def) phased(width int64) bool { return 2*max(width, d.Slack) <= d.Window }

// nextReset returns the first time after t that is a whole number of windows from reset.
func nextReset(reset, window, t int64) int64 {
	k := (t - reset) / window
	next := reset + k*window
	for next <= t {
		next += window
	}
	return next
}

// Resize changes the capacity of a meter that has been advanced to now. Every charge stays. A bucket of unknown rate
// has not drained here, so its level may be too high: the provider's bucket is at most full.
func (m *Meter) Resize(d *Def, size, burst int64) error {
	if size < 0 || size > MaxAmount || burst < 0 || burst > MaxAmount {
		return fmt.Errorf("size %d, burst %d: must be between 0 and %d", size, burst, int64(MaxAmount))
	}
	if d.Kind != Bucket || size == 0 {
		m.Cap = size
		return nil
	}
	if burst == 0 {
		burst = size
	}
	n, w, err := Rate(size, d.Window, burst)
	if err != nil {
		return err
	}
	if m.W == 0 {
		m.Level = min(m.Level, burst)
	}
	if m.W != w || d.Part != 0 && (m.N != n || m.Cap != burst) {
		m.Rem = 0 // the fraction of a unit is in the old scale; dropping it is safe
	}
	if m.N != n || m.W != w {
		m.Since = m.Last
	}
	m.Cap, m.N, m.W = burst, n, w
	m.clamp(d)
	return nil
}
