package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// SpellOut gives every ticket a record and enters all tallies, so that the pool's records are complete.
func (p *Pool) SpellOut() {
	for l := p.lotAt(0); l != nil; l = p.lotAt(0) {
		p.spellOut(l)
	}
	p.enterTallies()
}

// spellOut gives records to the tickets of a lot that have not ended, and drops the lot.
func (p *Pool) spellOut(l *Lot) {
	for k := range len(l.Agents) {
		if l.states[k] != ended {
			p.spell(l, k)
		}
	}
	p.forgetLot(l)
}

// spell creates the record of ticket k of a lot.
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
