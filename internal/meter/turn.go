package meter

// Turn makes the meter a rolling window. It was counted by from, and is counted by to from t on. seen has arrived
// and may still count. unseen may have arrived after the provider made its response.
//
// A rolling window of N never lets the provider see more than N in any window. So it is safe for a provider that
// counts a rolling window of N, a fixed window of N with any phase, or a bucket that holds N and gives N back in a
// window. When each part arrived is unknown: seen counts as arriving now, unseen as late as the slack allows. Held
// charges stay held.
func (m *Meter) Turn(from, to *Def, r *Ring, t, seen, unseen int64) {
	if from.Kind == Bucket {
		unseen += r.Sum // the charges placed ahead
		m.Held -= r.Sum
	}
	for k := r.Tail; k < r.Tail+slots; k++ {
		*r.at(k) = 0
	}
	for k := range r.marks {
		r.marks[k].at, r.marks[k].n = 0, 0
	}
	r.Sum, r.Due, r.Gone, r.last = 0, 0, 0, 0
	r.Tail = (t - to.Window) / to.Slice
	m.N, m.W, m.Rem, m.Last, m.Hi, m.Outside, m.Since = 0, 0, 0, 0, 0, 0, t
	m.Level = seen + unseen
	*r.at(t / to.Slice) += seen
	*r.at((t + r.slack(to)) / to.Slice) += unseen
}

// Forget records that the provider counted used just before t, and will have forgotten it by gone. So that much of
// the arrived charges comes back by gone, instead of a window after its bound. The youngest charges, which used does
// not explain, stay. It reports whether any come back earlier.
//
// This is correct for each kind if the provider states as its reset the time when everything is back. A fixed window
// forgets all of it at the reset, a rolling one a window after its youngest request. A bucket is empty by then
// without later requests, and otherwise holds at most what these add.
func (m *Meter) Forget(d *Def, r *Ring, t, gone, used int64) bool {
	back := (gone - d.Window) / d.Slice
	if !m.slices(d) || gone < t || back < r.Tail {
		return false
	}
	now := t / d.Slice
	stay := m.Level - used // less the charges placed ahead, below
	for k := now + 1; k < r.Tail+slots; k++ {
		stay -= *r.at(k)
	}
	moved := int64(0)
	for k := now; k > back; k-- {
		c := r.at(k)
		part := *c - min(max(stay, 0), *c)
		stay -= *c
		*c -= part
		moved += part
	}
	*r.at(back) += moved
	return moved > 0
}

// DrainTime returns how long a bucket that gives back size every window takes to drain amount, in microseconds.
// amount is at most size. It returns false if the rate cannot be counted exactly.
func DrainTime(size, window, amount int64) (int64, bool) {
	n, w, err := Rate(size, window, size)
	if err != nil {
		return 0, false
	}
	return ceilDiv(amount*w, n), true
}
