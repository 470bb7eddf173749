package meter

// Parts is the unit of what is withheld: few enough for a part of the largest capacity to be exact.
const Parts = 4096

// rate returns how fast a bucket drains: n every w microseconds.
//
// A share of a bucket is a bucket with a part of its capacity and the same part of its rate. Whoever
// may be cut off drains and fills such a bucket of its own, which nobody here sees. What is here is
// therefore the rest: the capacity less that part (see Withheld), draining slower by that part. Two
// buckets whose capacities and rates add up to the provider's never show it more than one would: its
// level is at most the sum of theirs.
//
// The slower rate is rounded down.
func (m *Meter) rate(d *Def) (n, w int64) {
	if d.Part == 0 || m.W == 0 {
		return m.N, m.W
	}
	n, w = m.N*(Parts-d.Part), m.W
	if w > maxExact/Parts {
		n, w = n/8, ceilDiv(w, 8) // no window is longer than that allows
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

// Rerate is called when the part that is withheld has changed. The meter was brought to that moment
// with the part that held before.
func (m *Meter) Rerate(d *Def) {
	if d.Kind == Bucket {
		m.Rem = 0 // part of a unit in the old scale
		m.clamp(d)
	}
}

// Lose fills a meter up, because what was charged to it until the moment lost has been forgotten: it
// may have been as much as there is, and may still be on its way for the longest slack. It comes back
// as any charge does, and is nobody's. The meter has been advanced to t.
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
				return // a reset has been since
			}
			// The meter is new, and the reset before may still be to come: what was forgotten counts until that is over for certain. What
			// was charged since counts after it too.
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
