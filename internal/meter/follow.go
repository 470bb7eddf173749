package meter

// A response that states how much a provider has counted bounds our ledger from above: whatever the ledger has beyond that
// has come back already, unless the provider had not seen it when it made the response. This holds for each kind of
// limit, and needs no window.

// arrived says how much had arrived at a meter by a time, and how much statements had taken out.
type arrived struct{ at, n, out int64 }

// notes is the number of notes about arrivals in a ring.
const notes = 24

// Follow makes the ring note what arrives, so that Unseen can tell. apart is the least time between two notes. All notes
// together reach back notes times as far.
func (r *Ring) Follow(t, apart int64) {
	if r.apart == 0 {
		r.inAt = t
	}
	r.apart = max(apart, 1)
}

// arrive notes that amount arrives by t.
func (r *Ring) arrive(t, amount int64) {
	if r == nil || r.apart == 0 || amount <= 0 {
		return
	}
	if t > r.inAt {
		if r.inAt-r.notes[r.note%notes].at >= r.apart || t-r.inAt >= r.apart {
			r.note++
			r.notes[r.note%notes] = arrived{r.inAt, r.in, r.inOut}
		}
		r.inAt = t
	}
	r.inOut = r.out
	if r.in += amount; r.in > maxExact/2 { // start again; what was noted before is not known any more
		r.in, r.apart, r.note = 0, 0, 0
	}
}

// Unseen returns the most that has arrived since made. It returns false if made is too long ago.
func (r *Ring) Unseen(made int64) (int64, bool) {
	if r == nil || r.apart == 0 {
		return 0, false
	}
	if r.inAt <= made {
		return 0, true
	}
	for k := r.note; k > max(r.note-notes, 0); k-- {
		if n := &r.notes[k%notes]; n.at <= made {
			return r.in - n.n, true
		}
	}
	return 0, false
}

// recalled returns the most that statements have taken out since made. It returns false if made is too long ago.
func (r *Ring) recalled(made int64) (int64, bool) {
	if r == nil || r.out == 0 || r.outAt < made {
		return 0, true
	}
	if r.inAt <= made {
		return r.out - r.inOut, true
	}
	for k := r.note; k > max(r.note-notes, 0); k-- {
		if n := &r.notes[k%notes]; n.at <= made {
			return r.out - n.out, true
		}
	}
	return 0, false
}

// Sync lowers what has arrived and still counts to most: the provider counts no more than that. It returns by how much.
// The charges that come back first go first, so what stays comes back no earlier than before. Charges that were made
// before t are not given back any more: the statement has corrected them.
func (m *Meter) Sync(d *Def, r *Ring, t, most int64) int64 {
	more := m.Level - most
	if more <= 0 || r == nil {
		return 0
	}
	switch {
	case d.Kind == Bucket:
		m.Level, m.Rem, m.Since = most, 0, t+1
		if r.out += more; r.out > maxExact/2 {
			r.out, r.inOut = more, 0
		}
		r.outAt = t
	case m.slices(d):
		r.came(d, t, more)
		left := more
		for k := r.Tail; left > 0 && k < r.Tail+slots; k++ {
			c := r.at(k)
			part := min(*c, left)
			*c -= part
			left -= part
		}
		m.Level -= more
		r.Settled = t
	default:
		return 0
	}
	m.Outside = min(m.Outside, m.Level)
	return more
}
