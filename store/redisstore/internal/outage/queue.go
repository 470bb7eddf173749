package outage

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// localWaiter is a ticket that waits here, until the share has room.
type localWaiter struct {
	tk       *ticket
	deadline store.Time // 0: none
	retry    store.Time // when to ask again; 0: not before the store is back
	order    int64      // of arrival
	stored   bool       // it waits in the store as well
	renewed  bool       // it waits to be renewed, and is not granted here
}

// acquire decides an acquire within the share.
func (p *Process) acquire(s *Session, op *store.Op, now store.Time) {
	bad := op.Agent == "" || int(op.Class) >= len(p.spec.Classes) || op.TTL <= 0 || op.TTL > store.MaxTTL || op.Wait > store.MaxWindow
	for i := range op.Amounts {
		bad = bad || op.Amounts[i].N < 0 || op.Amounts[i].N > store.MaxAmount
	}
	if bad {
		op.Result.State, op.Result.Reason.Code = store.Refused, store.CodeInvalid
		return
	}
	if op.ID.N != 0 && (p.granted.open[op.ID] != nil || p.stored[op.ID] != nil || p.lost.held[op.ID] != nil || p.lost.early[op.ID] != nil || p.isLocal(op.ID)) {
		p.poll(op, now) // a repeated acquire
		return
	}
	tk := p.newTicket(op)
	p.decide(s, tk, op, op.Force, now)
}

// decide grants a ticket, queues it or refuses it.
func (p *Process) decide(s *Session, tk *ticket, op *store.Op, force bool, now store.Time) {
	o, r := p.lost, &op.Result
	ok, retry := force, store.Time(0)
	if !force {
		ok, retry = p.allow(tk, now)
		if ok && !p.isFirst(tk) {
			ok, retry = false, now
		}
	}
	if ok {
		if tk.id.N == 0 {
			tk.id = p.newID(s.ID, false)
		}
		p.grant(tk, now)
		o.collect(tk, now)
		r.State, r.ID, r.GrantedAt = store.Granted, tk.id, now
		return
	}
	r.Reason = store.Reason{Code: store.CodeStore, Behind: store.CodeStore, At: retry}
	full := len(o.queue) >= p.spec.MaxWaiting || o.newcomers() >= maxDeferred
	// Without a retry time the ticket waits for the store, which may be back at any moment.
	if op.Wait == 0 || full || op.Wait > 0 && retry > now.Add(op.Wait) {
		if r.State = store.Refused; full && op.Wait != 0 {
			r.Reason.Code = store.CodeFull
		}
		return
	}
	if tk.id.N == 0 {
		tk.id = p.newID(s.ID, true)
	}
	o.insert(&localWaiter{tk: tk, deadline: deadlineOf(op.Wait, now), retry: retry, order: p.arrives()})
	r.State, r.ID = store.Waiting, tk.id
}

// newcomers returns how many tickets wait here only.
func (o *outage) newcomers() (n int) {
	for _, w := range o.queue {
		if !w.stored {
			n++
		}
	}
	return n
}

// allow reports whether a ticket may be granted here. If not, retry is when to ask again; 0: not before the store is back.
func (p *Process) allow(tk *ticket, now store.Time) (ok bool, retry store.Time) {
	o := p.lost
	switch {
	case o.island == nil:
		return false, 0
	case o.halted:
		return false, now.Add(100 * time.Millisecond)
	}
	if ok, retry = p.room(tk, now); ok && o.paused > now {
		return false, o.paused
	}
	return ok, retry
}

// isFirst reports whether no ticket ahead in the queue needs the same meters.
func (p *Process) isFirst(tk *ticket) bool {
	claims := map[meterKey]bool{}
	for _, w := range p.lost.queue {
		if w.tk.rank() > tk.rank() {
			break
		}
		p.claim(claims, w.tk)
	}
	return !p.claimed(claims, tk)
}

// claim records the meters that a waiting ticket needs. Tickets behind it that need the same ones have to wait.
func (p *Process) claim(claims map[meterKey]bool, tk *ticket) {
	p.shares(tk, func(_ int, k meterKey) { claims[k] = true })
}

func (p *Process) claimed(claims map[meterKey]bool, tk *ticket) (any bool) {
	p.shares(tk, func(_ int, k meterKey) { any = any || claims[k] })
	return any
}

// grant grants a ticket here.
func (p *Process) grant(tk *ticket, now store.Time) {
	o := p.lost
	p.take(tk, now)
	o.granted++
	o.held[tk.id] = tk
	o.agent = agent{tk.agent, tk.class}
	o.agents[tk.id.Session] = o.agent
	o.due = max(o.due, tk.due)
}

// collect ends a ticket that is spent with its grant, once its caller knows of the grant.
func (o *outage) collect(tk *ticket, now store.Time) {
	if tk.once && o.held[tk.id] != nil {
		o.island.Close(tk.number, int64(now))
		delete(o.held, tk.id)
	}
}

// poll answers a poll of a ticket.
func (p *Process) poll(op *store.Op, now store.Time) {
	o, r := p.lost, &op.Result
	if op.ID.N == 0 && op.Alive > 0 {
		r.State = store.Granted // only the store knows whether the session has tickets
		return
	}
	if w := o.find(op.ID); w != nil {
		r.State, r.Reason = store.Waiting, store.Reason{Code: store.CodeStore, At: w.retry}
		return
	}
	p.collectEarly(op.ID)
	id := o.here(op.ID)
	r.ID = id
	tk := o.held[id]
	if tk == nil {
		if tk = p.granted.open[id]; tk != nil && op.TTL > 0 {
			o.put(now, *op)
		}
	}
	switch {
	case tk != nil && tk.due > now:
		r.State, r.GrantedAt, r.Waited = store.Granted, tk.granted, max(tk.granted.Sub(tk.since), 0)
		o.collect(tk, now)
		if op.TTL > 0 && op.TTL <= store.MaxTTL && o.held[id] == nil {
			tk.due = now.Add(op.TTL)
		}
	case p.stored[id] != nil:
		w := p.stored[id]
		w.kept, w.decided = true, 0 // the caller is back and wants to be told
		if i := p.enter(w); i != nil {
			o.insert(i)
		}
		r.State, r.Reason = store.Waiting, store.Reason{Code: store.CodeStore}
	default:
		r.State = store.Ended
	}
}

// Serve grants the waiting tickets that have room. It returns the tickets whose sessions have to be told, and
// when to call it again; 0: time alone makes no room.
func (p *Process) Serve(now store.Time) (told []store.ID, next store.Time) {
	o := p.lost
	if o == nil || len(o.queue) == 0 {
		return nil, 0
	}
	var ahead []*localWaiter
	claims := map[meterKey]bool{}
	for _, w := range o.queue {
		if w.deadline != 0 && w.deadline <= now {
			told = append(told, w.tk.id)
			p.retire(w, now)
			continue
		}
		ok, retry := false, store.Time(0)
		if !w.renewed && !p.claimed(claims, w.tk) {
			ok, retry = p.allow(w.tk, now)
		}
		if ok {
			if w.stored || o.mayHave(w.tk.id) {
				p.move(w, now)
			} else {
				p.grant(w.tk, now)
			}
			told = append(told, w.tk.id)
			continue
		}
		w.retry = retry
		ahead = append(ahead, w)
		p.claim(claims, w.tk)
		for _, at := range []store.Time{retry, w.deadline} {
			if at != 0 && (next == 0 || at < next) {
				next = at
			}
		}
	}
	o.queue = ahead
	slices.SortFunc(told, compareIDs)
	return told, next
}
