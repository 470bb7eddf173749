package outage

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Decide decides operations of a session without the store. It returns false if it cannot: refuse the caller then. Answers,
// closes and cancels are kept for the store in any case. Call [Process.Serve] afterwards.
func (p *Process) Decide(s *Session, ops []store.Op, now store.Time) bool {
	mode := p.Mode(s)
	if mode == store.FailClosed || !p.possible(mode, ops) {
		p.deferAll(ops, now)
		return false
	}
	for i := range ops {
		op := &ops[i]
		op.Result = store.Result{ID: op.ID, Now: now}
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
			p.report(op, now)
			if op.Result.State = store.Ended; op.Kind == store.OpAnswer {
				op.Result.State = store.Granted
			}
		default:
			if mode == store.FailOpen {
				p.letGo(s, op, now)
			} else {
				p.decideShare(s, op, now)
			}
		}
		if op.Kind == store.OpAcquire {
			op.ID = op.Result.ID
		}
	}
	return true
}

// possible reports whether all operations can be decided without the store.
func (p *Process) possible(mode store.OnFailure, ops []store.Op) bool {
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case store.OpAcquire, store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			if mode == store.FailShare && Of(op.ID.Session) != p.number {
				return false // another process's ticket
			}
		case store.OpRenew:
			if mode == store.FailShare && p.lost.held[op.ID] == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// deferAll keeps answers, closes and cancels for the store: a request that is over stays over, although its caller gets
// an error.
func (p *Process) deferAll(ops []store.Op, now store.Time) {
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
			p.report(op, now)
		case store.OpPoll:
			if w := p.stored[op.ID]; w != nil {
				w.kept = false // the caller gets an error and may not come back
			}
		}
	}
}

// report records an answer, a close or a cancel of a ticket.
func (p *Process) report(op *store.Op, now store.Time) {
	o := p.lost
	answer := op.Kind == store.OpAnswer
	if p.stored[op.ID] != nil || o.early[op.ID] != nil && !o.early[op.ID].collected { // no request went out for it
		if !answer {
			p.unstore(op.ID)
			p.withdraw(op.ID)
		}
		return
	}
	id := o.here(op.ID)
	there := op.Clone()
	there.ID = id
	there.Result = store.Result{ID: id, State: store.Granted, Now: now}
	if i := slices.IndexFunc(o.queue, func(w *localWaiter) bool { return w.tk.id == id }); i >= 0 {
		if !answer {
			o.queue = slices.Delete(o.queue, i, i+1)
			o.deferEnd(id, &there, now)
		}
		return
	}
	tk := o.held[id]
	here := tk != nil
	if !here {
		tk = p.granted.open[id] // perhaps granted in an earlier outage
		if tk == nil && p.isLocal(id) {
			return // it no longer counts
		}
		o.put(now, there)
	}
	if answer {
		p.heed(&there, now)
		p.answered(&there)
	}
	if tk == nil || o.island == nil {
		if !answer {
			delete(p.granted.open, id)
		}
		return
	}
	if answer {
		if tk.answered == 0 {
			tk.answered = now
		}
		o.island.Answer(tk.number, int64(now))
		return
	}
	o.island.Close(tk.number, int64(now))
	switch {
	case here:
		delete(o.held, id)
		if op.Kind == store.OpClose && (tk.answered != 0 || !op.Spent) {
			p.exceed(tk, there.Amounts, now)
		}
		o.deferEnd(id, &there, now)
	case op.Kind == store.OpCancel:
		delete(p.granted.open, id)
	default:
		p.closed(&there)
	}
}

// deferEnd keeps the end of a ticket for the store, if the store may know the ticket from an attempt to return.
func (o *outage) deferEnd(id store.ID, op *store.Op, now store.Time) {
	if slices.ContainsFunc(o.again, func(a store.Op) bool { return a.ID == id }) {
		o.put(now, *op)
	}
}

// heed pauses all callers of this process after a refusal by the provider.
func (p *Process) heed(op *store.Op, now store.Time) {
	if op.Force {
		return
	}
	d := op.RetryAfter
	if d > store.MaxHint {
		d = 0 // not plausible
	}
	throttle, overload := &p.spec.Throttle, &p.spec.Overload
	switch op.Verdict { // hints longer than the cap are tried at the cap's interval
	case store.VerdictThrottled:
		d = min(max(d, throttle.Start), max(throttle.Cap, throttle.Start))
	case store.VerdictOverloaded:
		d = min(max(d, overload.Start), max(throttle.Cap, overload.Start))
	case store.VerdictExhausted, store.VerdictBilling:
		d = max(d, throttle.Cap)
	default:
		return
	}
	if until := now.Add(min(d, store.MaxTTL)); until > p.lost.paused {
		p.lost.paused, p.lost.cause = until, op.Cause
	}
}

// letGo decides an operation of a FailOpen session: it grants everything.
func (p *Process) letGo(s *Session, op *store.Op, now store.Time) {
	o, r := p.lost, &op.Result
	r.State, r.GrantedAt = store.Granted, now
	switch {
	case op.Kind == store.OpAcquire:
		if op.ID.N == 0 {
			r.ID = p.newID(s.ID, false)
		}
		o.granted++
	case p.stored[op.ID] != nil: // the ticket need not wait in the store any longer
		p.withdraw(op.ID)
		o.granted++
	}
}

// decideShare decides an operation of a FailShare session, within the share of the process.
func (p *Process) decideShare(s *Session, op *store.Op, now store.Time) {
	switch op.Kind {
	case store.OpAcquire:
		p.acquire(s, op, now)
	case store.OpRenew:
		o := p.lost
		tk := o.held[op.ID]
		o.island.Close(tk.number, int64(now)) // its charge stays: the request may have gone out
		if op.TTL > 0 {
			tk.ttl = min(op.TTL, store.MaxTTL)
		}
		delete(o.held, tk.id)
		p.decide(s, tk, op, false, now)
	case store.OpPoll:
		p.poll(op, now)
	}
}
