package pool

// pacesPlan reports that a class is paced on a meter because it is a window of a subscription.
func (p *Pool) pacesPlan(in *inst, class uint8) bool {
	return class > 0 && p.spec.Pace && p.spec.Limits[in.limit].Plan
}

// hasPerson reports that an agent of the highest class is alive, or has used the window, or one of the ticket's windows that
// are listed before it. The week comes first: who has used the plan in this week is expected again.
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
