package meter

// Never is a time later than any.
const Never = 1 << 53

// ReadyAt returns when need more will fit, if nothing changes but time: t itself when
// it fits now, Never when only an answer, a close or a settlement can make room.
// The meter has been advanced to t.
func (m *Meter) ReadyAt(d *Def, r *Ring, t, need int64) int64 {
	if m.Cap == 0 {
		return t
	}
	at := m.readyWithin(d, r, t, need, m.Open(d, r))
	if r == nil {
		return at
	}
	// What was cut off comes back step by step, and may be enough before that.
	for cut, step := r.Cut-regained, r.CutAt+hour; cut > -regained && step < at; cut, step = cut-regained, step+hour {
		at = min(at, max(step, m.readyWithin(d, r, t, need, m.less(max(cut, 0))-m.Withheld(d))))
	}
	return at
}

// readyWithin is ReadyAt for a given capacity.
func (m *Meter) readyWithin(d *Def, r *Ring, t, need, capacity int64) int64 {
	deficit := need + m.Used(d, r) - capacity
	if deficit <= 0 {
		return t
	}
	switch {
	case d.Kind == Concurrency:
		return Never
	case d.Kind == Bucket:
		return m.bucketReady(d, r, t, deficit)
	case m.slices(d):
		for k := r.Tail; k < r.Tail+slots; k++ {
			if deficit -= *r.at(k); deficit <= 0 {
				return (k+1)*d.Slice + d.Window
			}
		}
		return Never
	case m.Held+m.Rem+need <= capacity:
		return m.Hi
	case m.Held+need <= capacity:
		return m.Hi + d.Window
	default:
		return Never
	}
}

// bucketReady follows the level through the slices that have yet to begin draining.
func (m *Meter) bucketReady(d *Def, r *Ring, t, deficit int64) int64 {
	probe := Meter{Cap: m.Cap, N: m.N, W: m.W, Level: m.Level, Rem: m.Rem, Last: t}
	if r != nil {
		for k, left := r.Tail, r.Sum; left > 0 && deficit > probe.Level; k++ {
			c := *r.at(k)
			if c == 0 {
				continue
			}
			left -= c
			before := probe.Level
			probe.drain(d, (k+1)*d.Slice)
			deficit -= before - probe.Level
			probe.fill(d, nil, c)
		}
	}
	n, w := m.rate(d)
	if deficit > probe.Level || n == 0 {
		return Never
	}
	return probe.Last + ceilDiv(deficit*w-probe.Rem, n)
}

// Estimate is ReadyAt for amounts that may take many windows: the time by which ahead
// and then need will have gone. It is a guess where only answers make room, and
// rather early than late.
func (m *Meter) Estimate(d *Def, r *Ring, t, ahead, need int64) int64 {
	if m.Cap == 0 || d.Kind == Concurrency {
		return t
	}
	if d.Kind == Bucket {
		deficit := ahead + need - m.Room(d, r)
		n, w := m.rate(d)
		if deficit <= 0 || n == 0 {
			return t
		}
		return min(t+(min(deficit, Never/w)*w-m.Rem)/n, Never)
	}
	capacity := max(m.Open(d, r), 1)
	if m.isFixed(d) {
		left := ahead + need - max(m.Room(d, r), 0) // for the windows to come
		if left <= 0 {
			return t
		}
		return min(m.Hi+min((left-1)/capacity, Never/d.Window)*d.Window, Never)
	}
	rounds := (ahead + need - 1) / capacity
	at := m.ReadyAt(d, r, t, ahead+need-rounds*capacity)
	if at == Never {
		at = t
	}
	return min(at+min(rounds, Never/d.Window)*d.Window, Never)
}
