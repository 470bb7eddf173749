package meter

// ObserveReset records that a fixed window resets between lo and hi. It narrows the known reset if the two agree,
// and replaces it otherwise. It reports whether the rest of the statement is about the current window.
func (m *Meter) ObserveReset(d *Def, r *Ring, t, lo, hi int64) (current bool) {
	if d.Kind != Fixed || lo < 0 || hi < lo || !d.phased(hi-lo) || hi-t > 2*d.Window {
		return false
	}
	if m.Hi != 0 {
		// Responses can be late: lo and hi may be the reset before ours or after it. If they are of a later one,
		// ours had passed when the response was made.
		k := floorDiv(lo+hi-m.Last-m.Hi+d.Window, 2*d.Window)
		from, to := lo-k*d.Window, hi-k*d.Window
		if k > 0 {
			to = min(to, t)
		}
		if k <= 1 && from <= m.Hi && to >= m.Last {
			m.Last, m.Hi = max(from, m.Last), min(to, m.Hi)
			m.Advance(d, r, t)
			return k >= 0
		}
	}
	if hi <= t { // the stated reset has passed since
		passed := (t-hi)/d.Window + 1
		lo, hi = lo+passed*d.Window, hi+passed*d.Window
	}
	if m.Hi == 0 {
		m.openFixed(d, r, lo, hi)
	} else {
		m.moveReset(d, r, t, lo, hi)
	}
	return true
}

// moveReset replaces the reset. Amounts charged to both sides of the old reset stay on both. Amounts that may have
// arrived after the new one are charged to both sides too.
func (m *Meter) moveReset(d *Def, r *Ring, t, lo, hi int64) {
	if lo < m.Last && lo <= t+r.slack(d) {
		m.Rem = max(m.Rem, m.Level-m.Held)
	}
	m.Last, m.Hi = lo, hi
}

// openFixed turns a window counted as rolling into a fixed one. All current charges go to the window. Charges that
// may arrive after its reset also go to the next.
func (m *Meter) openFixed(d *Def, r *Ring, lo, hi int64) {
	var later int64
	for k := max(r.Tail, lo/d.Slice); k < r.Tail+slots; k++ {
		later += *r.at(k)
	}
	tail := r.Tail
	for k := tail; k < tail+slots; k++ {
		*r.at(k) = 0
	}
	m.Level += m.Held
	m.Rem = later
	m.Since = tail * d.Slice
	m.Last, m.Hi = lo, hi
}

// ObserveUsed records that the provider counted used at some time between made and t; for a fixed window, in the
// current one. It charges the part that our ledger does not explain. If costs are exact, that part was spent outside
// Sluice; rough says that they are not.
func (m *Meter) ObserveUsed(d *Def, r *Ring, t, made, used int64, rough bool) {
	ours, known := m.MostUsed(d, r, t, made)
	if !known || used <= ours || used > MaxAmount {
		return
	}
	more := used - ours
	switch {
	case m.isFixed(d):
		m.Level += more
	case m.slices(d):
		m.add(d, r, t, more)
		m.Since = t
	default:
		m.add(d, r, t, more)
	}
	if !rough {
		m.Outside += more
	}
}

// Believe accepts the provider's count of the current window. It gives back what our ledger has beyond used, except
// for held charges. It returns false for a window whose reset is not known.
func (m *Meter) Believe(d *Def, used int64) bool {
	if !m.isFixed(d) || used < 0 || used > MaxAmount {
		return false
	}
	m.Level = used + m.Held
	m.Rem = 0 // requests in flight carry over to the next window by themselves
	m.Outside = min(m.Outside, used)
	return true
}

// MostUsed returns the most that our ledger can have held at any time since made. That includes charges that came
// back since: a response made before still counted them. known is false if made is too long ago.
func (m *Meter) MostUsed(d *Def, r *Ring, t, made int64) (used int64, known bool) {
	switch {
	case m.isFixed(d):
		return m.Level, true
	case m.slices(d):
		gone, ok := r.goneSince(d, made)
		return m.Level + m.Held + gone, ok
	case d.Kind == Bucket && m.N > 0 && t-made < maxExact/m.N:
		out, ok := r.recalled(made)
		return m.Level + m.Held + out + ceilDiv((t-made)*m.N, m.W), ok
	default:
		return 0, false
	}
}
