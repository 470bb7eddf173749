package pool

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// When limits change under those who use them, nothing that was charged is lost, and nobody loses their place: a limit that
// comes instead of another takes over its charges, and those who wait do so under the limits there are now.

// inForce is the set of limits that requests count against.
func (p *Pool) inForce() uint16 { return uint16(1<<len(p.spec.Limits)-1) &^ p.retired }

// heirs returns for each limit that is not in force which one came instead of it just now, -1 if none did. Of those that are in
// force now, some were before.
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

// inherit hands over what is charged to limits that are gone to those that came instead of them.
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
			continue // nobody would ever give it back
		}
		in, d, r := p.touch(p.instOf(u.to, &u.scope))
		// What has been bound already counts as sent just now. It may be more than there is in a shorter window.
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

// legacy is what is charged to a meter that requests no longer count against, and which limit takes it over. The names of
// the scope stay: what is charged is, or a ticket holds them.
type legacy struct {
	to    int
	scope names
	used  int64
}

// move takes a charge of a ticket that was granted from one limit to another.
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

// ref counts a ticket that stands on a meter, where it is counted.
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

// lifted is a ticket that was taken out of the line to be put back.
type lifted struct {
	ticket  int32
	number  int64
	on      uint16
	amounts [store.MaxLimits]int64
	units   map[string]int64
}

// lift takes everybody out of the line, and returns them in the order in which they came.
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

// requeue puts those back who were lifted. Of limits that came meanwhile they want what they want of the others of that unit.
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
		for old := l.on & before; old != 0; old &= old - 1 { // what it wanted of exactly that one
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
