package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Lot is requests that differ in nothing but who asks and how much, and that are granted together or not at all. Its tickets
// have no records: most of them are closed a moment later, in one step with others of the lot. When anything else is to
// be done with one of them they are spelt out, and then the pool is as if each had been granted by itself.
type Lot struct {
	Kind                   int8
	ID                     store.ID // the session and, when they are granted, the number of the first
	User, Model, Tool, Key string
	Class                  uint8
	Tie                    uint8
	Retry                  bool
	Alive, TTL             int64 // microseconds
	Width                  int   // how many limits Amounts tells of
	Waits                  []int64
	Agents                 []string
	Amounts                []int64 // Width of the first request, then those of the next

	// When they are granted:
	granted int64
	due     int64 // when they have to be looked at
	minute  uint32
	session int32
	who     names
	left    int  // that have not ended
	holes   bool // some take nothing of a limit of which others do
	callers []int64
	states  []int64 // 0, when it was answered, or ended
	insts   []int64 // of each limit: the meter, 0 if no one takes of it
	modes   []int64 // how all of them were charged
	marks   []int64
}

// The kinds by which the script tells lots and ends from operations.
const (
	LotKind  = -1
	EndsKind = -2
)

// ended is the state of a ticket of a lot that is over.
const ended = -1

// lotLife is how long a lot stays one at most: agents are not forgotten in that time.
const lotLife = minute

// Ends are answers that say nothing but ok, closes, or both in this order, of tickets of one session.
type Ends struct {
	Kind          int8
	Session       uint64
	Answer, Close bool
	Width         int // how many limits Amounts tells of; 0: what was used is not known
	Numbers       []uint64
	Amounts       []int64 // Width of the first ticket, then those of the next; below zero: not known
}

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

// crew is what the fast path knows beside the pool's records.
type crew struct {
	tallies []*tally // by caller
	told    []*tally // those that say something of this minute
	before  []*tally // those that did so when the last minute was over
	lots    []*Lot
	lotIx   map[store.ID]*Lot
}

// FastLot grants the requests of a lot and returns the number of the first, or 0.
func (p *Pool) FastLot(l *Lot) uint64 {
	n, w := len(l.Agents), l.Width
	if int(l.Class) >= len(p.spec.Classes) || l.TTL <= 0 || n == 0 || w > len(p.spec.Limits) || l.ID.N != 0 {
		return 0
	}
	l.who = names{model: p.names.Find(l.Model), user: p.names.Find(l.User), tool: p.names.Find(l.Tool), key: p.names.Find(l.Key)}
	if l.who.model == 0 && l.Model != "" || l.who.user == 0 && l.User != "" || l.who.tool == 0 && l.Tool != "" || l.who.key == 0 && l.Key != "" {
		return 0
	}
	callers := list(n)
	for i := range n {
		caller := p.callerNamed(l.Agents[i])
		if caller == 0 {
			return 0
		}
		callers[i] = int64(caller)
	}
	if p.ownScopes&store.PerAgent != 0 {
		l.who.agent = p.names.Find(l.Agents[0])
		for i := range n {
			if l.Agents[i] != l.Agents[0] {
				return 0
			}
		}
	}
	if w := &p.chosenFor; p.chosenAt != p.steps || w.model != l.who.model || w.key != l.who.key ||
		p.ownScopes != 0 && (w.agent != l.who.agent || w.user != l.who.user || w.tool != l.who.tool) {
		p.choose(l.who.agent, l.who.user, l.who.model, l.who.tool, l.who.key)
	}
	totals, takers := list(w), list(w)
	amounts := l.Amounts
	l.holes = false
	for limit := range w {
		total, asks := int64(0), 0
		for i := range n {
			if amount := amounts[i*w+limit]; amount != 0 {
				total += amount
				asks++
			}
		}
		totals[limit], takers[limit] = total, int64(asks)
		if asks != n {
			l.holes = true
		}
		if asks != 0 {
			k := p.chosen[limit]
			if k < 0 || total < 0 {
				return 0
			}
			if s := &p.sums[k]; total > s.left || s.keeps != keepsNothing && p.keepsFrom(s, total, l.Class) {
				return 0
			}
		}
	}
	l.callers = callers
	p.chargeLot(l, totals, takers)
	p.tellLot(l)
	p.holdLot(l)
	return l.ID.N
}

// chargeLot takes what a lot needs of the chosen meters.
func (p *Pool) chargeLot(l *Lot, totals, takers []int64) {
	w := l.Width
	l.insts, l.modes, l.marks = list(w), list(w), list(w)
	for limit := range w {
		l.insts[limit], l.modes[limit], l.marks[limit] = 0, 0, 0
		if takers[limit] == 0 {
			continue
		}
		s := &p.sums[p.chosen[limit]]
		l.insts[limit], l.modes[limit], l.marks[limit] = int64(s.inst), int64(s.mode), s.mark
		s.left -= totals[limit]
		s.takes += totals[limit]
		s.refs += int32(takers[limit])
		if s.keeps == keepsFloors {
			in := p.insts.At(s.inst)
			p.took(l.Class, int(takers[limit]), totals[limit], in, p.defOf(in))
		} else if s.keeps == keepsPace && l.Class > 0 {
			s.paid += totals[limit]
		}
	}
}

// tellLot counts the sends of a lot.
func (p *Pool) tellLot(l *Lot) {
	n, w, model, class, retries := len(l.Agents), l.Width, l.who.model, l.Class, uint32(0)
	if l.Retry {
		retries = 1
	}
	h, all := &p.history, &p.callers.total
	if all.last < h.second {
		all.inSecond = 0
	}
	before := all.inSecond
	all.count(p.now, h.second, int64(n), retries*uint32(n))
	l.minute = h.minute
	callers, tallies := l.callers, p.tallies
	for i := range n {
		t := tallies[callers[i]]
		if !t.dirty || t.model != model || t.minute != h.minute {
			p.tell(t, model)
		}
		if t.sent == 0 {
			t.first = p.now
		}
		if t.last < h.second {
			t.inSecond = 0
		}
		t.sent++
		t.retried += retries
		t.inSecond++
		t.peak, t.all = max(t.peak, t.inSecond), max(t.all, before+uint32(i)+1)
		t.class, t.last = class, p.now
		if !t.marked {
			p.mark(t)
		}
	}
	amounts := l.Amounts
	for limit := range w {
		unit := h.unitOf[limit]
		if unit >= 0 && l.insts[limit] != 0 {
			for i := range n {
				tallies[callers[i]].units[unit] += amounts[i*w+limit]
			}
		}
	}
}

// holdLot gives the tickets of a lot to those who asked.
func (p *Pool) holdLot(l *Lot) {
	n := len(l.Agents)
	from := p.sessionOf(l.ID.Session)
	l.ID.N = max(from.high, p.forgotten) + 1
	from.high = l.ID.N + uint64(n) - 1
	from.open += int32(n)
	if l.Tie == uint8(store.TieGone) {
		from.watched += int32(n)
	}
	l.session = p.lastSess
	if p.lease > 0 && p.aliveTill[l.Class] < p.now+p.lease {
		p.aliveTill[l.Class] = p.now + p.lease
	}
	p.names.Keep(l.who.user)
	p.names.Keep(l.who.model)
	p.names.Keep(l.who.tool)
	p.names.Keep(l.who.key)
	l.granted, l.left = p.now, n
	l.due = p.now + min(l.TTL, lotLife)
	if l.Tie == uint8(store.TieBeat) {
		l.due = min(l.due, p.now+sessionLife)
	}
	p.lotsDue = min(p.lotsDue, l.due)
	l.states = list(n)
	for i := range n {
		l.states[i] = 0
	}
	p.inFlight += int64(n)
	p.addLot(l)
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

// FastEnds answers or closes tickets, or both, and returns how many: the others go the long way.
func (p *Pool) FastEnds(e *Ends) int {
	at := 0
	for at < len(e.Numbers) {
		l, to := p.runOf(e, at)
		switch {
		case l == nil:
			if !p.endOne(e, at) {
				return at
			}
		case !e.Close:
			p.answerLot(l, e, at, to)
		case !p.closeLot(l, e, at, to):
			return at
		}
		at = to
	}
	return at
}

// endOne is for a ticket that has a record.
func (p *Pool) endOne(e *Ends, at int) bool {
	o := Done{ID: store.ID{Session: e.Session, N: e.Numbers[at]}, Answer: e.Answer, Close: e.Close}
	for limit := range e.Width {
		o.Amounts[limit] = e.Amounts[at*e.Width+limit]
	}
	return p.FastDone(&o)
}

// answerLot answers tickets of a lot. Those of a lot that was charged in an unusual way get records first.
func (p *Pool) answerLot(l *Lot, e *Ends, from, to int) {
	usual := true
	for limit := range l.Width {
		if i := int32(l.insts[limit]); i != 0 {
			s := p.sumsOf(i, p.insts.At(i))
			if s.way != placesWay && !s.late && l.modes[limit] != int64(meter.Bound) && (s.way != heldWay || l.modes[limit] != int64(meter.Held)) {
				usual = false
			}
		}
	}
	if !usual {
		p.spellOut(l)
		for i := from; i < to; i++ {
			p.endOne(e, i)
		}
		return
	}
	for i := from; i < to; i++ {
		k := int(e.Numbers[i] - l.ID.N)
		if l.states[k] != 0 {
			continue
		}
		l.states[k] = p.now
		p.header.add(p.now - l.granted)
		for limit := range l.Width {
			if i := int32(l.insts[limit]); i != 0 {
				if s := p.sumsOf(i, p.insts.At(i)); s.way == heldWay && !s.late && l.modes[limit] == int64(meter.Held) {
					s.gone += l.Amounts[k*l.Width+limit]
					s.adds += l.Amounts[k*l.Width+limit]
				}
			}
		}
	}
}

// closeLot closes tickets of a lot, and answers them first if it is said so. It reports whether it did.
func (p *Pool) closeLot(l *Lot, e *Ends, from, to int) bool {
	if p.anyStrict && !e.Answer || e.Width > 0 && (l.holes || e.Width > l.Width) { // else nothing can be amiss
		for i := from; i < to; i++ {
			if p.anyStrict && !e.Answer && l.states[e.Numbers[i]-l.ID.N] == 0 || p.unasked(l, e, i) {
				return false
			}
		}
	}
	if e.Answer {
		for i := from; i < to; i++ {
			if l.states[e.Numbers[i]-l.ID.N] == 0 {
				p.header.add(p.now - l.granted)
			}
		}
	}
	for limit := range l.Width {
		if i := int32(l.insts[limit]); i != 0 {
			in := p.insts.At(i)
			s := p.sumsOf(i, in)
			if s.way == placesWay {
				s.giveUp(l, e, limit, from, to)
			} else {
				p.settleLot(l, e, limit, from, to, in, s)
			}
		}
	}
	n := to - from
	s := p.sessions.At(l.session)
	s.open -= int32(n)
	if l.Tie == uint8(store.TieGone) {
		s.watched -= int32(n)
	}
	s.last = p.now
	p.inFlight -= int64(n)
	p.strikeLot(l, e, from, to)
	l.left -= n
	if l.left == 0 {
		p.forgetLot(l)
	}
	return true
}

// unasked reports whether a close states use of a limit of which its request asked for nothing.
func (p *Pool) unasked(l *Lot, e *Ends, i int) bool {
	for limit := range e.Width {
		if e.Amounts[i*e.Width+limit] > 0 && (limit >= l.Width || l.Amounts[int(e.Numbers[i]-l.ID.N)*l.Width+limit] == 0) {
			return true
		}
	}
	return false
}

// giveUp gives back the places of tickets that end.
func (s *sums) giveUp(l *Lot, e *Ends, limit, from, to int) {
	for i := from; i < to; i++ {
		if amount := l.Amounts[int(e.Numbers[i]-l.ID.N)*l.Width+limit]; amount != 0 {
			s.gone += amount
			s.left += amount
			s.refs--
		}
	}
}

// settleLot settles what tickets of a lot took of a limit to what they used, and ends that.
func (p *Pool) settleLot(l *Lot, e *Ends, limit, from, to int, in *inst, s *sums) {
	usual := s.way == heldWay && l.modes[limit] == int64(meter.Held)
	w, first, amounts, states, numbers, used, uw := l.Width, l.ID.N, l.Amounts, l.states, e.Numbers, e.Amounts, e.Width
	unit, bound := s.unit, e.Answer && !s.late
	gone, less, refs := int64(0), int64(0), int32(0)
	for i := from; i < to; i++ {
		k := int(numbers[i] - first)
		if amount := amounts[k*w+limit]; amount != 0 {
			refs++
			actual := amount
			if limit < uw {
				if u := used[i*uw+limit]; u >= 0 {
					actual = u
				}
			} else if uw > 0 {
				actual = 0
			}
			if usual && actual <= amount && states[k] == 0 {
				gone += amount
				if actual != amount {
					less += amount - actual
					if unit >= 0 {
						p.usedLess(l, k, unit, amount-actual)
					}
				}
			} else {
				p.settleHeld(l, in, s, gone, less, bound)
				gone, less = 0, 0
				p.settleOdd(l, e, k, limit, in, s, amount, actual)
			}
		}
	}
	p.settleHeld(l, in, s, gone, less, bound)
	s.refs -= refs
}

// settleHeld ends charges that were held: gone together, of which less was not used.
func (p *Pool) settleHeld(l *Lot, in *inst, s *sums, gone, less int64, bound bool) {
	if gone == 0 {
		return
	}
	s.gone += gone
	s.left += less
	if bound { // first, and what was not used given back
		s.adds += gone
		s.backs += less
	} else {
		s.adds += gone - less
	}
	if less != 0 && s.keeps != keepsNothing {
		p.keptLess(s, in, l.Class, l.granted, less)
	}
}

// settleOdd is for a charge that the sums cannot take.
func (p *Pool) settleOdd(l *Lot, e *Ends, k, limit int, in *inst, s *sums, amount, actual int64) {
	c := meter.Charge{Amount: amount, Mark: l.marks[limit], Mode: meter.Mode(l.modes[limit])}
	if l.states[k] > 0 && c.Mode == meter.Held && !s.late {
		c.Mark, c.Mode = l.states[k], meter.Bound
	}
	if c.Mode == meter.Bound && actual == amount {
		return
	}
	more := p.settleFast(in, s, &c, actual, e.Answer || l.states[k] > 0)
	if more == 0 {
		return
	}
	if s.unit >= 0 {
		p.usedLess(l, k, s.unit, -more)
	}
	if s.keeps != keepsNothing {
		p.keptLess(s, in, l.Class, l.granted, -more)
	}
}

// forgetLot forgets a lot of which nothing is left.
func (p *Pool) forgetLot(l *Lot) {
	p.dropLot(l)
	p.names.Drop(l.who.user)
	p.names.Drop(l.who.model)
	p.names.Drop(l.who.tool)
	p.names.Drop(l.who.key)
}

// seeToLots spells out lots whose time has come.
func (p *Pool) seeToLots() {
	p.lotsDue = meter.Never
	i := 0
	for l := p.lotAt(i); l != nil; l = p.lotAt(i) {
		if kept := p.sessions.At(l.session).kept; l.due <= p.now && l.Tie == uint8(store.TieBeat) && kept > p.now {
			l.due = min(kept, l.granted+min(l.TTL, lotLife))
		}
		if l.due <= p.now {
			p.spellOut(l) // another takes its place
			continue
		}
		p.lotsDue = min(p.lotsDue, l.due)
		i++
	}
}

// SpellOut gives all tickets records of their own, and has the records say all that is known.
func (p *Pool) SpellOut() {
	for l := p.lotAt(0); l != nil; l = p.lotAt(0) {
		p.spellOut(l)
	}
	p.enterTallies()
}

// spellOut gives those tickets of a lot records that have not ended.
func (p *Pool) spellOut(l *Lot) {
	for k := range len(l.Agents) {
		if l.states[k] != ended {
			p.spell(l, k)
		}
	}
	p.forgetLot(l)
}

func (p *Pool) spell(l *Lot, k int) {
	i := p.tickets.New()
	tk := p.tickets.At(i)
	tk.id.Session, tk.id.N = l.ID.Session, l.ID.N+uint64(k)
	tk.since, tk.granted, tk.deadline = l.granted, l.granted, meter.Never
	if wait := l.Waits[min(k, len(l.Waits)-1)]; wait >= 0 {
		tk.deadline = l.granted + wait
	}
	tk.class, tk.tie, tk.ttl, tk.alive, tk.session, tk.state = l.Class, l.Tie, l.TTL, l.Alive, l.session, stateHeld
	tk.retry = l.Retry
	tk.answered = l.states[k] > 0
	tk.who.agent = p.names.Hold(l.Agents[k])
	tk.who.user, tk.who.model = p.names.Keep(l.who.user), p.names.Keep(l.who.model)
	tk.who.tool, tk.who.key = p.names.Keep(l.who.tool), p.names.Keep(l.who.key)
	t := p.tallies[l.callers[k]]
	if t.dirty {
		p.enterTally(t)
	}
	tk.caller = t.caller
	tk.note = p.periodIn(p.callers.recs.At(t.caller), l.who.model, l.minute)
	tk.ends = l.granted + l.TTL
	tk.due = tk.ends
	if l.Tie == uint8(store.TieBeat) {
		tk.due = min(tk.due, max(l.due, l.granted+sessionLife))
	}
	p.wheel.add(p, i, tk)
	p.enter(i, tk.id)
	n := 0
	for limit := range l.Width {
		if amount := l.Amounts[k*l.Width+limit]; amount != 0 {
			c := &tk.charges[n]
			c.Amount, c.Mark, c.Mode, c.inst, c.limit = amount, l.marks[limit], meter.Mode(l.modes[limit]), int32(l.insts[limit]), uint8(limit)
			if l.states[k] > 0 && c.Mode == meter.Held && !p.defs[limit].Late && p.defs[limit].Kind != meter.Concurrency {
				c.Mark, c.Mode = l.states[k], meter.Bound
			}
			n++
		}
	}
	tk.n = uint8(n)
}
