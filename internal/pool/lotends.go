package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Ends is a batch of answers of VerdictOK, closes, or both in this order, for tickets of one session.
type Ends struct {
	Kind          int8
	Session       uint64
	Answer, Close bool
	Width         int // number of limits in Amounts; 0: the closes state no use
	Numbers       []uint64
	Amounts       []int64 // Width amounts per ticket, in the order of Numbers; negative: not stated
}

// FastEnds answers tickets, closes them, or both. It returns how many it has done; the full functions do the rest.
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

// endOne calls FastDone for ticket e.Numbers[at], which has a record.
func (p *Pool) endOne(e *Ends, at int) bool {
	o := Done{ID: store.ID{Session: e.Session, N: e.Numbers[at]}, Answer: e.Answer, Close: e.Close, Settles: e.Width > 0}
	for limit := range o.Amounts {
		o.Amounts[limit] = -1
	}
	for limit := range e.Width {
		o.Amounts[limit] = e.Amounts[at*e.Width+limit]
	}
	return p.FastDone(&o)
}

// answerLot answers tickets of a lot. If sums cannot represent how the lot was charged, its tickets get records first.
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
	n := uint32(0)
	for i := from; i < to; i++ {
		k := int(e.Numbers[i] - l.ID.N)
		if l.states[k] != 0 {
			continue
		}
		n++
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
	if n > 0 {
		p.countAccepted(l.who.model, n)
	}
}

// closeLot closes tickets of a lot. If e.Answer is set, it answers them first. It returns false and changes nothing if
// the full functions have to do it.
func (p *Pool) closeLot(l *Lot, e *Ends, from, to int) bool {
	if p.anyStrict && !e.Answer || e.Width > 0 && (l.holes || e.Width > l.Width) { // otherwise no ticket needs a check
		for i := from; i < to; i++ {
			if p.anyStrict && !e.Answer && l.states[e.Numbers[i]-l.ID.N] == 0 || p.unasked(l, e, i) {
				return false
			}
		}
	}
	if e.Answer {
		answered := uint32(0)
		for i := from; i < to; i++ {
			if l.states[e.Numbers[i]-l.ID.N] == 0 {
				answered++
				p.header.add(p.now - l.granted)
			}
		}
		if answered > 0 {
			p.countAccepted(l.who.model, answered)
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

// unasked reports whether a close states use of a limit that its request did not ask for.
func (p *Pool) unasked(l *Lot, e *Ends, i int) bool {
	for limit := range e.Width {
		if e.Amounts[i*e.Width+limit] > 0 && (limit >= l.Width || l.Amounts[int(e.Numbers[i]-l.ID.N)*l.Width+limit] == 0) {
			return true
		}
	}
	return false
}

// giveUp releases the concurrency charges of tickets that end.
func (s *sums) giveUp(l *Lot, e *Ends, limit, from, to int) {
	for i := from; i < to; i++ {
		if amount := l.Amounts[int(e.Numbers[i]-l.ID.N)*l.Width+limit]; amount != 0 {
			s.gone += amount
			s.left += amount
			s.refs--
		}
	}
}

// settleLot settles the charges of lot tickets on one limit to the amounts used, and ends them.
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

// settleHeld ends held charges. Their total is gone, and less of it was not used.
func (p *Pool) settleHeld(l *Lot, in *inst, s *sums, gone, less int64, bound bool) {
	if gone == 0 {
		return
	}
	s.gone += gone
	s.left += less
	if bound { // the whole charge is bound, then the unused part given back
		s.adds += gone
		s.backs += less
	} else {
		s.adds += gone - less
	}
	if less != 0 && s.keeps != keepsNothing {
		p.keptLess(s, in, l.Class, l.granted, less)
	}
}

// settleOdd settles a charge that does not fit into sums.
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
