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
	r.arrive(t+r.slack(to), unseen)
	*r.at(t / to.Slice) += seen
	*r.at((t + r.slack(to)) / to.Slice) += unseen
}

// Forget records that a response stated, just before t, when everything that the provider counts will have come back: by
// gone. Its own request, of which own arrived at t, comes back by then, instead of a window after its bound. So does all
// that had arrived before its request was granted. At most unseen has arrived since; the provider may not have counted
// it, so the youngest charges stay. unseen is negative if that is not known: then only own comes back. It returns whether
// any come back earlier.
//
// This is correct for each kind if the provider states as its reset the time when everything is back. A fixed window
// forgets all of it at the reset, a rolling one a window after its youngest request. A bucket is empty by then
// without later requests, and otherwise holds at most what these add.
func (m *Meter) Forget(d *Def, r *Ring, t, gone, own, unseen int64) bool {
	back, now := (gone-d.Window)/d.Slice, t/d.Slice
	if !m.slices(d) || gone < t || back < r.Tail || back >= now {
		return false
	}
	moved := min(own, *r.at(now))
	*r.at(now) -= moved
	for k := r.Tail + slots - 1; k > back && unseen >= 0; k-- {
		c := r.at(k)
		part := *c - min(unseen, *c)
		unseen -= *c - part
		if k <= now {
			*c -= part
			moved += part
		}
	}
	*r.at(back) += moved
	if moved > 0 {
		r.Settled = t
	}
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
