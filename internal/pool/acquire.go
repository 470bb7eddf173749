package pool

import (
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/store"
)

// acquire grants op i at once if it can go and no other request waits. Otherwise it queues it.
func (p *Pool) acquire(i int) {
	op := &p.batch[i]
	if !p.valid(op) {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	if !p.present(op) {
		return // seen before: its result is set
	}
	t, tk := p.newTicket(op)
	if limit := p.want(tk, op.Amounts, op.Force); limit >= 0 {
		p.end(t, tk)
		p.refuseTooLarge(op, limit)
		return
	}
	if op.Force {
		p.force(t, tk)
		p.hold(t, tk, op)
		return
	}
	if p.queue.Len() == 0 && (view{Pool: p}).judge(tk).goes {
		p.grant(t, tk, true)
		p.hold(t, tk, op)
		return
	}
	// It may overtake waiting requests, so conclude checks whether the queue is full.
	tk.surplus = p.queue.Len() >= p.spec.MaxWaiting
	p.enqueue(t, i, false)
}

// enqueue queues a ticket for op i. With front, the ticket goes before the other requests of its agent.
func (p *Pool) enqueue(t int32, i int, front bool) {
	tk := p.tickets.At(t)
	tk.state, tk.op = stateWaiting, int32(i)+1
	for k := range tk.n {
		p.insts.At(tk.charges[k].inst).queued += tk.charges[k].Amount
	}
	costs := p.costs(tk)
	tk.waiter = p.queue.Push(p.position(tk), t, &costs, front)
	p.sessions.At(tk.session).waiting++
	p.scheduleWait(t, tk)
	p.stirred = p.stirred || p.queue.IsFirst(tk.waiter) // a request behind another of its agent cannot go yet
	p.batch[i].Result.State, p.asked = store.Waiting, true
}

// leaveQueue takes a waiting ticket out of the queue without a grant.
func (p *Pool) leaveQueue(tk *ticket) {
	p.queue.Remove(tk.waiter)
	p.unqueue(tk)
	for k := range tk.n {
		p.changed(&tk.charges[k])
	}
}

// unqueue updates the counts for a ticket that has left the queue.
func (p *Pool) unqueue(tk *ticket) {
	tk.waiter = 0
	p.sessions.At(tk.session).waiting--
	for k := range tk.n {
		p.insts.At(tk.charges[k].inst).queued -= tk.charges[k].Amount
	}
}

// valid reports whether the fields of an acquire are in range.
func (p *Pool) valid(op *store.Op) bool {
	if max(len(op.Agent), len(op.User), len(op.Model), len(op.Tool), len(op.Key)) > store.MaxName {
		return false
	}
	for k := range op.Amounts {
		if n := op.Amounts[k].N; n < 0 || n > store.MaxAmount {
			return false
		}
	}
	return len(op.Amounts) <= store.MaxAmounts && op.Agent != "" && op.ID.N>>63 == 0 && int(op.Class) < len(p.spec.Classes) && (!op.Emergency || op.Class == 0) &&
		op.TTL > 0 && op.TTL <= store.MaxTTL && op.Alive >= 0 && op.Alive <= store.MaxTTL && op.Wait <= store.MaxWindow && op.Tie <= store.TieGone
}

// askedOf returns the amount of a limit that an acquire states, and 0 for a retired limit.
func (p *Pool) askedOf(amounts []store.Amount, limit int) int64 {
	if p.isRetired(limit) {
		return 0
	}
	n, _ := store.AmountOf(amounts, &p.spec.Limits[limit])
	return n
}

// want sets the charges that a ticket needs. It returns the first limit that is too small to ever hold the request, or
// -1. With force no limit is too small.
func (p *Pool) want(tk *ticket, amounts []store.Amount, force bool) (limit int) {
	for limit := range p.spec.Limits {
		amount := p.askedOf(amounts, limit)
		if amount == 0 {
			continue
		}
		c := &tk.charges[tk.n]
		c.limit = uint8(limit)
		c.Amount, c.Mark, c.Mode = amount, 0, 0
		var in *inst
		if u := &p.unscoped[limit]; u.at != nil {
			c.inst, in = u.inst, u.at
		} else {
			c.inst = p.instOf(limit, &tk.who)
			in = p.insts.At(c.inst)
		}
		if in.Cap > 0 && amount > in.Cap && !force {
			return limit
		}
		tk.n++
		if in != p.unscoped[limit].at {
			in.refs++
		}
	}
	return -1
}

// costs returns what a ticket takes of each shared meter, as a fraction of its capacity in order.Unit.
func (p *Pool) costs(tk *ticket) (c order.Costs) {
	for k := range tk.n {
		ch := &tk.charges[k]
		if p.shared&(1<<ch.limit) == 0 {
			continue
		}
		c.On[c.N], c.Cost[c.N] = ch.inst, 1
		if in := p.insts.At(ch.inst); in.Cap > 0 {
			c.Cost[c.N] = (min(ch.Amount, 4*in.Cap)*order.Unit + in.Cap - 1) / in.Cap
		}
		c.N++
	}
	if c.N == 0 { // requests that need nothing shared all cost the same
		c.Cost[0], c.N = 1, 1
	}
	return c
}

// force grants a ticket whatever the limits say. If it passes a pause, it is not the pause's probe.
func (p *Pool) force(t int32, tk *ticket) {
	open := p.pausesAllow(tk.who.model, tk.who.key).OK
	for k := range tk.n {
		p.touchCharge(&tk.charges[k])
	}
	p.grant(t, tk, open)
}

// grant charges a ticket to all its limits, whose meters are at the time of this step. counts says whether pauses count
// the grant.
func (p *Pool) grant(t int32, tk *ticket, counts bool) {
	tk.granted = p.now
	age := p.age()
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.meterOf(c)
		in.seen = age
		c.Charge = in.Take(d, r, p.now, c.Amount, p.header.slowerThan(d, r))
		if p.policed&(1<<c.limit) != 0 {
			p.took(tk.class, 1, c.Amount, in, d)
		}
	}
	if counts && p.firstGate != 0 {
		p.pausesSent(t, tk)
	}
	p.inFlight++
	p.sent(tk)
}

// hold gives a granted ticket to the caller of op. If the acquire said that no report will follow, hold also spends it.
func (p *Pool) hold(t int32, tk *ticket, op *store.Op) {
	if tk.once && tk.granted < p.now {
		p.regrant(tk)
	}
	tk.state = stateHeld
	p.live(t, tk)
	tk.report(op)
	if tk.once { // no answer or close will follow
		p.pausesLost(t, tk, false)
		p.spend(t, tk)
		p.stirred = true
	}
}

// regrant moves a grant to now, when its caller collects it. A spent ticket cannot be renewed, so the time that its
// request has to arrive begins when the caller can send it.
func (p *Pool) regrant(tk *ticket) {
	for k := range tk.n {
		c := &tk.charges[k]
		amount := c.Amount
		in, d, r := p.touchCharge(c)
		in.Refund(d, r, p.now, &c.Charge)
		c.Charge = in.Take(d, r, p.now, amount, p.header.slowerThan(d, r))
	}
	tk.granted = p.now
}

// live schedules a held ticket for the end of its time to live. A ticket tied to its session's heartbeat is checked
// earlier, after sessionLife.
func (p *Pool) live(t int32, tk *ticket) {
	tk.ends = p.now + tk.ttl
	due := tk.ends
	if tk.tie == uint8(store.TieBeat) {
		due = min(due, p.now+sessionLife)
	}
	p.schedule(t, tk, due)
}

// report writes a granted ticket into the result of op.
func (tk *ticket) report(op *store.Op) {
	r := &op.Result
	r.State, r.ID = store.Granted, tk.id
	r.GrantedAt = store.Time(tk.granted)
	r.Waited = store.Time(tk.granted).Sub(store.Time(tk.since))
}

// present numbers an acquire that has no id yet. It reports whether the id is new. For a repeated id it sets the result
// to the state of the first request.
func (p *Pool) present(op *store.Op) bool {
	s := p.sessionOf(op.ID.Session)
	if op.ID.N == 0 {
		s.high = max(s.high, p.forgotten) + 1
		op.ID.N = s.high
		op.Result.ID = op.ID
		return true
	}
	if op.ID.N > s.high {
		s.high = op.ID.N
		return true
	}
	p.poll(op)
	return false
}
