package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Lot is a batch of requests that differ only in agent, wait and amounts, and that are granted together or not at all.
// Its tickets have no records, because most of them are closed a moment later in one step with others of the lot. For
// any other operation on a ticket, spellOut gives the tickets of the lot records. Then the pool is as if each had been
// granted by itself.
type Lot struct {
	Kind                   int8
	ID                     store.ID // the session and, once granted, the number of the first ticket
	User, Model, Tool, Key string
	Class                  uint8
	Tie                    uint8
	Retry                  bool
	Alive, TTL             int64 // microseconds
	Width                  int   // number of limits in Amounts
	Waits                  []int64
	Agents                 []string
	Amounts                []int64 // Width amounts per request, in the order of Agents

	// Set by the grant:
	granted int64
	due     int64 // when seeToLots spells out the lot
	minute  uint32
	session int32
	who     names
	left    int  // number of tickets that have not ended
	holes   bool // some limit is used by some of the requests and not by others
	callers []int64
	states  []int64 // per ticket: 0, the time of its answer, or ended
	insts   []int64 // per limit: the meter, or 0 if no request uses the limit
	modes   []int64 // per limit: the Mode of all charges
	marks   []int64 // per limit: the Mark of all charges
}

// The values of Kind, by which the Lua script distinguishes lots and ends from operations.
const (
	LotKind  = -1
	EndsKind = -2
)

// ended is the state of a lot's ticket that has ended.
const ended = -1

// lotLife is how long a lot can exist before it is spelled out. The records of its agents are not dropped in that time.
const lotLife = minute

// FastLot grants the requests of a lot and returns the number of the first ticket. It returns 0 and grants nothing if the
// full functions have to decide.
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

// chargeLot charges a lot to the chosen meters.
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

// tellLot counts the requests of a lot in the tallies of their agents.
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

// holdLot numbers the tickets of a lot and adds them to their session.
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

// forgetLot drops a lot whose tickets have all ended or been spelled out.
func (p *Pool) forgetLot(l *Lot) {
	p.dropLot(l)
	p.names.Drop(l.who.user)
	p.names.Drop(l.who.model)
	p.names.Drop(l.who.tool)
	p.names.Drop(l.who.key)
}

// seeToLots spells out the lots that are due, and extends those whose session has sent a heartbeat.
func (p *Pool) seeToLots() {
	p.lotsDue = meter.Never
	i := 0
	for l := p.lotAt(i); l != nil; l = p.lotAt(i) {
		if kept := p.sessions.At(l.session).kept; l.due <= p.now && l.Tie == uint8(store.TieBeat) && kept > p.now {
			l.due = min(kept, l.granted+min(l.TTL, lotLife))
		}
		if l.due <= p.now {
			p.spellOut(l) // another lot takes its place in the list
			continue
		}
		p.lotsDue = min(p.lotsDue, l.due)
		i++
	}
}
