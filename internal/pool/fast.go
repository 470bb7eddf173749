package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// The fast path. Usually no request waits, no pause or ramp is in force, and the provider responds. Then acquire, an
// answer of VerdictOK without stated limits, and close need little work. The fast path does them in a fraction of the
// time and with the same outcome. All operations of a step have the same time, so it adds up their charges by meter and
// enters each sum once, at the end of the step.
//
// A fast function that cannot complete an operation reports that. It has changed only what the full function would change
// as well. Then the full functions handle that operation and the rest of the step.

// Done is an answer of VerdictOK, a close, or both in this order, for one ticket.
type Done struct {
	ID            store.ID
	Answer, Close bool
	Settles       bool                   // the close states what was used:
	Amounts       [store.MaxLimits]int64 // by limit; negative: not stated
}

// sums collects the changes of one step to a meter. enterSums applies them.
type sums struct {
	inst  int32
	left  int64 // room
	mark  int64 // of charges that are taken now
	mode  meter.Mode
	way   uint8
	keeps uint8 // whether the meter may keep room from requests
	late  bool  // as meter.Def.Late
	unit  int8  // column of the history that counts the limit; -1: none
	refs  int32 // change in the number of tickets that use the meter
	takes int64 // amount taken
	gone  int64 // amount no longer held
	adds  int64 // amount that has arrived
	backs int64 // part of adds that was not used

	paid int64 // on a paced meter: amount taken by lower classes, less refunds
}

// The ways in which a meter is charged.
const (
	longWay   = iota // sums cannot be used: the meter's functions are called for each charge
	heldWay          // charges are held until they are bound
	offWay           // charges are bound at once
	aheadWay         // charges are placed ahead, by the slack
	placesWay        // concurrency: charges are held until they are released
)

// What a meter may keep from requests.
const (
	keepsNothing = iota
	keepsPace    // lower classes are paced
	keepsFloors  // any policy applies: see keptFrom
)

// BeginFast begins a step at time now and reports whether the step may use the fast path. If so, EndFast must end it.
func (p *Pool) BeginFast(now store.Time) bool {
	p.begin(now, true)
	if p.queue.Len() > 0 || p.firstGate != 0 || p.failures > 0 {
		return false
	}
	p.steps++
	return true
}

// EndFast ends a fast step: it enters the sums of all meters.
func (p *Pool) EndFast() {
	for k := range p.sums {
		p.enterSums(&p.sums[k])
	}
	p.sums = p.sums[:0]
	p.wake, p.stirred = 0, false
}

// sumsOf returns the sums of a meter for this step, and creates them if needed.
func (p *Pool) sumsOf(i int32, in *inst) *sums {
	if in.step == p.steps {
		return &p.sums[in.sum]
	}
	d, r := p.defOf(in), p.ring(in)
	in.Advance(d, r, p.now)
	in.step, in.sum = p.steps, int32(len(p.sums))
	p.sums = append(p.sums, sums{
		inst: i, left: in.Room(d, r), mark: p.now, mode: meter.Held, way: heldWay, late: d.Late, unit: p.history.unitOf[in.limit],
	})
	s := &p.sums[in.sum]
	switch {
	case d.Kind == meter.Concurrency:
		s.way = placesWay
	case d.Kind == meter.Bucket && in.Since > p.now: // earlier charges are not given back in full
		s.way, s.left = longWay, -1
	case d.Guard == meter.Off && !d.Late:
		s.way, s.mode = offWay, meter.Bound
	case d.Guard == meter.Auto && !d.Late && p.header.slowerThan(d, r):
		s.way, s.mode, s.mark = aheadWay, meter.Placed, p.now+meter.SlackOf(d, r)
	}
	if p.policed&(1<<in.limit) != 0 {
		s.keeps = keepsFloors
		if d.Kind == meter.Rolling && !p.spec.Light.All {
			s.keeps = keepsNothing
			if in.Cap > 0 && p.spec.Pace {
				s.keeps = keepsPace
			}
		}
	}
	return s
}

// enterSums applies sums to their meter and clears them.
func (p *Pool) enterSums(s *sums) {
	in := p.insts.At(s.inst)
	d, r := p.defOf(in), p.ring(in)
	if p.spec.Limits[in.limit].Per != 0 {
		in.refs += s.refs
	}
	s.refs = 0
	if s.paid != 0 {
		p.paces.At(in.extra).Take(p.now, s.paid, in.Cap, d.Window)
		s.paid = 0
	}
	if s.takes != 0 {
		in.seen = p.age()
		in.TakeAll(d, r, p.now, s.mark, s.takes, s.mode)
		s.takes = 0
	}
	if s.gone != 0 || s.adds != 0 || s.backs != 0 {
		in.SettleAll(d, r, p.now, s.gone, s.adds, s.backs)
		s.gone, s.adds, s.backs = 0, 0, 0
	}
}

// choose finds the sums of the meters that a request needs. Limits whose meter does not exist yet get -1.
func (p *Pool) choose(agent, user, model, tool, key int32) {
	p.chosenAt, p.chosenFor = p.steps, names{agent, user, model, tool, key}
	for limit := range p.spec.Limits {
		i := p.single[limit]
		if per := p.spec.Limits[limit].Per; per != 0 {
			if name := p.chosenFor.sole(per); name != 0 {
				i = p.ownOf(limit, name)
			} else {
				i = p.findInst(limit, scoped(&p.chosenFor, per))
			}
		}
		p.chosen[limit] = -1
		if i != 0 {
			in := p.insts.At(i)
			p.sumsOf(i, in)
			p.chosen[limit] = in.sum
		}
	}
}

// paced reports whether the pace may hold back requests of a lower class that take amount together.
func (p *Pool) paced(s *sums, in *inst, d *meter.Def, amount int64) bool {
	if !p.alive(0) {
		return false
	}
	pace := p.paces.At(in.extra)
	if s.paid != 0 {
		pace.Take(p.now, s.paid, in.Cap, d.Window)
		s.paid = 0
	}
	return p.rival != 0 || !pace.AllowsAll(p.now, amount, in.Cap, d.Window)
}

// keepsFrom reports whether a policy may hold back requests of a class that take amount together. It may err towards
// true; then keptFrom decides.
func (p *Pool) keepsFrom(s *sums, amount int64, class uint8) bool {
	in := p.insts.At(s.inst)
	d := p.defOf(in)
	if s.keeps == keepsPace {
		return class > 0 && p.paced(s, in, d, amount)
	}
	if in.Cap == 0 {
		return false
	}
	if in.IsStock(d) {
		size := in.Open(d, p.ring(in))
		return size-(s.left-amount) > policy.Part(size, p.safeOf(in, class)) || !p.stockOf(in).breaker.Idle()
	}
	if d.Kind == meter.Rolling && class > 0 && p.spec.Pace && p.paced(s, in, d, amount) {
		return true
	}
	return p.spec.Light.Green > 0 && p.binds(in, d) && s.left-amount < policy.Part(in.Open(d, p.ring(in)), p.threshold(class))
}

// FastDone answers a ticket, closes it, or both. It returns false if the full functions have to do it.
func (p *Pool) FastDone(o *Done) bool {
	t, tk := p.find(o.ID)
	if t == 0 || tk.state != stateHeld || tk.lost || tk.counted || tk.once {
		return false
	}
	if o.Close && (p.anyStrict && !tk.answered && !o.Answer || o.Settles && int(tk.n) < len(p.spec.Limits) && p.unstated(tk, o)) {
		return false
	}
	answers := o.Answer && !tk.answered
	if answers {
		tk.answered = true
		p.header.add(p.now - tk.granted)
		p.countAccepted(tk.who.model, 1)
	}
	if !o.Close {
		if answers {
			for k := range tk.n {
				c := &tk.charges[k]
				in := p.insts.At(c.inst)
				if s := p.sumsOf(c.inst, in); !s.late {
					p.bindFast(in, s, c)
				}
			}
		}
		return true
	}
	var pd *period
	if o.Settles {
		pd = p.noted(tk)
	}
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		s := p.sumsOf(c.inst, in)
		s.refs--
		actual := c.Amount
		if o.Settles && o.Amounts[c.limit] >= 0 && o.Amounts[c.limit] <= store.MaxAmount {
			actual = o.Amounts[c.limit]
		}
		if s.way == heldWay && c.Mode == meter.Held && actual <= c.Amount {
			less := c.Amount - actual
			s.gone += c.Amount
			s.left += less
			if tk.answered && !s.late { // the whole charge is bound, then the unused part given back
				s.adds += c.Amount
				s.backs += less
			} else {
				s.adds += actual
			}
			if less != 0 {
				if s.unit >= 0 && pd != nil {
					pd.units[s.unit] = max(pd.units[s.unit]-less, 0)
				}
				if s.keeps != keepsNothing {
					p.keptLess(s, in, tk.class, tk.granted, less)
				}
			}
		} else {
			p.closeFast(tk, in, s, c, actual, pd)
		}
	}
	p.endFast(t, tk)
	return true
}

// unstated reports whether a close states use of a limit that its request did not ask for.
func (p *Pool) unstated(tk *ticket, o *Done) bool {
	n := 0
	for limit := range p.spec.Limits {
		if o.Amounts[limit] > 0 {
			n++
		}
	}
	for k := range tk.n {
		if o.Amounts[tk.charges[k].limit] > 0 {
			n--
		}
	}
	return n > 0
}

// bindFast binds a charge: its request has arrived by now.
func (p *Pool) bindFast(in *inst, s *sums, c *charge) {
	switch {
	case c.Mode == meter.Held && s.way == heldWay:
		s.gone += c.Amount
		s.adds += c.Amount
		c.Mode, c.Mark = meter.Bound, p.now
	case c.Mode != meter.Bound && s.way != placesWay:
		p.enterSums(s)
		d, r := p.defOf(in), p.ring(in)
		in.Bind(d, r, p.now, &c.Charge)
		s.leaves(in.Room(d, r))
	}
}

// leaves updates the room of a meter.
func (s *sums) leaves(room int64) {
	if s.way != longWay {
		s.left = room
	}
}

// closeFast settles a charge to the amount used, and ends it.
func (p *Pool) closeFast(tk *ticket, in *inst, s *sums, c *charge, actual int64, pd *period) {
	if s.way == placesWay {
		if c.Mode == meter.Held {
			s.gone += c.Amount
			s.left += c.Amount
		}
		return
	}
	if c.Mode == meter.Bound && actual == c.Amount {
		return
	}
	more := p.settleFast(in, s, &c.Charge, actual, tk.answered)
	if more == 0 {
		return
	}
	if s.unit >= 0 && pd != nil {
		pd.units[s.unit] = max(pd.units[s.unit]+more, 0)
	}
	if s.keeps != keepsNothing {
		p.keptLess(s, in, tk.class, tk.granted, -more)
	}
}

// settleFast settles and binds a charge that does not fit into sums. It returns how much more than the charge was used.
func (p *Pool) settleFast(in *inst, s *sums, c *meter.Charge, actual int64, answered bool) int64 {
	p.enterSums(s)
	d, r := p.defOf(in), p.ring(in)
	if in.Cap > 0 {
		actual = min(actual, mostUsed*in.Cap)
	}
	more := actual - c.Amount
	if answered && !s.late {
		in.Bind(d, r, p.now, c)
	}
	in.Settle(d, r, p.now, c, actual)
	in.Bind(d, r, p.now, c)
	s.leaves(in.Room(d, r))
	return more
}

// keptLess corrects what policies have counted for a class by an amount that was not used after all. It is negative if
// more was used.
func (p *Pool) keptLess(s *sums, in *inst, class uint8, granted, amount int64) {
	switch {
	case s.keeps == keepsFloors:
		p.tookLess(class, granted, in, amount)
	case class > 0:
		s.paid -= amount
	}
}

// endFast removes a ticket that never waited. Its meters have been updated.
func (p *Pool) endFast(t int32, tk *ticket) {
	p.wheel.remove(p, tk)
	p.names.Drop(tk.who.agent)
	if tk.who.model != 0 {
		p.names.Drop(tk.who.model)
		tk.who.model = 0
	}
	if tk.who.user|tk.who.tool|tk.who.key != 0 {
		p.names.Drop(tk.who.user)
		p.names.Drop(tk.who.tool)
		p.names.Drop(tk.who.key)
		tk.who.user, tk.who.tool, tk.who.key = 0, 0, 0
	}
	p.strikeOut(t, tk.id)
	s := p.sessions.At(tk.session)
	s.open--
	if tk.tie == uint8(store.TieGone) {
		s.watched--
	}
	s.last = p.now
	p.inFlight--
	tk.state, tk.n, tk.granted, tk.ends, tk.note = 0, 0, 0, 0, 0
	tk.answered, tk.retry, tk.emergent = false, false, false
	p.tickets.Recycle(t)
}
