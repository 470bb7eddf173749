package pool

// tally is what an agent has sent in a minute for a model, and what it used less, as far as its records do not say so yet.
type tally struct {
	caller      int32
	model       int32
	minute      uint32
	class       uint8
	dirty       bool
	listed      bool // it is among those that say something
	marked      bool // it has changed since the store was written
	sent        uint32
	retried     uint32
	inSecond    uint32 // as those of the caller
	peak        uint32
	all         uint32 // the most that all agents together had sent in a second when it sent
	first, last int64
	units       [maxUnits]int64
}

// tell has a tally speak of a model, in this minute.
func (p *Pool) tell(t *tally, model int32) {
	if t.dirty {
		p.enterTally(t)
	}
	rec := p.callers.recs.At(t.caller)
	if rec.asked+lotLife>>ageBits < p.age() { // it must not be forgotten before the tally is entered
		rec.asked = p.age()
	}
	t.dirty, t.model, t.minute = true, p.names.Keep(model), p.history.minute
	t.last, t.inSecond, t.peak, t.all = rec.last, rec.inSecond, 0, 0
	p.enlist(t)
}

// enlist sees to it that a tally will be entered.
func (p *Pool) enlist(t *tally) {
	if !t.listed {
		t.listed = true
		p.told = append(p.told, t)
	}
}

// fewTallies are entered in one step. When a minute is over there can be a caller's for each agent.
const fewTallies = 64

// turnTallies begins another minute. What the tallies say of the last one is entered little by little.
func (p *Pool) turnTallies() {
	p.enterSome(p.toEnter)
	p.before, p.told = p.told, p.before
	if len(p.told) > 0 {
		p.told = p.told[:0]
	}
	p.toEnter = len(p.before)
}

// enterSome enters up to n tallies of the minute before.
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

// enterTallies has the records say what the tallies do.
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

// usedLess counts that a ticket of a lot used less of a limit than it took.
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

// usedLessBefore is for a ticket of the minute before.
func (p *Pool) usedLessBefore(l *Lot, t *tally, unit int8, less int64) {
	if t.dirty {
		p.enterTally(t)
	}
	if i := p.periodIn(p.callers.recs.At(t.caller), l.who.model, l.minute); i != 0 {
		pd := p.history.periods.At(i)
		pd.units[unit] = max(pd.units[unit]-less, 0)
	}
}
