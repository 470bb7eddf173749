package meter

// Sound reports whether the arithmetic can work with the numbers of a meter and its ring, which come from elsewhere:
// nothing is divided by zero, no sum is too large, and every loop ends.
func (m *Meter) Sound(d *Def, r *Ring) bool {
	for _, n := range [...]int64{m.Held, m.Level, m.Rem, m.Last, m.Hi, m.Outside, m.Since} {
		if n < -Never || n > Never {
			return false
		}
	}
	switch {
	case m.Cap < 0 || m.Cap > MaxAmount || m.N < 0 || m.N > maxExact || m.W < 0 || m.W > maxExact || m.N > 0 && m.W == 0:
		return false
	case d.Kind == Bucket && m.Last < 0 || d.Kind == Bucket && m.Cap > 0 && m.W == 0:
		return false
	case r == nil:
		return !d.NeedsRing() && !m.slices(d)
	}
	sum, ok := r.sound()
	switch {
	case !ok:
		return false
	case d.Kind == Bucket:
		return r.Sum == sum
	case m.slices(d):
		return m.Level <= sum
	}
	return true
}

// sound reports whether the numbers of a ring are in range. It also returns the sum of its slices.
func (r *Ring) sound() (sum int64, ok bool) {
	for _, n := range [...]int64{r.Tail, r.Due, r.Sum, r.Slack, r.CutAt, r.OddAt, r.Gone, r.in, r.inAt, r.out, r.outAt, r.inOut, r.apart, r.Settled} {
		if n < -Never || n > Never {
			return 0, false
		}
	}
	for i := range r.marks {
		if m := &r.marks[i]; m.at < -Never || m.at > Never || m.n < -Never || m.n > Never {
			return 0, false
		}
	}
	for i := range r.notes {
		if n := &r.notes[i]; n.at < -Never || n.at > Never || n.n < -Never || n.n > Never || n.out < -Never || n.out > Never {
			return 0, false
		}
	}
	for _, n := range &r.slot {
		if n < 0 || n > Never {
			return 0, false
		}
		sum += n // at most slots times Never, which fits
	}
	return sum, r.Cut >= 0 && r.Cut <= cutMost && r.Slack >= 0 && r.last >= 0 && r.last <= Never && r.note >= 0 && r.note <= Never && r.apart >= 0
}
