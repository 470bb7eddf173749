// Package meter is the arithmetic of limits. All kinds of limit share one ledger and differ only in when a charge
// comes back. Every function takes the time as an argument. Nothing here reads a clock, allocates, or knows which
// caller asks.
//
// Amounts and times are integers below 2^53; times are in microseconds. There is one rounding rule: values that free
// room round down, values that take room round up. Every implementation that follows it, in any language, agrees to
// the last digit.
package meter

import "math/bits"

// Kind says when a charge comes back.
type Kind uint8

// The kinds, in the order of the store contract.
const (
	Bucket      Kind = iota // drains from the bound on
	Rolling                 // comes back a window after the bound
	Fixed                   // comes back at the first reset after the bound
	Concurrency             // comes back on close
)

// Guard says what bounds the arrival of a request.
type Guard uint8

// The guards, in the order of the store contract.
const (
	Auto   Guard = iota // response headers, or the slack where headers are slow
	Strict              // response headers only
	Off                 // the grant itself
)

// Meter is the state of one limit for one scope. It is a flat record without pointers.
type Meter struct {
	Cap     int64 // total room; 0: not known, every request fits
	N, W    int64 // a bucket drains N every W microseconds
	Held    int64 // charged without a bound yet
	Level   int64 // bucket: not drained yet; rolling: sum of the slices; fixed: charged to this window
	Rem     int64 // bucket: drained fraction of a unit, in 1/W; fixed: charged to the next window too
	Last    int64 // bucket: drained until; fixed: earliest time of the reset
	Hi      int64 // fixed: latest time of the reset; 0: not known
	Outside int64 // part of Level that callers outside Sluice spent; approximate for a flow
	Since   int64 // bucket: when its rate last changed; fixed: the earliest bound that counts in Level; rolling: when outside use was last seen
}

// Used returns the room that charges take now.
func (m *Meter) Used(d *Def, r *Ring) int64 {
	switch {
	case d.Kind == Concurrency:
		return m.Held
	case m.isFixed(d):
		return m.Level // held charges are in Level: they were charged to the window when it opened
	default:
		return m.Level + m.Held
	}
}

// IsStock reports whether use is gone until a known reset.
func (m *Meter) IsStock(d *Def) bool { return m.isFixed(d) }

// isFixed reports whether the meter counts by known resets. A fixed window with an unknown reset counts as a rolling
// window, which is correct for every phase.
func (m *Meter) isFixed(d *Def) bool { return d.Kind == Fixed && m.Hi != 0 }

// slices reports whether the ring holds charges by their bound.
func (m *Meter) slices(d *Def) bool {
	return d.Kind == Rolling || d.Kind == Fixed && m.Hi == 0
}

// Room returns how much can still be taken. It is negative when a settlement overran the limit. Meters of unknown
// capacity have room for any amount.
func (m *Meter) Room(d *Def, r *Ring) int64 {
	if m.Cap == 0 {
		return MaxAmount
	}
	return m.Open(d, r) - m.Used(d, r)
}

// Open returns the capacity that requests can use: all but the withheld part.
func (m *Meter) Open(d *Def, r *Ring) int64 { return m.Capacity(r) - m.Withheld(d) }

// Withheld returns the part of the capacity that is kept for members that may be cut off.
func (m *Meter) Withheld(d *Def) int64 {
	if d.Part == 0 {
		return 0
	}
	return m.Cap * d.Part / Parts
}

// Capacity returns the total room, less the cut after unexplained refusals.
func (m *Meter) Capacity(r *Ring) int64 {
	if r == nil || r.Cut == 0 {
		return m.Cap
	}
	return m.less(r.Cut)
}

// less returns the capacity reduced by cut thousandths.
func (m *Meter) less(cut int64) int64 { return m.Cap - ceilDiv(m.Cap*cut, 1000) }

// Idle reports whether the meter can be dropped without losing anything.
func (m *Meter) Idle() bool { return m.Held == 0 && m.Level == 0 && m.Outside == 0 }

// Advance brings the meter to time t: drains, expires slices, opens windows.
func (m *Meter) Advance(d *Def, r *Ring, t int64) {
	switch {
	case d.Kind == Bucket:
		if r != nil && r.Sum > 0 {
			m.settlePending(d, r, t)
		}
		m.drain(d, t)
	case m.slices(d):
		m.expire(d, r, t)
	case d.Kind == Fixed && t >= m.Hi:
		passed := (t-m.Hi)/d.Window + 1
		m.Level = m.Held
		if passed == 1 {
			m.Level += m.Rem
		}
		m.Rem, m.Outside = 0, 0
		m.Since = m.Last + (passed-1)*d.Window
		m.Last += passed * d.Window
		m.Hi += passed * d.Window
	}
	if r != nil {
		r.regain(t)
	}
}

// drain lowers a bucket's level to its value at t. It carries the fraction of a unit over, so that rounding does not
// add up.
func (m *Meter) drain(d *Def, t int64) {
	dt := t - m.Last
	if dt <= 0 {
		return
	}
	m.Last = t
	if m.Level == 0 || m.N == 0 {
		return
	}
	n, w := m.N, m.W
	if d.Part != 0 {
		if n, w = m.rate(d); n == 0 {
			return
		}
	}
	// Compare before dividing: most of the time a bucket is empty.
	if hi, lo := bits.Mul64(uint64(dt), uint64(n)); hi != 0 || lo >= uint64(m.Level*w-m.Rem) {
		m.Level, m.Rem, m.Outside = 0, 0, 0
		return
	}
	acc := m.Rem + dt*n
	drained := acc / w
	m.Level -= drained
	m.Rem = acc - drained*w
	m.Outside = min(m.Outside, m.Level)
}

// settlePending lets charges whose arrival slack is over begin to drain, each
// from the end of its slice.
func (m *Meter) settlePending(d *Def, r *Ring, t int64) {
	for r.Sum > 0 && (r.Tail+1)*d.Slice <= t {
		if c := r.at(r.Tail); *c > 0 {
			m.drain(d, (r.Tail+1)*d.Slice)
			r.sent(d, (r.Tail+1)*d.Slice, *c)
			r.arrive((r.Tail+1)*d.Slice, *c)
			m.fill(d, r, *c)
			m.Held -= *c
			r.Sum -= *c
			*c = 0
		}
		r.Tail++
	}
}

// fill raises a bucket's level at the time it was last drained to.
func (m *Meter) fill(d *Def, r *Ring, amount int64) {
	r.stood(m.Last, m.certain())
	m.Level += amount
	m.clamp(d)
}

// clamp keeps a bucket's level within what the arithmetic can hold, which is at least twice the capacity. After a
// clamp the level no longer holds every charge in full, so charges from before it are not given back.
func (m *Meter) clamp(d *Def) {
	if m.Level <= 2*m.Cap {
		return
	}
	_, w := m.rate(d)
	if most := max(maxExact/max(w, 1), 2*m.Cap); m.Level > most {
		m.Level, m.Since = most, m.Last+1
	}
}

// certain returns the whole units that have not drained. Level takes room and is rounded up. A refund frees room, so
// it must be measured by certain.
func (m *Meter) certain() int64 {
	if m.Rem > 0 {
		return m.Level - 1
	}
	return m.Level
}

// expire drops the slices of a rolling window that ended at least a window ago.
func (m *Meter) expire(d *Def, r *Ring, t int64) {
	if t < r.Due {
		return
	}
	first := (t - d.Window) / d.Slice // the oldest slice that still counts
	for r.Tail < first && m.Level > 0 {
		if c := r.at(r.Tail); *c != 0 {
			// Record when it came back, not when that is noticed: results must not depend on how often a store
			// looks.
			r.came(d, (r.Tail+1)*d.Slice+d.Window, *c)
			m.Level -= *c
			*c = 0
		}
		r.Tail++
	}
	r.Tail = max(r.Tail, first)
	m.Outside = min(m.Outside, m.Level)
	if m.Outside > 0 && m.slices(d) && t-m.Since > d.Window {
		m.Outside = 0
	}
	r.Due = (r.Tail+1)*d.Slice + d.Window
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -ceilDiv(-a, b)
	}
	return a / b
}
