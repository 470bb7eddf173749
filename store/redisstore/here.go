package redisstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// acquireHere decides an acquire. The state is locked.
func (st *state) acquireHere(h *handle, op *store.Op, now store.Time) {
	r := &op.Result
	if op.Agent == "" || int(op.Class) >= len(st.spec.Classes) || op.TTL <= 0 || op.TTL > store.MaxTTL || op.Wait > store.MaxWindow {
		r.State, r.Reason.Code = store.Refused, store.CodeInvalid
		return
	}
	for i := range h.spec.Limits {
		if op.Amounts[i] < 0 || op.Amounts[i] > store.MaxAmount {
			r.State, r.Reason.Code = store.Refused, store.CodeInvalid
			return
		}
	}
	if op.ID.N != 0 && (st.ledger.open[op.ID] != nil || st.queue[op.ID] != nil || st.lost.held[op.ID] != nil || st.isLocalLocked(op.ID)) {
		st.pollHere(op, now) // it was asked for before
		return
	}
	tk := newTicket(op, *h.places.Load())
	tk.once = op.Spent
	st.decideHere(h, tk, op, op.Force, now)
}

// decideHere lets a ticket go, has it wait or refuses it. The state is locked.
func (st *state) decideHere(h *handle, tk *ticket, op *store.Op, force bool, now store.Time) {
	o, r := st.lost, &op.Result
	ok, retry := force, store.Time(0)
	if !force {
		ok, retry = st.allowHere(tk, now)
		if ok && !st.isFirst(tk) {
			ok, retry = false, now
		}
	}
	if ok {
		if tk.id.N == 0 {
			tk.id = st.newID(h.session, false)
		}
		st.goHere(tk, now)
		st.collectHere(tk, now)
		r.State, r.ID, r.GrantedAt = store.Granted, tk.id, now
		return
	}
	r.Reason = store.Reason{Code: store.CodeStore, Behind: store.CodeStore, Limit: -1, At: retry}
	full := len(o.line) >= min(st.spec.MaxWaiting, maxSayings)
	// When the store will be back nobody knows: that may be worth waiting for.
	if op.Wait == 0 || full || op.Wait > 0 && retry > now.Add(op.Wait) {
		if r.State = store.Refused; full && op.Wait != 0 {
			r.Reason.Code = store.CodeFull
		}
		return
	}
	if tk.id.N == 0 {
		tk.id = st.newID(h.session, true)
	}
	w := &islander{tk: tk, retry: retry}
	if op.Wait > 0 {
		w.deadline = now.Add(op.Wait)
	}
	at, _ := slices.BinarySearchFunc(o.line, w, func(a, b *islander) int {
		return cmp.Or(cmp.Compare(rank(a.tk), rank(b.tk)), -1) // behind all of its class
	})
	o.line = slices.Insert(o.line, at, w)
	r.State, r.ID = store.Waiting, tk.id
}

func rank(tk *ticket) int {
	if tk.emergency {
		return -1
	}
	return int(tk.class)
}

// allowHere reports whether a ticket has room here. The state is locked.
func (st *state) allowHere(tk *ticket, now store.Time) (ok bool, retry store.Time) {
	o := st.lost
	if o.halted {
		return false, now.Add(100 * time.Millisecond)
	}
	if ok, retry = o.isle.allow(st, tk, now); ok && o.paused > now {
		return false, o.paused
	}
	return ok, retry
}

// isFirst reports that nobody waits here who wants something of the same meters and is ahead. The state
// is locked.
func (st *state) isFirst(tk *ticket) bool {
	if len(st.lost.line) == 0 {
		return true
	}
	claims := map[meterKey]bool{}
	for _, w := range st.lost.line {
		if rank(w.tk) > rank(tk) {
			break
		}
		st.claim(claims, w.tk)
	}
	return !st.claimed(claims, tk)
}

// claim notes which meters one who waits wants something of: those behind it have to wait for it.
func (st *state) claim(claims map[meterKey]bool, tk *ticket) {
	for i := range st.spec.Limits {
		if tk.amounts[i] > 0 && st.limits[i].shared {
			claims[st.limits[i].keyOf(i, tk)] = true
		}
	}
}

func (st *state) claimed(claims map[meterKey]bool, tk *ticket) bool {
	if len(claims) == 0 {
		return false
	}
	for i := range st.spec.Limits {
		if tk.amounts[i] > 0 && st.limits[i].shared && claims[st.limits[i].keyOf(i, tk)] {
			return true
		}
	}
	return false
}

// goHere lets a ticket go. The state is locked.
func (st *state) goHere(tk *ticket, now store.Time) {
	o := st.lost
	o.isle.take(st, tk, now)
	o.granted++
	o.held[tk.id] = tk
	o.user = who{tk.agent, tk.class}
	o.users[tk.id.Session] = o.user
	o.due = max(o.due, tk.due)
}

// collectHere ends a ticket that is spent with its grant, when its caller knows of it. The state is
// locked.
func (st *state) collectHere(tk *ticket, now store.Time) {
	if o := st.lost; tk.once && o.held[tk.id] != nil {
		o.isle.Close(tk.number, int64(now))
		delete(o.held, tk.id)
	}
}

// pollHere says what became of a ticket. The state is locked.
func (st *state) pollHere(op *store.Op, now store.Time) {
	o, r := st.lost, &op.Result
	if op.ID.N == 0 && op.Alive > 0 {
		r.State = store.Granted // nobody can say that it has no tickets
		return
	}
	for _, w := range o.line {
		if w.tk.id == op.ID {
			r.State, r.Reason = store.Waiting, store.Reason{Code: store.CodeStore, Limit: -1, At: w.retry}
			return
		}
	}
	tk := o.held[op.ID]
	if tk == nil {
		if tk = st.ledger.open[op.ID]; tk != nil && op.TTL > 0 {
			o.put(now, *op)
		}
	}
	switch {
	case tk != nil && tk.due > now:
		r.State, r.GrantedAt = store.Granted, tk.granted
		st.collectHere(tk, now)
		if op.TTL > 0 && op.TTL <= store.MaxTTL && o.held[op.ID] == nil {
			tk.due = now.Add(op.TTL)
		}
	case st.queue[op.ID] != nil:
		st.queue[op.ID].decided = 0 // whoever asks wants to be told
		r.State, r.Reason = store.Waiting, store.Reason{Code: store.CodeStore, Limit: -1}
	default:
		r.State = store.Ended
	}
}

// serveHere lets go who has room, and sets the clock for who has not. It returns who has to be told.
// The state is locked.
func (st *state) serveHere(now store.Time) (told []store.ID) {
	o := st.lost
	if o == nil || len(o.line) == 0 || o.isle == nil || st.closed {
		return nil
	}
	var next store.Time
	var ahead []*islander
	claims := map[meterKey]bool{}
	for _, w := range o.line {
		if w.deadline != 0 && w.deadline <= now {
			told = append(told, w.tk.id)
			continue
		}
		ok, retry := false, store.Time(0)
		if !st.claimed(claims, w.tk) {
			ok, retry = st.allowHere(w.tk, now)
		}
		if ok {
			st.goHere(w.tk, now)
			told = append(told, w.tk.id)
			continue
		}
		w.retry = retry
		ahead = append(ahead, w)
		st.claim(claims, w.tk)
		for _, at := range []store.Time{retry, w.deadline} {
			if at != 0 && (next == 0 || at < next) {
				next = at
			}
		}
	}
	o.line = ahead
	if next != 0 {
		d := max(next.Sub(now), time.Millisecond)
		if o.timer == nil {
			o.timer = time.AfterFunc(d, st.serveLater)
		} else {
			o.timer.Reset(d)
		}
	}
	sortIDs(told)
	return told
}

// serveLater is called when time may have made room here.
func (st *state) serveLater() {
	st.mu.Lock()
	told := st.serveHere(st.nowLocked())
	st.mu.Unlock()
	st.tell(told)
}
