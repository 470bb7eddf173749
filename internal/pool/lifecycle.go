package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/store"
)

// poll reports a ticket's state and collects a grant.
func (p *Pool) poll(op *store.Op) {
	if op.ID.N == 0 && op.Alive > 0 {
		p.keep(op)
		return
	}
	t, tk := p.lookup(op)
	if t == 0 {
		return
	}
	switch tk.state {
	case stateWaiting:
		op.Result.State, p.asked = store.Waiting, true
		if tk.alive > 0 {
			p.scheduleWait(t, tk)
		}
	case stateReady:
		p.hold(t, tk, op)
	case stateHeld:
		if op.TTL > 0 && op.TTL <= store.MaxTTL {
			tk.ttl = op.TTL.Microseconds()
			if !tk.lost {
				p.live(t, tk)
			}
		}
		tk.report(op)
	case stateSpent:
		op.Result.State = store.Ended
	}
}

// Stirred reports whether something has happened that may let a waiting request go. The next step serves the queue then.
func (p *Pool) Stirred() bool { return p.stirred }

// Collect applies a single poll without serving the queue.
func (p *Pool) Collect(now store.Time, op *store.Op) {
	p.now = max(p.now, int64(now))
	op.Result = store.Result{ID: op.ID, Now: store.Time(p.now)}
	if p.nextHush != 0 && p.now >= p.nextHush {
		p.hush()
	}
	p.poll(op)
}

// lookup finds the ticket of op. If there is none, it returns 0 and sets the result to Ended or Unknown.
func (p *Pool) lookup(op *store.Op) (int32, *ticket) {
	t, tk := p.find(op.ID)
	if t == 0 {
		op.Result.State = store.Unknown
		if i := p.findSession(op.ID.Session); i != 0 && op.ID.N != 0 {
			if s := p.sessions.At(i); op.ID.N <= s.high && !p.past(s) {
				op.Result.State = store.Ended
			}
		}
	}
	return t, tk
}

// cancel ends a ticket whose request was not sent, and refunds it. A ticket with an answer was sent: it is closed instead.
func (p *Pool) cancel(op *store.Op) {
	t, tk := p.lookup(op)
	if t == 0 {
		return
	}
	op.Result.State = store.Ended
	switch tk.state {
	case stateWaiting:
		p.leaveQueue(tk)
		p.end(t, tk)
	case stateReady, stateHeld:
		if tk.answered {
			p.finish(t, tk, p.now)
			return
		}
		p.giveBack(tk)
		p.pausesLost(t, tk, true)
		p.end(t, tk)
	}
}

// giveBack refunds a grant in full. The ticket keeps the amounts of its charges, so that it can be granted again.
func (p *Pool) giveBack(tk *ticket) {
	for k := range tk.n {
		c := &tk.charges[k]
		amount := c.Amount
		in, d, r := p.touchCharge(c)
		in.Refund(d, r, p.now, &c.Charge)
		c.Amount = amount
		if p.policed&(1<<c.limit) != 0 {
			p.tookLess(tk.class, tk.granted, in, amount)
		}
		p.changed(c)
	}
	p.inFlight--
	p.unsent(tk)
}

// renew gives a grant back and requests it again in one step. The ticket keeps its place: it is granted at once if it
// fits, and otherwise goes to the front of its agent's requests.
func (p *Pool) renew(i int) {
	op := &p.batch[i]
	t, tk := p.lookup(op)
	if t == 0 {
		return
	}
	if tk.state == stateWaiting || tk.state == stateSpent || tk.answered {
		p.poll(op)
		return
	}
	p.giveBack(tk)
	p.pausesLost(t, tk, true)
	tk.counted, tk.lost = false, false
	tk.since += p.now - tk.granted // the time as a held ticket is not waiting time
	if op.TTL > 0 && op.TTL <= store.MaxTTL {
		tk.ttl = op.TTL.Microseconds()
	}
	if (view{Pool: p}).judge(tk).goes {
		p.grant(t, tk, true)
		p.hold(t, tk, op)
		return
	}
	p.wheel.remove(p, tk)
	tk.deadline = meter.Never
	if op.Wait >= 0 {
		tk.deadline = p.now + op.Wait.Microseconds()
	}
	p.enqueue(t, i, true)
}

// answer records the response to a ticket's request. The request has arrived by now, so its charges are bound. The first
// answer of a ticket counts.
func (p *Pool) answer(op *store.Op) {
	t, tk := p.lookup(op)
	if t == 0 {
		return
	}
	if tk.state == stateWaiting || tk.state == stateSpent {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	op.Result.State = store.Granted
	if tk.answered {
		return
	}
	tk.answered = true
	began := p.happened(op, tk)
	p.header.add(began - tk.granted)
	for k := range tk.n {
		c := &tk.charges[k]
		if !p.defs[c.limit].Late {
			in, d, r := p.touchCharge(c)
			in.BindLate(d, r, p.now, began, &c.Charge)
			p.changed(c)
		}
	}
	p.countOutcome(tk, op.Verdict)
	p.served(op, tk.who.key)
	p.countAnswer(tk.who.model, op)
	if op.Verdict == store.VerdictOK && len(op.Observed) == 0 && p.firstGate == 0 {
		return // it says nothing but that the request has arrived
	}
	p.learn(op, tk.who, tk.granted, tk)
	if !op.Force && p.pausesAnswered(op, tk.who, tk.granted, t) {
		p.unexplained(tk, op.Scope&store.Shared)
	}
}

// happened returns when what is reported of a ticket happened.
func (p *Pool) happened(op *store.Op, tk *ticket) int64 {
	age := min(max(op.Age, 0), store.MaxAge).Microseconds()
	return max(p.now-age, min(tk.granted, p.now))
}

// close ends a ticket and settles its charges to the amounts used.
func (p *Pool) close(op *store.Op) {
	t, tk := p.lookup(op)
	if t == 0 {
		return
	}
	if tk.state == stateWaiting {
		p.leaveQueue(tk)
		p.end(t, tk)
		op.Result.State = store.Ended
		return
	}
	op.Result.State = store.Ended
	if tk.state == stateSpent {
		return
	}
	if len(op.Amounts) > 0 && (tk.answered || !op.Spent) {
		p.settle(tk, op.Amounts)
	}
	if !tk.answered {
		p.pausesLost(t, tk, false)
		if op.Spent || p.anyStrict && p.strictly(tk) {
			p.spend(t, tk)
			return
		}
	}
	p.finish(t, tk, p.happened(op, tk))
}

// mostUsed bounds the use that a close can report, as a multiple of the limit's capacity. A larger report is a mistake
// of the caller, and must not block the limit for years.
const mostUsed = 8

// usedOf returns the amount of a limit that a close states. ok is false if it states none, or one that cannot be.
func (p *Pool) usedOf(used []store.Amount, limit int) (n int64, ok bool) {
	n, ok = store.AmountOf(used, &p.spec.Limits[limit])
	return n, ok && n >= 0 && n <= store.MaxAmount
}

// settle corrects charges to the amounts used. Where they are not known, the estimate stands.
func (p *Pool) settle(tk *ticket, used []store.Amount) {
	if len(used) > store.MaxAmounts {
		return
	}
	var before order.Costs
	var at order.Position
	if tk.counted {
		before, at = p.costs(tk), p.position(tk)
	}
	if int(tk.n) < len(p.spec.Limits) {
		p.chargeUnstated(tk, used)
	}
	for k := range tk.n {
		c := &tk.charges[k]
		if actual, known := p.usedOf(used, int(c.limit)); known && actual != c.Amount {
			in, d, r := p.touchCharge(c)
			if in.Cap > 0 {
				actual = min(actual, mostUsed*in.Cap)
			}
			estimate := c.Amount
			in.Settle(d, r, p.now, &c.Charge, actual)
			if c.Amount > estimate {
				p.raises()
			}
			p.settled(tk, c, c.Amount-estimate)
			if p.policed&(1<<c.limit) != 0 {
				p.tookLess(tk.class, tk.granted, in, estimate-c.Amount)
			}
		}
	}
	if tk.counted && at.Lane.Shared != 0 { // requests that asked for nothing shared all cost the same
		after := p.costs(tk)
		p.queue.Settled(at, &before, &after)
	}
}

// chargeUnstated adds a charge of zero for each limit that the request used without having asked for it. Then settle
// charges the use, because the provider has counted it.
func (p *Pool) chargeUnstated(tk *ticket, used []store.Amount) {
	var stated uint16
	for k := range tk.n {
		stated |= 1 << tk.charges[k].limit
	}
	for limit := range p.spec.Limits {
		if stated&(1<<limit) != 0 || p.isRetired(limit) || p.defs[limit].Kind == meter.Concurrency {
			continue
		}
		if n, known := p.usedOf(used, limit); !known || n == 0 {
			continue
		}
		c := &tk.charges[tk.n]
		c.inst, c.limit = p.instOf(limit, &tk.who), uint8(limit)
		c.Amount, c.Mark, c.Mode = 0, p.now, meter.Held
		in := p.insts.At(c.inst)
		in.seen = p.age()
		if p.unscoped[limit].at == nil {
			in.refs++
		}
		tk.n++
	}
}

// finish ends a granted ticket, whose request was over at ended: it binds the charges that have no bound yet, and releases
// concurrency.
func (p *Pool) finish(t int32, tk *ticket, ended int64) {
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.touchCharge(c)
		in.BindLate(d, r, p.now, ended, &c.Charge)
		in.Release(d, &c.Charge)
		p.changed(c)
	}
	p.inFlight--
	p.remember(tk)
	p.end(t, tk)
}

// changed returns the first request parked on the meter of c to its lane, because the meter has changed. It reports
// whether there is one. When that request goes or leaves, the next one follows.
func (p *Pool) changed(c *charge) bool {
	return p.shared&(1<<c.limit) == 0 && p.queue.Unpark(c.inst)
}

// strictly reports whether a ticket has charges with a strict guard that no answer has bound.
func (p *Pool) strictly(tk *ticket) bool {
	for k := range tk.n {
		if c := &tk.charges[k]; p.defs[c.limit].Guard == meter.Strict && c.Mode == meter.Held {
			return true
		}
	}
	return false
}

// spend ends a ticket whose request may be sent without any further report. Charges with a strict guard stay until the
// ticket's time to live is over.
func (p *Pool) spend(t int32, tk *ticket) {
	held := false
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.touchCharge(c)
		in.Spend(d, r, p.now, tk.granted, &c.Charge)
		in.Release(d, &c.Charge)
		p.changed(c)
		held = held || c.Mode == meter.Held
	}
	p.inFlight--
	if held {
		tk.state = stateSpent
		return
	}
	p.remember(tk)
	p.end(t, tk)
}

// expire handles a ticket whose scheduled time has come. It reschedules a ticket whose session is alive, and otherwise
// ends it.
func (p *Pool) expire(t int32) {
	tk := p.tickets.At(t)
	if tk.state == stateWaiting && tk.alive > 0 && tk.deadline > p.now {
		if kept := p.sessions.At(tk.session).kept; kept > p.now {
			p.schedule(t, tk, min(kept, tk.deadline))
			return
		}
	}
	if tk.state == stateHeld && tk.ends > p.now {
		if tk.lost {
			p.stirred = true
			p.dropLost(t, tk)
			return
		}
		if tk.tie == uint8(store.TieBeat) {
			if until := p.aliveUntil(tk); until > p.now {
				p.schedule(t, tk, min(until, tk.ends))
				return
			}
			p.orphan(t, tk, false)
			return
		}
	}
	p.stirred = true
	switch tk.state {
	case stateWaiting:
		p.decided = append(p.decided, tk.id)
		p.leaveQueue(tk)
		p.end(t, tk)
	case stateReady:
		p.decided = append(p.decided, tk.id)
		p.giveBack(tk)
		p.pausesLost(t, tk, false)
		p.end(t, tk)
	case stateHeld:
		if !tk.answered && !tk.lost {
			p.pausesLost(t, tk, false)
		}
		p.lapse(tk)
		p.finish(t, tk, p.now)
	case stateSpent:
		p.inFlight++ // finish subtracts it again
		p.lapse(tk)
		p.finish(t, tk, p.now)
	}
}

// lapse binds the charges of an expired ticket at the time of its expiry. The step may run much later, because an unused
// pool has no steps.
func (p *Pool) lapse(tk *ticket) {
	for k := range tk.n {
		c := &tk.charges[k]
		in := p.insts.At(c.inst)
		in.Lapse(p.defOf(in), p.ring(in), min(tk.due, p.now), &c.Charge)
	}
}
