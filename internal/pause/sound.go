package pause

// Sound reports whether the numbers of a state, which come from elsewhere, are in range.
func (g *State) Sound() bool {
	const most = 1 << 53
	for _, n := range [...]int64{g.Until, g.Since, g.probeAt, g.nextProbe, g.every, g.up.from, g.up.last} {
		if n < -most || n > most {
			return false
		}
	}
	r := &g.up
	for _, n := range [...]int64{g.Throttles, g.Overloads, r.sent, r.acked, r.busy, r.steps, r.refused, r.most, r.span, r.full, r.doubts, r.every} {
		if n < 0 || n > most {
			return false
		}
	}
	for _, n := range r.old {
		if n < 0 || n > most {
			return false
		}
	}
	for _, n := range r.marks {
		if n < -most || n > most {
			return false
		}
	}
	return g.Phase <= Ramping && g.probe >= 0 && g.blanks >= 0 && g.blanks <= maxBlanks && (r.most == 0 && !r.even || r.most > 0 && r.every > 0)
}
