package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// The fast path. Most requests meet a calm pool: nothing waits, no pause or ramp is in force, and the provider is there. Then acquire, an
// answer that says nothing but ok, and close come to little: the fast path does them with a fraction of the steps, and
// with the same outcome. All operations of a step have the same time, so what they charge is summed up by meter and
// entered once, at the end of the step.
//
// A fast function that cannot do all of an operation changes nothing that its long form would not change as well, and
// says so. Then that operation and the rest of the step go the long way.

// Done is an answer that says nothing but ok, a close, or both in this order, of a ticket.
type Done struct {
	ID            store.ID
	Answer, Close bool
	Amounts       [store.MaxLimits]int64 // of the close, as in store.Op
}

// sums are what the operations of a step have done to a meter and what is still to be entered.
type sums struct {
	inst  int32
	left  int64 // room
	mark  int64 // of charges that are taken now
	mode  meter.Mode
	way   uint8
	keeps uint8 // whether something may be kept of it
	late  bool  // as meter.Def.Late
	unit  int8  // of the history in which it is counted; -1: none
	refs  int32 // tickets that have come to stand on it
	takes int64 // taken
	gone  int64 // no longer held
	adds  int64 // have arrived
	backs int64 // of what has arrived in this step, not used

	paid int64 // of a meter that is paced: taken by lower classes, less what was given back
}

// The ways in which a meter is charged.
const (
	longWay   = iota // its long form is called each time
	heldWay          // charges are held until they are bound
	offWay           // charges count at once
	aheadWay         // charges are placed ahead
	placesWay        // places are held until they are released
)

// What a meter may keep from requests.
const (
	keepsNothing = iota
	keepsPace    // lower classes are paced
	keepsFloors  // anything: the long form says what
)

// BeginFast begins a step, and reports whether the fast path may be taken in it.
func (p *Pool) BeginFast(now store.Time) bool {
	p.begin(now, true)
	if p.queue.Len() > 0 || p.firstGate != 0 || p.failures > 0 {
		return false
	}
	p.steps++
	return true
}

// EndFast enters what the step has charged.
func (p *Pool) EndFast() {
	for k := range p.sums {
		p.enterSums(&p.sums[k])
	}
	p.sums = p.sums[:0]
	p.wake, p.stirred = 0, false
}

// sumsOf returns the sums of a meter in this step.
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
	case d.Kind == meter.Bucket && in.Since > p.now: // what was charged before is not given back in full
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

// enterSums does to a meter what its sums say.
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

// choose finds the sums of the meters that a request takes from, as far as those are there.
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

// paced reports whether requests of a lower class may have to wait because their class is spread out.
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

// keepsFrom reports whether something may be kept from requests of a class that take amount together. The long way says
// whether it is.
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

// FastDone answers or closes a ticket, or both, and reports whether it did.
func (p *Pool) FastDone(o *Done) bool {
	t, tk := p.find(o.ID)
	if t == 0 || tk.state != stateHeld || tk.lost || tk.counted || tk.once {
		return false
	}
	if o.Close && (p.anyStrict && !tk.answered && !o.Answer || int(tk.n) < len(p.spec.Limits) && p.unstated(tk, o)) {
		return false
	}
	answers := o.Answer && !tk.answered
	if answers {
		tk.answered = true
		p.header.add(p.now - tk.granted)
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
	known := false
	for limit := range p.spec.Limits {
		if o.Amounts[limit] != 0 {
			known = true
			break
		}
	}
	var pd *period
	if known {
		pd = p.noted(tk)
	}
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		s := p.sumsOf(c.inst, in)
		s.refs--
		actual := c.Amount
		if known && o.Amounts[c.limit] >= 0 && o.Amounts[c.limit] <= store.MaxAmount {
			actual = o.Amounts[c.limit]
		}
		if s.way == heldWay && c.Mode == meter.Held && actual <= c.Amount {
			less := c.Amount - actual
			s.gone += c.Amount
			s.left += less
			if tk.answered && !s.late { // it was bound first, and what was not used given back
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

// unstated reports whether a close states use of a limit of which its request asked for nothing.
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

// bindFast says of a charge that its request had arrived by now.
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

// leaves takes in that a meter has room.
func (s *sums) leaves(room int64) {
	if s.way != longWay {
		s.left = room
	}
}

// closeFast settles a charge to what was used, and ends it.
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

// settleFast settles a charge that the sums cannot take, and binds it. It returns how much more was used.
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

// keptLess corrects what was noted of who took what of a meter, by an amount that was not used after all.
func (p *Pool) keptLess(s *sums, in *inst, class uint8, granted, amount int64) {
	switch {
	case s.keeps == keepsFloors:
		p.tookLess(class, granted, in, amount)
	case class > 0:
		s.paid -= amount
	}
}

// endFast forgets a ticket. Its meters have been seen to, and it has never waited.
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
