package meter

// Never is later than any other time.
const Never = 1 << 53

// ReadyAt returns when need more will fit if only time passes. It returns t if need fits now, and Never if only a
// response, a close or a settlement can make room. The meter has been advanced to t.
func (m *Meter) ReadyAt(d *Def, r *Ring, t, need int64) int64 {
	if m.Cap == 0 {
		return t
	}
	at := m.readyWithin(d, r, t, need, m.Open(d, r))
	if r == nil {
		return at
	}
	// A cut comes back step by step; need may fit after some of the steps.
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

// bucketReady follows the level through the slices that have not begun to drain.
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

// Estimate is ReadyAt for amounts that may take many windows: it returns when first ahead and then need will have
// been granted. It is a guess where only responses make room, and errs towards early. What a rolling window grants from now
// on comes back within window.
func (m *Meter) Estimate(d *Def, r *Ring, t, ahead, need, window int64) int64 {
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
		left := ahead + need - max(m.Room(d, r), 0) // for the coming windows
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
	return min(at+min(rounds, Never/window)*window, Never)
}
