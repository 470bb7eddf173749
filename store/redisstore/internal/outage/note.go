package outage

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	// WaitersLive is how long a waiting request outlives the last sign of life of its process. Each request of
	// a session adds eachLives, because the store checks every request once in that time: many requests are checked less often.
	WaitersLive = 10 * time.Second
	eachLives   = time.Millisecond
	// KeepEvery is how often the process gives a sign of life for its waiting requests.
	KeepEvery  = 3 * time.Second
	mostMissed = 3 // times KeepEvery, until a ticket without a caller is given up
)

// storeWaiter is a ticket of this process that waits in the store.
type storeWaiter struct {
	tk       *ticket
	deadline store.Time    // 0: none
	kept     bool          // a caller waits for it
	missed   int           // how many times in a row no caller did
	decided  time.Duration // uptime at which its session was told that it no longer waits; 0: it waits
	order    int64         // of arrival
	renewed  bool          // it was granted before
}

// Note records the results of operations that the store has carried out for a session. left reports that the caller has
// gone; Note then returns the operations that undo its grants.
func (p *Process) Note(s *Session, ops []store.Op, left bool) (undo []store.Op) {
	for i := range ops {
		op := &ops[i]
		r := &op.Result
		id := r.ID
		if (r.State == store.Granted || r.State == store.Waiting) && Of(id.Session) == p.number {
			p.highest = max(p.highest, id.N)
		}
		switch op.Kind {
		case store.OpAcquire:
			s.agent = agent{op.Agent, op.Class}
			switch {
			case r.State != store.Granted && r.State != store.Waiting:
			case left && op.ID.N == 0: // no caller knows the ticket
				undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
			case left: // the caller chose the id, and may ask again
			case r.State == store.Waiting:
				p.waits(p.newTicket(op), storeWaiter{deadline: deadlineOf(op.Wait, r.Now)})
			case !op.Spent:
				p.granted.hold(p.newTicket(op), r)
			default: // spent with its grant
				tk := p.newTicket(op)
				tk.granted, tk.due = r.GrantedAt, r.Now.Add(tk.ttl)
				p.charge(tk, nil, r.Now, true)
			}
		case store.OpRenew:
			p.renewed(op)
		case store.OpPoll:
			if p.lost != nil && p.lost.here(id) != id { // the caller has collected another grant meanwhile
				r.ID = p.lost.here(id)
			} else if p.polled(op, left) {
				undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
			}
		case store.OpAnswer:
			p.answered(op)
		case store.OpObserve:
			p.learnSizes(op, &ticket{model: op.Model, key: op.Key})
		case store.OpCancel:
			p.unstore(id)
			delete(p.granted.open, id)
		case store.OpClose:
			p.unstore(id)
			p.closed(op)
		case store.OpTouch:
			s.touched = r.State == store.Granted
		}
	}
	return undo
}

// deadlineOf returns when a wait that begins now is over; 0: never.
func deadlineOf(wait time.Duration, now store.Time) store.Time {
	if wait < 0 {
		return 0
	}
	return now.Add(wait)
}

// renewed records the result of a renewal.
func (p *Process) renewed(op *store.Op) {
	r := &op.Result
	tk := p.granted.open[r.ID]
	if tk == nil {
		return
	}
	switch r.State {
	case store.Granted:
		tk.granted, tk.answered = r.GrantedAt, 0
		if op.TTL > 0 {
			tk.ttl = op.TTL
		}
		tk.due = r.Now.Add(tk.ttl)
		return
	case store.Waiting:
		p.waits(tk, storeWaiter{deadline: deadlineOf(op.Wait, r.Now), renewed: true})
	}
	delete(p.granted.open, r.ID)
}

// polled records the result of a poll. It reports whether the ticket was granted to a caller that has left.
func (p *Process) polled(op *store.Op, left bool) bool {
	r := &op.Result
	w := p.stored[r.ID]
	switch {
	case w == nil && r.State == store.Granted:
		if tk := p.granted.open[r.ID]; tk != nil && op.TTL > 0 {
			tk.ttl, tk.due = op.TTL, r.Now.Add(op.TTL)
		}
		return false
	case w == nil:
		if r.State != store.Waiting {
			delete(p.granted.open, r.ID)
		}
		return false
	case r.State == store.Waiting:
		w.kept, w.missed, w.decided = !left, 0, 0 // without a caller, KeepWaiting gives it up after a while
		return false
	}
	p.unstore(r.ID)
	if r.State != store.Granted {
		return false
	}
	switch {
	case left:
	case w.tk.once: // spent with its grant
		w.tk.granted, w.tk.due = r.GrantedAt, r.Now.Add(w.tk.ttl)
		p.charge(w.tk, nil, r.Now, true)
	default:
		p.granted.hold(w.tk, r)
	}
	return left
}

// Queued returns the tickets that wait in the store.
func (p *Process) Queued() []store.ID {
	ids := make([]store.ID, 0, len(p.stored))
	for id := range p.stored {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// KeepWaiting returns operations that keep waiting tickets alive in the store, a few tickets to poll, because a message may
// have been lost, and cancels for tickets without a caller.
func (p *Process) KeepWaiting(few int) (alive []store.Op, some []store.ID, gone []store.Op) {
	sessions := map[uint64]int{}
	for id, w := range p.stored { // random order: each time other tickets are polled
		if !w.kept {
			if w.missed++; w.missed > mostMissed {
				p.unstore(id)
				gone = append(gone, store.Op{Kind: store.OpCancel, ID: id})
			}
			continue
		}
		sessions[id.Session]++
		if len(some) < few {
			some = append(some, id)
		}
	}
	for session, n := range sessions {
		alive = append(alive, store.Op{Kind: store.OpPoll, ID: store.ID{Session: session}, Alive: WaitersLive + time.Duration(n)*eachLives})
	}
	slices.SortFunc(some, compareIDs)
	return alive, some, gone
}

// AskedAfter records polls that the process made at uptime up. It returns the tickets whose sessions have to be told that
// they no longer wait, and cancels for those that were told before and have not collected since.
func (p *Process) AskedAfter(ops []store.Op, up time.Duration) (over []store.ID, undo []store.Op) {
	for i := range ops {
		id := ops[i].ID
		w := p.stored[id]
		switch {
		case w == nil || ops[i].Result.State == store.Waiting:
		case w.decided != 0 && up-w.decided > KeepEvery/2:
			p.unstore(id)
			undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
		default:
			w.decided = up
			over = append(over, id)
		}
	}
	return over, undo
}
