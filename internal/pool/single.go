package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// The short way. Most steps are an acquire that can go at once, an answer of VerdictOK, a close, or these of one caller
// together, while no request waits and no pause is in force. The functions in this file do these with the same changes to
// all records as Apply, in about half the instructions. They look first and change nothing before they know that the
// request can go, except that they advance meters to the current time.

// Step does the same as Apply, and takes the short way as far as possible.
func (p *Pool) Step(now store.Time, ops []store.Op) {
	p.step(now, ops)
	if p.hashing {
		p.hashStep(ops)
	}
}

func (p *Pool) step(now store.Time, ops []store.Op) {
	p.begin(now, len(ops) > 0)
	done := 0
	if areUsual(ops) {
		for done < len(ops) && p.isCalm() && p.applyOne(&ops[done]) {
			done++
		}
	}
	if done > 0 && done == len(ops) {
		p.wake, p.stirred = 0, false
		return
	}
	p.carryOut(ops[done:])
}

// isCalm reports whether nothing waits or holds requests.
func (p *Pool) isCalm() bool { return p.queue.Len() == 0 && p.firstGate == 0 }

// areUsual reports whether no operation of a step can begin a pause, which would be told to all operations of the step.
func areUsual(ops []store.Op) bool {
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case store.OpAcquire, store.OpClose:
			if op.Spent {
				return false
			}
		case store.OpAnswer:
			if op.Verdict != store.VerdictOK || len(op.Observed) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// applyOne applies a usual operation. It returns false if the full functions have to do it.
func (p *Pool) applyOne(op *store.Op) bool {
	switch op.Kind {
	case store.OpAcquire:
		return p.acquireOne(op)
	case store.OpAnswer:
		return p.answerOne(op)
	default:
		return p.closeOne(op)
	}
}

// acquireOne grants a request. Its names, agent and meters must be known.
func (p *Pool) acquireOne(op *store.Op) bool {
	o := p.once
	if op.ID.N != 0 || op.Emergency || op.Force || int(op.Class) >= len(p.spec.Classes) {
		return false
	}
	// The bounds are those of valid. Where names are long together, valid looks at each.
	if len(op.Agent)+len(op.User)+len(op.Model)+len(op.Tool)+len(op.Key) > store.MaxName || op.TTL <= 0 || op.TTL > store.MaxTTL ||
		op.Alive < 0 || len(op.Amounts) > store.MaxAmounts || op.Alive > store.MaxTTL || op.Wait > store.MaxWindow || op.Tie > store.TieGone {
		return false
	}
	sess := o.lastSess
	if sess == 0 || p.sessions.At(sess).id != op.ID.Session {
		if sess = p.findSession(op.ID.Session); sess == 0 {
			return false
		}
	}
	s := p.sessions.At(sess)
	if p.past(s) {
		return false
	}
	who := names{agent: p.names.Find(op.Agent)}
	if who.agent == 0 {
		return false
	}
	caller := p.names.Tags(who.agent)[callerTag]
	if caller == 0 {
		if caller = p.crowdCaller(); caller == 0 {
			return false
		}
	}
	rec := p.callers.recs.At(caller)
	if op.User != "" || op.Model != "" || op.Tool != "" || op.Key != "" {
		who.user, who.model, who.tool, who.key = p.names.Find(op.User), p.names.Find(op.Model), p.names.Find(op.Tool), p.names.Find(op.Key)
		if who.user == 0 && op.User != "" || who.model == 0 && op.Model != "" || who.tool == 0 && op.Tool != "" || who.key == 0 && op.Key != "" {
			return false
		}
	}
	note := p.latestPeriod(rec, who.model)
	t := p.tickets.New()
	tk := p.tickets.At(t)
	if !p.wantOne(op, tk, &who) {
		p.tickets.Recycle(t)
		return false
	}
	now := o.now
	age := p.age()
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.meterOf(c)
		in.seen = age
		c.Charge = in.Take(d, r, now, c.Amount, o.header.slowerThan(d, r))
		if p.policed&(1<<c.limit) != 0 {
			p.took(op.Class, 1, c.Amount, in, d)
		}
		if p.unscoped[c.limit].at == nil {
			in.refs++
		}
	}
	retried := uint32(0)
	if op.Retry {
		retried = 1
	}
	// As heard and sent.
	rec.class, rec.asked = op.Class, age
	if p.lease > 0 {
		o.aliveTill[op.Class] = max(o.aliveTill[op.Class], now+p.lease)
	}
	all, second := &p.callers.total, p.history.second
	rec.count(now, second, 1, retried)
	all.count(now, second, 1, retried)
	if note == 0 {
		note = p.periodOf(rec, who.model, p.history.minute)
	}
	pd := p.history.periods.At(note)
	pd.sent++
	pd.retried += retried
	pd.peak, pd.peakAll = max(pd.peak, rec.inSecond), max(pd.peakAll, all.inSecond)
	for k := range tk.n {
		c := &tk.charges[k]
		if u := p.history.unitOf[c.limit]; u >= 0 {
			pd.units[u] += c.Amount
		}
	}
	// As present, newTicket and hold.
	o.lastSess, s.last = sess, now
	s.high = max(s.high, o.forgotten) + 1
	s.open++
	if op.Tie == store.TieGone {
		s.watched++
	}
	op.ID.N = s.high
	p.names.Keep(who.agent)
	if who.user|who.model|who.tool|who.key != 0 {
		p.names.Keep(who.user)
		p.names.Keep(who.model)
		p.names.Keep(who.tool)
		p.names.Keep(who.key)
	}
	tk.id, tk.since, tk.granted, tk.deadline, tk.who, tk.caller, tk.session = op.ID, now, now, meter.Never, who, caller, sess
	tk.state, tk.class, tk.retry, tk.tie, tk.note = stateHeld, op.Class, op.Retry, uint8(op.Tie), note
	if op.Wait >= 0 {
		tk.deadline = now + op.Wait.Microseconds()
	}
	tk.ttl, tk.alive = op.TTL.Microseconds(), op.Alive.Microseconds()
	p.enter(t, tk.id)
	p.live(t, tk)
	o.inFlight++
	op.Result = store.Result{ID: op.ID, Now: store.Time(now), GrantedAt: store.Time(now), State: store.Granted}
	return true
}

// latestPeriod returns the latest period of an agent if it counts requests for a model in this minute, and otherwise 0.
func (p *Pool) latestPeriod(rec *caller, model int32) int32 {
	i := int32(rec.note)
	if i != 0 {
		if pd := p.history.periods.At(i); pd.name == rec.name && pd.minute == p.history.minute && pd.model == model {
			return i
		}
	}
	return 0
}

// wantOne is want for a request of which every meter exists. It returns false if the request does not fit or a policy may
// hold it back.
func (p *Pool) wantOne(op *store.Op, tk *ticket, who *names) bool {
	n := 0
	for limit := range p.spec.Limits {
		amount := p.askedOf(op.Amounts, limit)
		if amount == 0 {
			continue
		}
		u := &p.unscoped[limit]
		i, in, r := u.inst, u.at, u.ring
		if in == nil {
			if i = p.findInst(limit, scoped(who, p.spec.Limits[limit].Per)); i == 0 {
				return false
			}
			in = p.insts.At(i)
			r = p.ring(in)
		}
		d := p.defOf(in)
		in.Advance(d, r, p.now)
		room := in.Room(d, r)
		if room < amount || amount < 0 || amount > store.MaxAmount || p.policed&(1<<limit) != 0 && p.mayKeep(in, d, r, room, amount, op.Class) {
			return false
		}
		c := &tk.charges[n]
		c.Amount, c.inst, c.limit = amount, i, uint8(limit)
		n++
	}
	tk.n = uint8(n)
	return true
}

// mayKeep reports whether a policy may hold a request back, when none waits. It may err towards true; then keptFrom
// decides.
func (p *Pool) mayKeep(in *inst, d *meter.Def, r *meter.Ring, room, amount int64, class uint8) bool {
	if in.Cap == 0 {
		return false
	}
	if in.IsStock(d) {
		size := in.Open(d, r)
		return size-(room-amount) > policy.Part(size, p.safeOf(in, class)) || !p.stockOf(in).breaker.Idle()
	}
	if d.Kind == meter.Rolling && class > 0 && p.spec.Pace && p.alive(0) &&
		(p.rival != 0 || p.paces.At(in.extra).Allow(p.now, amount, in.Cap, d.Window) > p.now) {
		return true
	}
	return p.binds(in, d) && room-amount < policy.Part(in.Open(d, r), p.threshold(class))
}

// answerOne records a response that says nothing but that the request has arrived.
func (p *Pool) answerOne(op *store.Op) bool {
	t, tk := p.find(op.ID)
	if t == 0 || tk.state != stateHeld {
		return false
	}
	now := p.now
	op.Result = store.Result{ID: op.ID, Now: store.Time(now), State: store.Granted}
	if tk.answered {
		return true
	}
	tk.answered = true
	began := p.happened(op, tk)
	p.header.add(began - tk.granted)
	for k := range tk.n {
		c := &tk.charges[k]
		if !p.defs[c.limit].Late {
			in, d, r := p.touchCharge(c)
			in.BindLate(d, r, now, began, &c.Charge)
		}
	}
	p.endFailuresOf(tk.who.key)
	p.countAnswer(tk.who.model, op)
	return true
}

// closeOne ends a ticket and settles its charges.
func (p *Pool) closeOne(op *store.Op) bool {
	t, tk := p.find(op.ID)
	if t == 0 || tk.state != stateHeld || p.anyStrict && !tk.answered {
		return false
	}
	o := p.once
	now := o.now
	p.settle(tk, op.Amounts)
	ended := p.happened(op, tk)
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.meterOf(c)
		in.Advance(d, r, now)
		in.BindLate(d, r, now, ended, &c.Charge)
		in.Release(d, &c.Charge)
		if p.unscoped[c.limit].at == nil {
			in.refs--
		}
	}
	p.remember(tk)
	// As end.
	o.inFlight--
	o.wheel.remove(p, tk)
	p.dropNames(&tk.who)
	p.strikeOut(t, op.ID)
	s := p.sessions.At(tk.session)
	s.open--
	if tk.tie == uint8(store.TieGone) {
		s.watched--
	}
	s.last = now
	tk.head = head{}
	p.tickets.Recycle(t)
	op.Result = store.Result{ID: op.ID, Now: store.Time(now), State: store.Ended}
	return true
}
