package meter

import (
	"fmt"
	"time"
)

// Bounds of the arithmetic.
const (
	MaxAmount = 1 << 40 // largest capacity and cost
	maxExact  = 1 << 52 // largest intermediate: halves are still exact in a double
	slots     = 512     // of a ring
	perWindow = 256     // slices of a rolling window
)

// Def is a limit as the arithmetic needs it.
type Def struct {
	Kind   Kind
	Guard  Guard
	Late   bool  // bound on close instead of on answer
	Window int64 // microseconds
	Slice  int64 // width of a ring's slots
	Slack  int64 // arrival slack to begin with
	Given  bool  // somebody chose the slack
	Most   int64 // the slack never grows past this
	Part   int64 // in 1/Parts: what is withheld of every meter at the moment
}

// Compile checks a limit and derives its constants. A slack of 0 is 1.5% of the
// window, at least a second and at most thirty.
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
		// A bucket's ring holds only what has been granted and not bounded.
		d.Slice = max(ceilDiv(d.Most, perWindow), 1)
	} else {
		d.Reslice()
	}
	return d, nil
}

// Reslice works out the slices of a window, from its length and slack.
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

// Rate returns the drain of a bucket that gives back size every window, as the
// fraction n/w in lowest terms. Where capacity times w would pass what is exact,
// both are scaled down, n rounded down and w up: at most 0.1% slower, never
// faster.
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

// Start sets a new meter up at time t: size per window for all kinds but
// concurrency, burst for buckets. A size of 0 is not known yet.
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
		// A window of our own with no stated reset follows the calendar.
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

// resetSlop is how far a stated reset may be off: it was rounded to seconds, by a
// clock that is not ours.
const resetSlop = 1_200_000

// phased reports whether a fixed window can be counted by resets that are known to
// within width. A placed charge must not reach past the window after this one; where
// it could, and where the phase is all but unknown, the window is kept as a rolling
// one.
func (d *Def) phased(width int64) bool { return 2*max(width, d.Slack) <= d.Window }

// nextReset returns the first moment after t that lies whole windows from reset.
func nextReset(reset, window, t int64) int64 {
	k := (t - reset) / window
	next := reset + k*window
	for next <= t {
		next += window
	}
	return next
}

// Resize changes the capacity of a meter that is up to date; every charge stays. A
// bucket whose rate was not known has not drained, but its provider's is full at the
// most.
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
		m.Rem = 0 // part of a unit in the old scale: dropped, on the safe side
	}
	if m.N != n || m.W != w {
		m.Since = m.Last
	}
	m.Cap, m.N, m.W = burst, n, w
	m.clamp(d)
	return nil
}
