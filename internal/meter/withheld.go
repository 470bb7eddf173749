package meter

// Parts is the denominator of withheld parts. It is small enough to keep a part of the largest capacity exact.
const Parts = 4096

// rate returns how fast a bucket drains: n every w microseconds.
//
// A share of a bucket is a bucket with a part of its capacity and the same part of its rate. A member that may be
// cut off fills and drains such a bucket of its own, which this meter does not see. So this meter is the rest: the
// capacity less that part (see Withheld), draining slower by that part. Two buckets whose capacities and rates add
// up to the provider's never exceed it: its level is at most the sum of theirs.
//
// The slower rate is rounded down.
func (m *Meter) rate(d *Def) (n, w int64) {
	if d.Part == 0 || m.W == 0 {
		return m.N, m.W
	}
	n, w = m.N*(Parts-d.Part), m.W
	if w > maxExact/Parts {
		n, w = n/8, ceilDiv(w, 8) // still exact: no window is longer than this allows
	}
	w *= Parts
	for m.Cap > maxExact/w || n > maxExact/w {
		if n == 0 {
			break
		}
		n, w = n/2, ceilDiv(w, 2)
	}
	return n, w
}

// Rerate adjusts the meter after the withheld part has changed. The caller has advanced the meter to now with the
// old part.
func (m *Meter) Rerate(d *Def) {
	if d.Kind == Bucket {
		m.Rem = 0 // the fraction of a unit is in the old scale
		m.clamp(d)
	}
}

// Lose fills the meter up because the charges made until lost were forgotten. They may have been the whole capacity,
// and may still arrive within the longest slack. The fill comes back like any charge and belongs to no agent. The
// meter has been advanced to t.
func (m *Meter) Lose(d *Def, r *Ring, t, lost int64) {
	mark := lost + d.Most
	more := m.Cap - m.Used(d, r)
	if m.Cap == 0 || more <= 0 {
		return
	}
	switch {
	case d.Kind == Concurrency:
	case m.isFixed(d):
		if mark < m.Since {
			if mark < m.Since-d.Window || m.Hi-d.Window <= t {
				return // a reset has passed since
			}
			// The meter is new, and the reset before its window may still be ahead. The forgotten charges count
			// until that reset is certainly over. Charges made since count after it too.
			m.Last, m.Hi, m.Since, m.Rem = m.Last-d.Window, m.Hi-d.Window, m.Since-d.Window, m.Level
		}
		m.Level += more
		if mark >= m.Last {
			m.Rem += more
		}
	case m.slices(d):
		if r.live(d, mark) {
			m.add(d, r, mark, more)
		}
	case mark > t:
		c := Charge{Amount: more}
		m.chargeAt(d, r, &c, mark)
	default:
		n, w := m.rate(d)
		if n > 0 && t-mark > maxExact/n {
			return
		}
		if more -= (t - mark) * n / max(w, 1); more > 0 {
			m.add(d, r, t, more)
		}
	}
}
