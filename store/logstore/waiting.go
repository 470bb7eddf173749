package logstore

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// A request that waits is let go by an entry, or by time alone. An entry is applied by every process, so the one whose
// request it lets go learns of it when it reads; the writer of the entry wakes it. What time alone brings is certain once an
// entry of a later time is in the log: the process whose request comes next appends one when the moment has come, or
// another one does so a little later.

const (
	// grace is how much later than the process whose turn it is another one appends an entry. Up to as much again is
	// added, so that not all do so at once.
	grace = 50 * time.Millisecond
	// rounds is how often a process with waiting requests looks, because wake-ups can be lost.
	rounds = time.Second
	// leastTick is the shortest time until the next tick if the pool waits for a time that has come.
	leastTick = time.Millisecond
)

// wake returns when an entry is needed so that time passes, and the process that appends it: the one whose request time
// alone lets go, or else the first that has waiting requests, in an order that is the same for all. 0: nothing waits for
// time. The caller holds st.mu.
func (st *state) wake() (at store.Time, keeper uint64) {
	at, session := st.rep.Wake()
	if at == 0 {
		return 0, 0
	}
	if session == 0 {
		st.rep.Pool().EachWaiting(func(first uint64) bool {
			session = first
			return false
		})
	}
	return at, st.relied(replica.ProcessOf(session))
}

// due returns when this process has to make an entry so that time passes; 0: others see to it, or nothing waits for it. keeps
// reports whether it is this one's turn. The caller holds st.mu.
func (st *state) due() (at store.Time, keeps bool) {
	wake, keeper := st.wake()
	if wake == 0 {
		return 0, false
	}
	wake = max(wake, st.rep.Now()+1)
	switch {
	case keeper == st.process:
		if early := wake.Add(-st.ahead.time()); early > st.rep.Now() {
			return early, true
		}
		return wake, true
	case len(st.waiting) == 0:
		return 0, false
	}
	return wake.Add(grace + time.Duration(st.process>>24)%grace), false
}

// noteWake has the keeper woken if an entry of this process has made the pool wait for an earlier time than before: its
// timer is set too late. The caller holds st.mu.
func (st *state) noteWake(mine bool) {
	was := st.wakeAt
	wake, keeper := st.wake()
	st.wakeAt, st.keeper = wake, keeper
	if mine && wake != 0 && keeper != st.process && (was <= st.rep.Now() || wake < was) {
		st.rung[keeper] = struct{}{}
	}
}

// isCrowded reports whether requests of any process wait. The caller holds st.mu.
func (st *state) isCrowded() (any bool) {
	if core := st.rep.Pool(); core != nil {
		core.EachWaiting(func(uint64) bool {
			any = true
			return false
		})
	}
	return any
}

// arm sets the timer for what time alone brings. The caller holds st.mu.
func (st *state) arm() {
	if st.closed {
		return
	}
	st.crowded.Store(st.isCrowded())
	now := st.nowAt(st.store.clock.Uptime())
	at, _ := st.due()
	if at == st.rep.Now()+1 {
		at = now.Add(leastTick)
	}
	if len(st.waiting) > 0 && st.store.touch > 0 {
		if look := now.Add(rounds); at == 0 || look < at {
			at = look
		}
	}
	if at == 0 || st.timerAt != 0 && st.timerAt <= at {
		return
	}
	st.timerAt = at
	d := max(at.Sub(now), 0)
	if st.timer == nil {
		st.timer = st.store.clock.after(d, st.tick)
		return
	}
	st.timer.Reset(d)
}

// tick is called by the timer. A timer that was set for an earlier time than is needed by now finds nothing to do.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	if st.closed {
		st.mu.Unlock()
		return
	}
	up := st.store.clock.Uptime()
	at, keeps := st.due()
	passes := at != 0 && at <= st.nowAt(up)
	looks := !passes && len(st.waiting) > 0 && up-st.looked >= rounds
	if passes && !keeps && up-st.looked >= grace { // the others have most probably gone on
		passes, looks = false, true
	}
	if !passes && !looks {
		st.arm()
		st.mu.Unlock()
		return
	}
	id := st.next()
	if st.ahead.planned = 0; passes && keeps {
		st.ahead.planned = at
	}
	st.running.Add(1)
	st.mu.Unlock()
	defer st.running.Done()
	switch {
	case looks:
		st.catchUp()
	case id.IsZero():
		st.pulse()
	default:
		st.collect(id)
	}
}

// next returns the request of this process that probably goes first, if its caller waits to be told. The caller holds
// st.mu.
func (st *state) next() (id store.ID) {
	if core := st.rep.Pool(); core != nil && !st.store.passive {
		id = core.Next()
	}
	if spent, here := st.waiting[id]; !here || spent { // the slack of a spent ticket begins when its caller has it
		return store.ID{}
	}
	if h := st.sessions[id.Session]; h == nil || h.watch.Load() == nil {
		return store.ID{}
	}
	return id
}

// collectWithin is how long a grant waits for its caller. Then it goes back.
const collectWithin = time.Second

// collect appends an entry at the moment at which a request may go, and collects the grant for the caller in the same step.
// So the caller, once told, needs no other exchange before it can send.
func (st *state) collect(id store.ID) {
	st.mu.Lock()
	st.collected[id] = store.Result{} // until the result is there
	st.mu.Unlock()
	r := st.newRequest()
	r.Request = replica.Request{Kind: replica.Ops, Session: id.Session, Ops: []store.Op{{Kind: store.OpPoll, ID: id}}}
	r.own = true
	err := st.do(st.life, r)
	got := r.Ops[0].Result
	if err == nil {
		st.free(r)
	}
	st.mu.Lock()
	_, ours := st.collected[id]
	if ours = ours && !st.closed; ours && err == nil && got.State == store.Granted {
		st.collected[id] = got
		time.AfterFunc(collectWithin, func() { st.giveBack(id) })
	} else {
		delete(st.collected, id)
	}
	st.mu.Unlock()
	if ours && (err != nil || got.State != store.Waiting) { // otherwise the caller has asked itself, or another request went first
		st.tell([]store.ID{id})
	}
}

// taken answers a poll that was collected already.
func (st *state) taken(op *store.Op) bool {
	if op.Kind != store.OpPoll || op.TTL != 0 || op.ID.N == 0 {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.collected[op.ID]
	switch r.State {
	case store.Granted:
		delete(st.collected, op.ID)
	case store.Ended:
	default:
		return false
	}
	op.Result = r
	return true
}

// asked notes that callers have asked about requests themselves, so that none of them is given back. Those that are being given
// back have ended, whatever the results say that were decided before. The caller holds st.mu.
func (st *state) asked(ops []store.Op) {
	if len(st.collected) == 0 {
		return
	}
	for i := range ops {
		op := &ops[i]
		if r := st.collected[op.ID]; r.State != store.Ended {
			delete(st.collected, op.ID)
		} else if op.Kind == store.OpPoll {
			r.Now = op.Result.Now
			op.Result = r
		}
	}
}

// post applies an operation now, or when the log is back. It reports whether that is done.
func (st *state) post(op store.Op) bool {
	err := st.doOps(st.life, op.ID.Session, []store.Op{op})
	if err != nil {
		st.mu.Lock()
		st.posted = append(st.posted, op)
		st.mu.Unlock()
	}
	return err == nil
}

// giveBack cancels a grant that was collected for a caller that did not come.
func (st *state) giveBack(id store.ID) {
	st.mu.Lock()
	_, there := st.collected[id]
	if there = there && !st.closed; there {
		st.running.Add(1)
		st.collected[id] = store.Result{ID: id, State: store.Ended} // until the log says so too
	}
	st.mu.Unlock()
	if !there {
		return
	}
	defer st.running.Done()
	if st.post(store.Op{Kind: store.OpCancel, ID: id}) {
		st.mu.Lock()
		delete(st.collected, id)
		st.mu.Unlock()
	}
}

// pulse appends an entry that only says that time has passed and that this process lives.
func (st *state) pulse() {
	r := st.newRequest()
	r.tick = true
	if st.do(st.life, r) == nil {
		st.free(r)
	}
}

// keepUp says every few seconds that this process lives, unless its other entries do. So it also reads what others have
// appended.
func (st *state) keepUp() {
	st.remember(false) // it may be killed before it does so again
	st.join()
	kept := st.store.clock.Uptime()
	for wrote := kept; sleep.For(st.life, max(st.quietFor(), leastQuiet)); {
		up := st.store.clock.Uptime()
		if up-wrote >= rememberEvery {
			st.remember(false)
			wrote = up
		}
		if up-kept >= keepEvery && st.keep() {
			kept = up
		}
		if st.join(); st.quietFor() < leastQuiet {
			st.pulse()
		}
	}
}

const (
	// leastQuiet is how long it looks away at least.
	leastQuiet = 100 * time.Millisecond
	// settleEvery is how often a process is heard of whose share is not settled yet.
	settleEvery = time.Second
)

// quietFor returns how long this process need not be heard of.
func (st *state) quietFor() time.Duration {
	st.mu.Lock()
	defer st.mu.Unlock()
	every := st.store.touch
	if st.out != nil {
		return every
	}
	if is, m := st.rep.Share(st.process); is != 0 && !m.Settled {
		every = min(every, settleEvery)
	}
	m, _ := st.rep.Member(st.process)
	return every - st.nowAt(st.store.clock.Uptime()).Sub(m.Heard)
}

// Pools that nobody uses any more do not stay in the engine. One is kept for keepFor, or twice its longest window, after it was
// used, so that nothing counts any more when it goes.
const (
	keepFor   = sharedlog.KeepNew
	keepEvery = time.Hour
)

// keep has the engine keep the log for another while, and delete it then. It reports whether that is done.
func (st *state) keep() bool {
	st.mu.Lock()
	core, at, unused := st.rep.Pool(), st.at, keepFor
	if core != nil && st.out == nil {
		for _, l := range core.Stated().Limits {
			unused = max(unused, 2*l.Window)
		}
	}
	st.mu.Unlock()
	if core == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(st.life, st.patience())
	defer cancel()
	return st.log.Keep(ctx, at, unused) == nil
}

// tell tells sessions of this process that their requests were decided.
func (st *state) tell(ids []store.ID) {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n].Session == ids[0].Session {
			n++
		}
		st.mu.Lock()
		h := st.sessions[ids[0].Session]
		st.mu.Unlock()
		if h != nil {
			h.tell(ids[:n])
		}
		ids = ids[n:]
	}
}

// mayWait reports whether one of some operations can be left waiting.
func mayWait(ops []store.Op) bool {
	for i := range ops {
		if op := &ops[i]; op.Wait != 0 && (op.Kind == store.OpAcquire || op.Kind == store.OpRenew) {
			return true
		}
	}
	return false
}

// listen has other processes' entries wake this one, before a request of it may wait. If that fails, it looks every round.
func (st *state) listen(ctx context.Context) {
	if !st.listening.Load() {
		st.opening.Lock()
		defer st.opening.Unlock()
		st.listenLocked(ctx)
	}
}

// listenLocked is listen for callers that hold st.opening.
func (st *state) listenLocked(ctx context.Context) {
	up := st.store.clock.Uptime()
	if st.listening.Load() || st.life.Err() != nil || st.listened != 0 && up-st.listened < rounds {
		return
	}
	st.listened = up
	heard := make(chan struct{})
	st.running.Go(func() {
		woken, err := st.log.Watch(st.life, st.process)
		st.listening.Store(err == nil)
		close(heard)
		if err != nil {
			return
		}
		for range woken {
			st.catchUp()
		}
		st.listening.Store(false)
	})
	asked, cancel := context.WithTimeout(ctx, st.patience()/2)
	defer cancel()
	select {
	case <-heard:
	case <-asked.Done():
	}
}
