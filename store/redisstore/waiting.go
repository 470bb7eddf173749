package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
	"github.com/sluicehq/sluice/store"
)

const (
	// How long an entry in the queue outlives the last word of its process: longer where there are many, which
	// the store looks at as often.
	waitersLive = 10 * time.Second
	eachLives   = time.Millisecond
	keepEvery   = 3 * time.Second // how often the process says that it is there
	mostMissed  = 3               // of these, until one is given up that nobody comes for
)

// waiter is a ticket of this process that waits in Redis.
type waiter struct {
	tk       *ticket
	deadline store.Time    // 0: none
	kept     bool          // somebody waits for it
	missed   int           // how often that was not so
	decided  time.Duration // uptime at which its session was told that it does not wait any more; 0: it waits
}

// noteLocked keeps track of the tickets of this process, after the operations of a request were carried
// out. It returns what has to be undone, because the one who asked has left.
func (st *state) noteLocked(q *request, places limitmap.Map, left bool) (undo []store.Op) {
	for i := range q.ops {
		op := &q.ops[i]
		r := &op.Result
		id := r.ID
		if r.State <= store.Waiting && processOf(id.Session) == st.store.process {
			st.highest = max(st.highest, id.N)
		}
		switch op.Kind {
		case store.OpAcquire:
			q.handle.user = who{op.Agent, op.Class}
			switch {
			case r.State != store.Granted && r.State != store.Waiting:
			case left && op.ID.N == 0: // nobody knows of it
				undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
			case left: // its caller chose the id, and may ask again
			case r.State == store.Waiting:
				st.waitsLocked(newTicket(op, places), op.Wait, r.Now)
			case !op.Spent:
				st.holdsLocked(newTicket(op, places), r)
			default:
				st.spentLocked(newTicket(op, places), r)
			}
		case store.OpRenew:
			st.renewedLocked(op)
		case store.OpPoll:
			if st.polledLocked(op, left) {
				undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
			}
		case store.OpAnswer:
			st.answeredLocked(op, places)
		case store.OpObserve:
			st.learnSizes(op, places)
		case store.OpCancel:
			delete(st.queue, id)
			st.ledger.drop(id)
		case store.OpClose:
			delete(st.queue, id)
			there := *op
			places.Op(&there)
			st.closedLocked(&there)
		case store.OpTouch:
			q.handle.touched.Store(r.State == store.Granted)
		}
	}
	return undo
}

func (st *state) waitsLocked(tk *ticket, wait time.Duration, now store.Time) {
	w := &waiter{tk: tk, kept: true}
	if wait >= 0 {
		w.deadline = now.Add(wait)
	}
	st.queue[tk.id] = w
}

// renewedLocked notes that a ticket was exchanged.
func (st *state) renewedLocked(op *store.Op) {
	r := &op.Result
	tk := st.ledger.open[r.ID]
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
	case store.Waiting:
		st.ledger.drop(r.ID)
		st.waitsLocked(tk, op.Wait, r.Now)
	default:
		st.ledger.drop(r.ID)
	}
}

// polledLocked notes what became of a ticket that was asked after. It reports whether it was collected
// for one who has left.
func (st *state) polledLocked(op *store.Op, left bool) bool {
	r := &op.Result
	w := st.queue[r.ID]
	switch {
	case w == nil && r.State == store.Granted:
		if tk := st.ledger.open[r.ID]; tk != nil && op.TTL > 0 {
			tk.ttl, tk.due = op.TTL, r.Now.Add(op.TTL)
		}
		return false
	case w == nil:
		if r.State != store.Waiting {
			st.ledger.drop(r.ID)
		}
		return false
	case r.State == store.Waiting:
		w.kept, w.missed, w.decided = !left, 0, 0 // one whose caller does not come back is let die
		return false
	}
	delete(st.queue, r.ID)
	if r.State != store.Granted {
		return false
	}
	if !left {
		st.holdsLocked(w.tk, r)
	}
	return left
}

// arm sees to it that somebody looks when time alone may let in one who waits.
func (st *state) arm(now, wake store.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if wake == 0 || st.closed || st.timerAt != 0 && st.timerAt <= wake {
		return
	}
	if len(st.queue) == 0 && !st.store.fixed {
		return // those whose tickets wait see to it
	}
	st.timerAt = wake
	d := max(wake.Sub(now), 0)
	if !st.store.fixed {
		d += jitter()
	}
	if st.timer == nil {
		st.timer = st.store.clock.AfterFunc(d, st.tick)
		return
	}
	st.timer.Reset(d)
}

// tick looks whether time has let anybody in.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	idle := st.closed || st.lost != nil // which looks when it is over
	st.mu.Unlock()
	if idle {
		return
	}
	if err := st.apply(context.Background(), nil); err != nil && !st.store.fixed && !st.isLost.Load() {
		now := st.now()
		st.arm(now, now.Add(time.Second)) // those who wait find out why when they are asked after
	}
}

// decided tells that tickets of this process do not wait any more.
func (st *state) decided(ids []store.ID) {
	if len(ids) > 0 {
		st.tell(ids)
	}
}

// keepWaiting says that those who wait are alive, and asks after some of them: each is told when it does not
// wait any more, but a message may have been lost.
func (st *state) keepWaiting() {
	sessions := map[uint64]int{}
	var some []store.ID
	var gone []store.Op
	st.mu.Lock()
	for id, w := range st.queue { // in no order: it is others' turn each time
		if !w.kept {
			if w.missed++; w.missed > mostMissed {
				delete(st.queue, id)
				gone = append(gone, store.Op{Kind: store.OpCancel, ID: id})
			}
			continue
		}
		sessions[id.Session]++
		if len(some) < maxTogether/4 {
			some = append(some, id)
		}
	}
	st.mu.Unlock()
	st.post(gone)
	ops := make([]store.Op, 0, len(sessions))
	for session, n := range sessions {
		ops = append(ops, store.Op{Kind: store.OpPoll, ID: store.ID{Session: session}, Alive: waitersLive + time.Duration(n)*eachLives})
	}
	for part := range slices.Chunk(ops, maxTogether) {
		if st.apply(st.life, part) != nil {
			return
		}
	}
	sortIDs(some)
	st.askAfter(some)
}

// askAll asks after all who wait.
func (st *state) askAll() {
	st.mu.Lock()
	ids := slices.Collect(maps.Keys(st.queue))
	st.mu.Unlock()
	sortIDs(ids)
	for part := range slices.Chunk(ids, maxTogether) {
		if !st.askAfter(part) {
			return
		}
	}
}

// askAfter polls tickets. It reports whether the store has answered.
func (st *state) askAfter(ids []store.ID) bool {
	ops := make([]store.Op, len(ids))
	for i, id := range ids {
		ops[i] = store.Op{Kind: store.OpPoll, ID: id}
	}
	if err := st.apply(st.life, ops); err != nil {
		return false
	}
	var over []store.ID
	var undo []store.Op
	up := uptime()
	st.mu.Lock()
	for i := range ops {
		w := st.queue[ops[i].ID]
		if w == nil || ops[i].Result.State == store.Waiting {
			continue
		}
		if w.decided != 0 && up-w.decided > keepEvery/2 { // and nobody has come for it since
			delete(st.queue, ops[i].ID)
			undo = append(undo, store.Op{Kind: store.OpCancel, ID: ops[i].ID})
			continue
		}
		w.decided = up
		over = append(over, ops[i].ID)
	}
	st.mu.Unlock()
	st.decided(over)
	st.post(undo)
	return true
}

func sortIDs(ids []store.ID) {
	slices.SortFunc(ids, func(a, b store.ID) int { return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.N, b.N)) })
}
