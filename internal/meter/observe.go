package meter

// ObserveReset learns that a fixed window resets between lo and hi. What is already known
// is narrowed where the two agree and replaced where they do not. It reports
// whether what else was stated is about the window that is counted now.
func (m *Meter) ObserveReset(d *Def, r *Ring, t, lo, hi int64) (current bool) {
	if d.Kind != Fixed || lo < 0 || hi < lo || !d.phased(hi-lo) || hi-t > 2*d.Window {
		return false
	}
	if m.Hi != 0 {
		// Answers are late: it may be the reset before ours or after it. An answer that
		// speaks of a later one was made when ours had been.
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
	if hi <= t { // stated before a reset that has been since
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

// moveReset replaces the reset. What was charged to both sides of the earlier one
// stays so, and what may have arrived after the new one is charged to both as well.
func (m *Meter) moveReset(d *Def, r *Ring, t, lo, hi int64) {
	if lo < m.Last && lo <= t+r.slack(d) {
		m.Rem = max(m.Rem, m.Level-m.Held)
	}
	m.Last, m.Hi = lo, hi
}

// openFixed turns a window that was kept as a rolling one into a fixed one: all that
// stands is charged to the window, and what may arrive after its reset to the next.
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

// ObserveUsed learns that the provider counted used at some moment between made and t: in
// the current window, if it is a fixed one. What our ledger does not explain is charged.
// If costs are exact it is somebody else's; rough tells that they are not.
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

// Believe learns that the provider has counted used in the current window, and that its word counts: what our ledger has
// beyond that is given back, but for what is held. It reports false for a window whose reset is not known.
func (m *Meter) Believe(d *Def, used int64) bool {
	if !m.isFixed(d) || used < 0 || used > MaxAmount {
		return false
	}
	m.Level = used + m.Held
	m.Rem = 0 // what is under way goes over to the next window by itself
	m.Outside = min(m.Outside, used)
	return true
}

// MostUsed returns the most that our ledger can have held at any moment since made: what
// came back in the meantime was still counted by an answer that was made before. known is
// false if that is too long ago to tell.
func (m *Meter) MostUsed(d *Def, r *Ring, t, made int64) (used int64, known bool) {
	switch {
	case m.isFixed(d):
		return m.Level, true
	case m.slices(d):
		gone, ok := r.goneSince(d, made)
		return m.Level + m.Held + gone, ok
	case d.Kind == Bucket && m.N > 0 && t-made < maxExact/m.N:
		return m.Level + m.Held + ceilDiv((t-made)*m.N, m.W), true
	default:
		return 0, false
	}
}
