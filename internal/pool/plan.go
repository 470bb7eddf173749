package pool

// pacesPlan reports whether a class is paced on a meter because the meter is a window of a subscription.
func (p *Pool) pacesPlan(in *inst, class uint8) bool {
	return class > 0 && p.spec.Pace && p.spec.Limits[in.limit].Plan
}

// usedOf returns what a class has used of a stock in its current window.
func (v view) usedOf(in *inst, class uint8) int64 {
	if !v.whole {
		return v.Pool.stockOf(in).used[class]
	}
	st := *v.stocks.At(in.extra) // a copy, as in stockOf
	st.turn(in)
	return st.used[class]
}

// hasPerson reports whether an agent of the highest class is live, or has used this window or another subscription window
// of the ticket. If that agent used the plan this week, it is expected to come back.
func (v view) hasPerson(tk *ticket, in *inst) bool {
	if v.alive(0) || v.usedOf(in, 0) > 0 {
		return true
	}
	for k := range tk.n {
		c := &tk.charges[k]
		if !v.spec.Limits[c.limit].Plan {
			continue
		}
		other := v.insts.At(c.inst)
		if other.Hi > v.now && v.usedOf(other, 0) > 0 {
			return true
		}
	}
	return false
}
