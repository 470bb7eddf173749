package pool

// pacesPlan reports whether a class is paced on a meter because the meter is a window of a subscription.
func (p *Pool) pacesPlan(in *inst, class uint8) bool {
	return class > 0 && p.spec.Pace && p.spec.Limits[in.limit].Plan
}

// hasPerson reports whether an agent of the highest class is live, or has used this window or another subscription window
// of the ticket. If that agent used the plan this week, it is expected to come back.
func (p *Pool) hasPerson(tk *ticket, in *inst) bool {
	if p.alive(0) || p.stockOf(in).used[0] > 0 {
		return true
	}
	for k := range tk.n {
		c := &tk.charges[k]
		if !p.spec.Limits[c.limit].Plan {
			continue
		}
		other := p.insts.At(c.inst)
		if other.Hi > p.now && p.stockOf(other).used[0] > 0 {
			return true
		}
	}
	return false
}
