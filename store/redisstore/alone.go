package redisstore

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// decideAlone decides a session's operations without the store. It returns errBack if the store is there
// again.
func (st *state) decideAlone(h *handle, ops []store.Op) error {
	st.mu.Lock()
	o := st.lost
	switch {
	case o == nil:
		st.mu.Unlock()
		return errBack
	case h == nil:
		defer st.mu.Unlock()
		return o.error()
	}
	mode := st.modeOf(h)
	if mode == store.FailClosed || !st.possibleAlone(mode, ops) {
		st.sayLater(h, ops) // what is over is over, whatever the caller makes of the error
		defer st.mu.Unlock()
		return store.Kept(o.error())
	}
	now := st.nowLocked()
	for i := range ops {
		op := &ops[i]
		op.Result = store.Result{ID: op.ID, Now: now, Reason: store.Reason{Limit: -1}}
		if mode == store.FailOpen {
			st.openOp(h, op, now)
		} else {
			st.shareOp(h, op, now)
		}
		if op.Kind == store.OpAcquire {
			op.ID = op.Result.ID
		}
	}
	told := st.serveHere(now)
	st.mu.Unlock()
	st.tell(told)
	return nil
}

// possibleAlone reports whether operations mean anything without the store. The state is locked.
func (st *state) possibleAlone(mode store.OnFailure, ops []store.Op) bool {
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case store.OpAcquire, store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			if mode == store.FailShare && processOf(op.ID.Session) != st.store.process {
				return false // what became of another's ticket is not known here
			}
		case store.OpRenew:
			if mode == store.FailShare && st.lost.held[op.ID] == nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// sayLater remembers what the store has to be told of tickets. The state is locked.
func (st *state) sayLater(h *handle, ops []store.Op) {
	now := st.nowLocked()
	for i := range ops {
		switch op := &ops[i]; op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
			st.saidHere(h, op, now)
		case store.OpPoll:
			if w := st.queue[op.ID]; w != nil {
				w.kept = false // whoever waited for it is told that it cannot
			}
		}
	}
}

// saidHere takes in an answer, the end, or the return of a ticket. The state is locked.
func (st *state) saidHere(h *handle, op *store.Op, now store.Time) {
	o := st.lost
	there := *op
	there.Observed = slices.Clone(op.Observed)
	(*h.places.Load()).Op(&there)
	there.Result = store.Result{ID: op.ID, State: store.Granted, Now: now}
	if i := slices.IndexFunc(o.line, func(w *islander) bool { return w.tk.id == op.ID }); i >= 0 {
		if op.Kind != store.OpAnswer {
			o.line = slices.Delete(o.line, i, i+1)
			o.unsay(op.ID, &there, now)
		}
		return
	}
	tk := o.held[op.ID]
	if tk == nil {
		if st.isLocalLocked(op.ID) {
			return // nothing of it counts
		}
		o.put(now, there)
		tk = st.ledger.open[op.ID]
	}
	if op.Kind == store.OpAnswer {
		o.heed(st, &there, now)
		st.answeredLocked(&there, nil)
	}
	if tk == nil || o.isle == nil {
		if op.Kind != store.OpAnswer {
			delete(st.queue, op.ID)
			st.ledger.drop(op.ID)
		}
		return
	}
	if op.Kind == store.OpAnswer {
		if tk.answered == 0 {
			tk.answered = now
		}
		if tk.number >= 0 {
			o.isle.Answer(tk.number, int64(now))
		}
		return
	}
	if tk.number >= 0 {
		o.isle.Close(tk.number, int64(now))
	}
	if o.held[op.ID] != nil {
		delete(o.held, op.ID)
		if op.Kind == store.OpClose && (tk.answered != 0 || !op.Spent) {
			o.isle.exceed(st, tk, &there.Amounts, now)
		}
		o.unsay(op.ID, &there, now)
		return
	}
	if op.Kind == store.OpCancel {
		st.ledger.drop(op.ID)
		return
	}
	st.closedLocked(&there)
}

// unsay has the store told of the end of a ticket that it may have heard of on an attempt to come back.
func (o *outage) unsay(id store.ID, op *store.Op, now store.Time) {
	if slices.ContainsFunc(o.again, func(a store.Op) bool { return a.ID == id }) {
		o.put(now, *op)
	}
}

// heed holds everybody here if the provider says so.
func (o *outage) heed(st *state, op *store.Op, now store.Time) {
	if op.Force {
		return
	}
	d := op.RetryAfter
	if d > store.MaxHint {
		d = 0 // nobody means that
	}
	switch op.Verdict { // a long hint is tested at the cap's interval
	case store.VerdictThrottled:
		d = min(max(d, st.spec.Throttle.Start), max(st.spec.Throttle.Cap, st.spec.Throttle.Start))
	case store.VerdictOverloaded:
		d = min(max(d, st.spec.Overload.Start), max(st.spec.Throttle.Cap, st.spec.Overload.Start))
	case store.VerdictExhausted, store.VerdictBilling:
		d = max(d, st.spec.Throttle.Cap)
	default:
		return
	}
	if until := now.Add(min(d, store.MaxTTL)); until > o.paused {
		o.paused, o.cause = until, op.Cause
	}
}

// openOp decides an operation where everything is let go. The state is locked.
func (st *state) openOp(h *handle, op *store.Op, now store.Time) {
	o, r := st.lost, &op.Result
	grant := func() { r.State, r.GrantedAt = store.Granted, now }
	switch op.Kind {
	case store.OpAcquire:
		if op.ID.N == 0 {
			r.ID = st.newID(h.session, false)
		}
		o.granted++
		grant()
	case store.OpPoll, store.OpRenew:
		if st.queue[op.ID] != nil { // it need not wait any longer, nor does its entry
			delete(st.queue, op.ID)
			o.put(now, store.Op{Kind: store.OpCancel, ID: op.ID})
			o.granted++
		}
		grant()
	default:
		st.saidHere(h, op, now)
		if r.State = store.Ended; op.Kind == store.OpAnswer {
			r.State = store.Granted
		}
	}
}

// shareOp decides an operation of a member that goes on within its share. The state is locked.
func (st *state) shareOp(h *handle, op *store.Op, now store.Time) {
	o, r := st.lost, &op.Result
	switch op.Kind {
	case store.OpAcquire:
		st.acquireHere(h, op, now)
	case store.OpRenew:
		tk := o.held[op.ID]
		o.isle.Close(tk.number, int64(now)) // what it took stays taken: nobody can say that it was not sent
		if op.TTL > 0 {
			tk.ttl = min(op.TTL, store.MaxTTL)
		}
		delete(o.held, tk.id)
		st.decideHere(h, tk, op, false, now)
	case store.OpPoll:
		st.pollHere(op, now)
	default:
		st.saidHere(h, op, now)
		if r.State = store.Ended; op.Kind == store.OpAnswer {
			r.State = store.Granted
		}
	}
}
