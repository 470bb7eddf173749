package pool

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// When limits change while they are used, no charges are lost and all requests keep their place in the queue. A limit
// that replaces another takes over its charges, and waiting requests count against the new limits.

// inForce returns the set of limits that requests count against.
func (p *Pool) inForce() uint16 { return uint16(1<<len(p.spec.Limits)-1) &^ p.retired }

// heirs returns for each retired limit the limit that has just replaced it, or -1 if none has. before is the set of limits
// that were already in force: these replace no other.
func (p *Pool) heirs(before uint16) (heir [store.MaxLimits]int) {
	for i := range heir {
		heir[i] = -1
		if i >= len(p.spec.Limits) || !p.isRetired(i) {
			continue
		}
		l := &p.spec.Limits[i]
		if k := p.Index(l.Name); k >= 0 && before&(1<<k) == 0 && p.spec.Limits[k].Unit == l.Unit && p.spec.Limits[k].Per == l.Per {
			heir[i] = k
		}
	}
	return heir
}

// inherit moves the charges of retired limits to the limits that replace them.
func (p *Pool) inherit(heir *[store.MaxLimits]int) {
	var used []legacy
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used || heir[in.limit] < 0 {
			continue
		}
		if in, d, r := p.touch(i); in.Used(d, r) > 0 {
			used = append(used, legacy{heir[in.limit], in.scope, in.Used(d, r)})
		}
	}
	for t := int32(1); t < p.tickets.End(); t++ {
		tk := p.tickets.At(t)
		if tk.state != stateReady && tk.state != stateHeld && tk.state != stateSpent {
			continue
		}
		for k := range tk.n {
			if c := &tk.charges[k]; heir[c.limit] >= 0 {
				p.move(tk, c, heir[c.limit])
			}
		}
	}
	for _, u := range used {
		if p.defs[u.to].Kind == meter.Concurrency {
			continue // no ticket would ever release it
		}
		in, d, r := p.touch(p.instOf(u.to, &u.scope))
		// Bound charges count as sent now. They may exceed a shorter window.
		if in.Cap > 0 {
			u.used = min(u.used, in.Cap)
		}
		if more := u.used - in.Used(d, r); more > 0 {
			c := in.Take(d, r, p.now, more, false)
			in.Bind(d, r, p.now, &c)
			in.seen = p.age()
		}
	}
}

// legacy is the use of a retired meter and the limit that takes it over. The names of the scope stay valid, because the
// charged meter or a ticket holds them.
type legacy struct {
	to    int
	scope names
	used  int64
}

// move transfers a charge of a granted ticket to another limit.
func (p *Pool) move(tk *ticket, c *charge, to int) {
	amount := c.Amount
	in, d, r := p.touchCharge(c)
	in.Refund(d, r, p.now, &c.Charge)
	c.Amount = amount
	if p.policed&(1<<c.limit) != 0 {
		p.tookLess(tk.class, tk.granted, in, amount)
	}
	p.unref(c)
	c.inst, c.limit = p.instOf(to, &tk.who), uint8(to)
	p.ref(c)
	in, d, r = p.touchCharge(c)
	in.seen = p.age()
	c.Charge = in.Take(d, r, p.now, amount, p.header.slowerThan(d, r))
	if p.policed&(1<<c.limit) != 0 {
		p.took(tk.class, 1, c.Amount, in, d)
	}
	switch {
	case tk.state == stateSpent:
		in.Spend(d, r, p.now, tk.granted, &c.Charge)
		in.Release(d, &c.Charge)
	case tk.answered && !d.Late:
		in.Bind(d, r, p.now, &c.Charge)
	}
}

// ref counts a ticket that uses a meter. Meters without a scope have no such count.
func (p *Pool) ref(c *charge) {
	if p.unscoped[c.limit].at == nil {
		p.insts.At(c.inst).refs++
	}
}

func (p *Pool) unref(c *charge) {
	if p.unscoped[c.limit].at == nil {
		p.insts.At(c.inst).refs--
	}
}

// lifted is a ticket that lift took out of the queue, with the amounts that it asked for by limit and by unit.
type lifted struct {
	ticket  int32
	number  int64
	on      uint16
	amounts [store.MaxLimits]int64
	units   map[string]int64
}

// lift takes all waiting tickets out of the queue and returns them in the order in which they came.
func (p *Pool) lift() []lifted {
	var line []lifted
	for t := int32(1); t < p.tickets.End(); t++ {
		tk := p.tickets.At(t)
		if tk.state != stateWaiting {
			continue
		}
		l := lifted{ticket: t, number: p.queue.Number(tk.waiter), units: map[string]int64{}}
		for k := range tk.n {
			c := &tk.charges[k]
			unit := p.spec.Limits[c.limit].Unit
			l.on |= 1 << c.limit
			l.amounts[c.limit], l.units[unit] = c.Amount, max(l.units[unit], c.Amount)
		}
		line = append(line, l)
	}
	slices.SortFunc(line, func(a, b lifted) int { return cmp.Compare(a.number, b.number) })
	for i := range line {
		tk := p.tickets.At(line[i].ticket)
		p.leaveQueue(tk)
		for k := range tk.n {
			p.unref(&tk.charges[k])
		}
		tk.n = 0
	}
	return line
}

// requeue queues lifted tickets again. From a new limit they ask for what they asked for from other limits of its unit.
func (p *Pool) requeue(line []lifted, before uint16, heir *[store.MaxLimits]int) {
	now := p.inForce()
	for i := range line {
		l := &line[i]
		tk := p.tickets.At(l.ticket)
		var want [store.MaxLimits]int64
		for k := range p.spec.Limits {
			switch unit := p.spec.Limits[k].Unit; {
			case now&(1<<k) == 0:
			case before&(1<<k) != 0:
				want[k] = l.amounts[k]
			default:
				want[k] = l.units[unit]
			}
		}
		for old := l.on & before; old != 0; old &= old - 1 { // from an heir: the amount for the limit that it replaces
			if k := bits.TrailingZeros16(old); heir[k] >= 0 {
				want[heir[k]] = l.amounts[k]
			}
		}
		p.requeueOne(l.ticket, tk, &want)
	}
}

func (p *Pool) requeueOne(t int32, tk *ticket, want *[store.MaxLimits]int64) {
	for limit := range p.spec.Limits {
		if want[limit] == 0 {
			continue
		}
		c := &tk.charges[tk.n]
		c.inst, c.limit = p.instOf(limit, &tk.who), uint8(limit)
		c.Amount, c.Mark, c.Mode = want[limit], 0, 0
		p.ref(c)
		p.insts.At(c.inst).queued += c.Amount
		tk.n++
	}
	tk.lacked, tk.parked = 0, false
	costs := p.costs(tk)
	tk.waiter = p.queue.Push(p.position(tk), t, &costs, false)
	p.sessions.At(tk.session).waiting++
}
