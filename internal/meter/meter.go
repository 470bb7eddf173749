// Package meter is the arithmetic of limits: one ledger in which the kinds differ
// only in when a charge comes back. Every function takes the time; nothing here
// reads a clock, allocates, or knows who is asking.
//
// Amounts and times are integers (microseconds) below 2^53, and there is one
// rounding rule: what frees room rounds down, what takes room rounds up. Any
// implementation that keeps to it, in whatever language, agrees to the last digit.
package meter

import "math/bits"

// Kind says when a charge comes back.
type Kind uint8

// The kinds, in the order of the store contract.
const (
	Bucket      Kind = iota // drains from the bound on
	Rolling                 // a window after the bound
	Fixed                   // at the first reset after the bound
	Concurrency             // on close
)

// Guard says what bounds the arrival of a request.
type Guard uint8

// The guards, in the order of the store contract.
const (
	Auto   Guard = iota // headers; where they are slow, the slack
	Strict              // headers only
	Off                 // the grant itself
)

// Meter is the state of one limit for one scope. A flat record: no pointers.
type Meter struct {
	Cap     int64 // room in all; 0: not known, nothing is refused
	N, W    int64 // a bucket drains N every W microseconds
	Held    int64 // charged and not bounded yet
	Level   int64 // bucket: what has not drained; rolling: sum of the slices; fixed: charged to this window
	Rem     int64 // bucket: part of a unit drained, in 1/W; fixed: charged to the next window as well
	Last    int64 // bucket: drained until; fixed: earliest moment of the reset
	Hi      int64 // fixed: latest moment of the reset; 0: not known
	Outside int64 // part of Level that others spent; on a flow, about
	Since   int64 // bucket: when its rate last changed; fixed: the earliest bound that counts in Level; rolling: when others' use was last seen
}

// Used returns the room that is taken.
func (m *Meter) Used(d *Def, r *Ring) int64 {
	switch {
	case d.Kind == Concurrency:
		return m.Held
	case m.isFixed(d):
		return m.Level // what is held was charged to the window when it opened
	default:
		return m.Level + m.Held
	}
}

// IsStock reports whether what is spent is gone until a reset that is known.
func (m *Meter) IsStock(d *Def) bool { return m.isFixed(d) }

// isFixed reports whether the meter counts by known resets. A fixed window whose
// reset is not known is kept as a rolling one, which is right for every phase.
func (m *Meter) isFixed(d *Def) bool { return d.Kind == Fixed && m.Hi != 0 }

// slices reports whether charges live in the ring by their bound.
func (m *Meter) slices(d *Def) bool {
	return d.Kind == Rolling || d.Kind == Fixed && m.Hi == 0
}

// Room returns how much may still be taken; negative when a settlement
// overran the limit. Meters that know no capacity have room for anything.
func (m *Meter) Room(d *Def, r *Ring) int64 {
	if m.Cap == 0 {
		return MaxAmount
	}
	return m.Open(d, r) - m.Used(d, r)
}

// Open returns what is left of the capacity to those who ask: all but what is withheld.
func (m *Meter) Open(d *Def, r *Ring) int64 { return m.Capacity(r) - m.Withheld(d) }

// Withheld returns the part of the capacity that is kept for members that may be cut off.
func (m *Meter) Withheld(d *Def) int64 { return m.Cap * d.Part / Parts }

// Capacity returns the room in all, less what unexplained refusals cut off.
func (m *Meter) Capacity(r *Ring) int64 {
	if r == nil || r.Cut == 0 {
		return m.Cap
	}
	return m.less(r.Cut)
}

// less returns the capacity with cut thousandths of it gone.
func (m *Meter) less(cut int64) int64 { return m.Cap - ceilDiv(m.Cap*cut, 1000) }

// Idle reports that dropping the meter would lose nothing.
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

// drain lowers a bucket's level to what it is at t. The fraction of a unit is
// carried over, so that no rounding adds up.
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
	// Compared before anything is divided: most of the time a bucket is empty.
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
			m.fill(d, r, *c)
			m.Held -= *c
			r.Sum -= *c
			*c = 0
		}
		r.Tail++
	}
}

// fill raises a bucket's level at the time that it was drained to.
func (m *Meter) fill(d *Def, r *Ring, amount int64) {
	r.stood(m.Last, m.certain())
	m.Level += amount
	m.clamp(d)
}

// clamp keeps a bucket's level within what the arithmetic can hold. Up to twice the
// capacity that is certain. After a clamp the level no longer holds every charge in
// full, so nothing from before it is given back.
func (m *Meter) clamp(d *Def) {
	if m.Level <= 2*m.Cap {
		return
	}
	_, w := m.rate(d)
	if most := max(maxExact/max(w, 1), 2*m.Cap); m.Level > most {
		m.Level, m.Since = most, m.Last+1
	}
}

// certain returns the whole units that have not drained. Level is rounded up, because
// it takes room. What is given back frees room, so it must be measured by this.
func (m *Meter) certain() int64 {
	if m.Rem > 0 {
		return m.Level - 1
	}
	return m.Level
}

// expire drops the slices of a rolling window whose last moment is a window old.
func (m *Meter) expire(d *Def, r *Ring, t int64) {
	if t < r.Due {
		return
	}
	first := (t - d.Window) / d.Slice // the oldest slice that still counts
	for r.Tail < first && m.Level > 0 {
		if c := r.at(r.Tail); *c != 0 {
			// When it came back, not when that is noticed: how often a store looks must make no difference.
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
