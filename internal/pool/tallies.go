package pool

// tally holds the counts of an agent for one model and minute that are not in its records yet. The fast path counts here.
type tally struct {
	caller      int32
	model       int32
	minute      uint32
	class       uint8
	dirty       bool // it has counts to enter
	listed      bool // it is in crew.told or crew.before
	marked      bool // it has changed since the store was written
	sent        uint32
	retried     uint32
	inSecond    uint32 // like caller.inSecond
	peak        uint32
	all         uint32 // like period.peakAll
	first, last int64
	units       [maxUnits]int64
}

// tell prepares a tally to count requests for a model in this minute. It enters its earlier counts first.
func (p *Pool) tell(t *tally, model int32) {
	if t.dirty {
		p.enterTally(t)
	}
	rec := p.callers.recs.At(t.caller)
	if rec.asked+lotLife>>ageBits < p.age() { // sweep must not drop the record before the tally is entered
		rec.asked = p.age()
	}
	t.dirty, t.model, t.minute = true, p.names.Keep(model), p.history.minute
	t.last, t.inSecond, t.peak, t.all = rec.last, rec.inSecond, 0, 0
	p.enlist(t)
}

// enlist adds a tally to the list of those to enter.
func (p *Pool) enlist(t *tally) {
	if !t.listed {
		t.listed = true
		p.told = append(p.told, t)
	}
}

// fewTallies is how many tallies a step enters. When a minute ends, every agent may have one.
const fewTallies = 64

// turnTallies begins another minute. The following steps enter the tallies of the last one, a few each.
func (p *Pool) turnTallies() {
	p.enterSome(p.toEnter)
	p.before, p.told = p.told, p.before
	if len(p.told) > 0 {
		p.told = p.told[:0]
	}
	p.toEnter = len(p.before)
}

// enterSome enters up to n tallies of the previous minute.
func (p *Pool) enterSome(n int) {
	for i := 0; i < n && p.toEnter > 0; i++ {
		p.toEnter--
		t := p.before[p.toEnter]
		t.listed = false
		if t.dirty && t.minute != p.history.minute {
			p.enterTally(t)
		} else if t.dirty {
			p.enlist(t)
		}
	}
}

// enterTallies enters all tallies.
func (p *Pool) enterTallies() {
	p.enterSome(p.toEnter)
	if len(p.before) > 0 {
		p.before = p.before[:0]
	}
	for _, t := range p.told {
		t.listed = false
		if t.dirty {
			p.enterTally(t)
		}
	}
	if len(p.told) > 0 {
		p.told = p.told[:0]
	}
}

// enterTally adds the counts of a tally to its caller and period, and clears it.
func (p *Pool) enterTally(t *tally) {
	h, rec := &p.history, p.callers.recs.At(t.caller)
	i := int32(0)
	if t.sent > 0 {
		rec.class, rec.asked = t.class, uint32(t.last>>ageBits)
		if rec.first == 0 {
			rec.first = t.first
		}
		rec.sent += int64(t.sent)
		rec.retried += t.retried
		rec.last, rec.inSecond, rec.peak = t.last, t.inSecond, max(rec.peak, t.peak)
		i = p.periodOf(rec, t.model, t.minute)
	} else {
		i = p.periodIn(rec, t.model, t.minute)
	}
	if i != 0 {
		pd := h.periods.At(i)
		if t.sent > 0 {
			pd.sent += t.sent
			pd.retried += t.retried
			pd.peak = max(pd.peak, t.peak)
			pd.peakAll = max(pd.peakAll, t.all)
		}
		for u := range len(t.units) {
			if t.units[u] != 0 {
				pd.units[u] = max(pd.units[u]+t.units[u], 0)
			}
		}
	}
	for u := range len(t.units) {
		t.units[u] = 0
	}
	p.names.Drop(t.model)
	t.dirty, t.sent, t.retried = false, 0, 0
	if !t.marked {
		p.mark(t)
	}
}

// usedLess corrects the count of ticket k of a lot, which used less of a unit than it took.
func (p *Pool) usedLess(l *Lot, k int, unit int8, less int64) {
	t := p.tallies[l.callers[k]]
	if !t.dirty || t.model != l.who.model || t.minute != l.minute {
		if l.minute != p.history.minute {
			p.usedLessBefore(l, t, unit, less)
			return
		}
		p.tell(t, l.who.model)
	}
	t.units[unit] -= less
	if !t.marked {
		p.mark(t)
	}
}

// usedLessBefore is usedLess for a ticket granted in an earlier minute.
func (p *Pool) usedLessBefore(l *Lot, t *tally, unit int8, less int64) {
	if t.dirty {
		p.enterTally(t)
	}
	if i := p.periodIn(p.callers.recs.At(t.caller), l.who.model, l.minute); i != 0 {
		pd := p.history.periods.At(i)
		pd.units[unit] = max(pd.units[unit]-less, 0)
	}
}
