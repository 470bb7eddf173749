package redisstore

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// How often a store that is lost is tried: soon, then twice as long each time, with jitter, because a
// whole fleet may have lost it.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = time.Second
)

// comeBack tries to reach the store until it can.
func (st *state) comeBack() {
	pause := firstTry
	for {
		select {
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // it spreads, it guards nothing
		case <-st.life.Done():
			return
		}
		if st.tryBack() {
			st.askAll() // some may have been given up meanwhile
			st.tick()
			return
		}
		pause = min(2*pause, lastTry)
	}
}

// tryBack settles what was left open, and tells the store what has happened meanwhile. It reports whether the
// store is back.
func (st *state) tryBack() bool {
	if !st.resolve() {
		return false
	}
	st.whole.Lock()
	defer st.whole.Unlock()
	if err := st.meet(nil); err != nil {
		st.stillLost(err)
		return false
	}
	st.mu.Lock()
	back := st.newReturn()
	at := stand{st.version, st.epoch, st.sequence}
	st.mu.Unlock()
	sent := uptime()
	for n := 0; n < len(back.ops); n += maxTogether {
		ops := back.ops[n:min(n+maxTogether, len(back.ops))]
		st.control.seq++
		b := &call{pipe: st.control}
		b.write(ops)
		text, unknown, err := st.sendTwice(b.pipe, b.blob, at, 0)
		var r reply
		if err == nil {
			r, err = b.read(text)
		}
		if err != nil || r.what != "ok" {
			if unknown {
				*b = call{pipe: b.pipe} // all of it has ids: what was done is not done again
				st.control = newPipe()
				st.mu.Lock()
				st.void = append(st.void, b)
				st.mu.Unlock()
			}
			st.notYet(back, unknown || n > 0, err)
			return false
		}
		st.took(r.now, r.sequence, sent)
		st.decided(r.decided)
		sent = uptime()
	}
	st.isBack(back)
	return true
}

// stillLost notes why.
func (st *state) stillLost(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.lost != nil && err != nil {
		st.lost.err = err
	}
}

// resolve finds out whether calls were made that were not answered, and sees to it that those that were not
// never will be. It reports whether all is known.
func (st *state) resolve() bool {
	for {
		st.mu.Lock()
		if len(st.void) == 0 {
			st.mu.Unlock()
			return true
		}
		b := st.void[0]
		st.mu.Unlock()
		text, err := st.send(b.pipe, string(appendArray(nil, 0)), stand{}, "void", 0, st.patience())
		if err != nil {
			st.stillLost(err)
			return false
		}
		r, err := b.read(text)
		st.mu.Lock()
		st.void = st.void[1:]
		if err == nil && r.what == "ok" && st.lost != nil {
			st.lost.put(st.nowLocked(), b.undo()...)
		}
		st.mu.Unlock()
	}
}

// undo gives back what a batch has got for callers that were answered otherwise.
func (b *call) undo() (ops []store.Op) {
	for i := range b.ops {
		op := &b.ops[i]
		if op.Kind == store.OpAcquire && op.ID.N == 0 && (op.Result.State == store.Granted || op.Result.State == store.Waiting) {
			ops = append(ops, store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
	return ops
}

// homecoming is what a member says when it is back.
type homecoming struct {
	ops   []store.Op
	said  int         // of what was to be said, so much is in it
	touch int         // which of them is the touch; -1: none
	first int         // of those who waited here
	line  []*islander // they
}

// newReturn works out what the store has to be told: what was let go and still counts, by force; then
// what was said of tickets; then that the member is there; and then who waited here asks again.
// From now on nobody is let go here. The state is locked.
func (st *state) newReturn() *homecoming {
	o := st.lost
	now := st.nowLocked()
	o.halted = true
	b := &homecoming{touch: -1, said: len(o.sayings)}
	asked := map[store.ID]bool{} // on an attempt before, not by force
	var charges []store.Op
	for _, op := range o.again {
		if !op.Force {
			asked[op.ID] = true
		} else if o.held[op.ID] == nil {
			charges = append(charges, op)
		}
	}
	for id, tk := range o.held {
		if tk.due <= now {
			delete(o.held, id)
			continue
		}
		op := tk.forced(now)
		if asked[id] { // it may wait there under this id
			b.ops = append(b.ops, store.Op{Kind: store.OpCancel, ID: id})
		}
		switch {
		case o.heardOf[tk.instead]:
			continue // it is among those that are said again
		case asked[id] || id.N <= o.passed && !o.heardOf[id]: // the store would not take it for a new one
			tk.instead = st.newID(st.memberID().Session, false)
			op.ID, op.Tie = tk.instead, store.TieNone // that session renews nothing
		}
		charges = append(charges, op)
	}
	charges = append(charges, st.standingOps(now)...)
	slices.SortFunc(charges, byID)
	b.ops = append(b.ops, charges...)
	for id, tk := range o.held {
		if tk.answered != 0 && !asked[id] {
			b.ops = append(b.ops, store.Op{Kind: store.OpAnswer, ID: id})
		}
	}
	for i := range o.sayings {
		b.ops = append(b.ops, o.sayings[i].said(now))
	}
	if o.paused > now {
		b.ops = append(b.ops, store.Op{Kind: store.OpPause, RetryAfter: o.paused.Sub(now), Cause: o.cause})
	}
	if st.member.users > 0 {
		b.touch = len(b.ops)
		b.ops = append(b.ops, st.touchOp())
	}
	asks := st.askAgain(b, charges, now)
	o.again = append(charges, asks...)
	return b
}

func byID(a, b store.Op) int {
	return cmp.Or(cmp.Compare(a.ID.Session, b.ID.Session), cmp.Compare(a.ID.N, b.ID.N))
}

// standingOps charges what requests that are over still take. The state is locked.
func (st *state) standingOps(now store.Time) (ops []store.Op) {
	o := st.lost
	if o.isle == nil {
		return nil
	}
	type scope struct{ model, key string }
	at := map[scope]int{}
	for k, sum := range o.isle.standing(now) {
		s := scope{k.model, k.key}
		i, there := at[s]
		if !there {
			i = len(ops)
			at[s] = i
			ops = append(ops, store.Op{
				Kind: store.OpAcquire, Agent: o.user.agent, Class: o.user.class, Model: s.model, Key: s.key,
				Force: true, Spent: true, TTL: time.Second,
			})
		}
		ops[i].Amounts[k.limit] += min(sum, store.MaxAmount)
	}
	for i := range ops {
		ops[i].ID = st.newID(st.memberID().Session, false)
	}
	return ops
}

// askAgain has those ask who waited here, and sees to it that no number comes again. Numbers have to come
// in order: who cannot be asked for under its own is told to ask by itself. The state is locked.
func (st *state) askAgain(b *homecoming, charges []store.Op, now store.Time) (asks []store.Op) {
	o := st.lost
	high := map[uint64]uint64{}
	for i := range charges {
		high[charges[i].ID.Session] = max(high[charges[i].ID.Session], charges[i].ID.N)
	}
	b.first = len(b.ops)
	b.line = slices.Clone(o.line)
	slices.SortFunc(b.line, func(a, b *islander) int { return cmp.Compare(a.tk.id.N, b.tk.id.N) })
	b.line = slices.DeleteFunc(b.line, func(w *islander) bool {
		id := w.tk.id
		if id.N <= high[id.Session] || !st.isLocalLocked(id) || w.deadline != 0 && w.deadline <= now {
			return true
		}
		high[id.Session] = id.N
		op := w.tk.again()
		op.Wait, op.Alive, op.Spent = -1, waitersLive, w.tk.once
		if w.deadline != 0 {
			op.Wait = w.deadline.Sub(now)
		}
		asks = append(asks, op)
		return false
	})
	b.ops = append(b.ops, asks...)
	users := map[uint64]who{}
	for _, h := range st.sessions { // also those of whom nobody asked meanwhile: the store may have forgotten their numbers
		if h.user.agent != "" && h.spec.OnFailure != store.FailOpen {
			users[h.session] = h.user
		}
	}
	for session, user := range o.users {
		users[session] = user
	}
	n := st.passing()
	for session, user := range users {
		b.ops = append(b.ops, user.pass(store.ID{Session: session, N: n})...)
	}
	return asks
}

// pass moves a session past a number, so that none below it is given out.
func (u who) pass(id store.ID) []store.Op {
	return []store.Op{
		{Kind: store.OpAcquire, ID: id, Agent: u.agent, Class: u.class, Force: true, TTL: time.Second},
		{Kind: store.OpCancel, ID: id},
	}
}

// notYet goes on alone after an attempt to come back. If the store may have heard of some of it, it may
// count on the member, and may have given away what it had: the member begins anew.
func (st *state) notYet(b *homecoming, heard bool, err error) {
	st.mu.Lock()
	o := st.lost
	now := st.nowLocked()
	if err != nil {
		o.err = err
	}
	o.halted = false
	if !heard {
		o.again = slices.DeleteFunc(o.again, func(op store.Op) bool { return !o.heardOf[op.ID] })
	} else {
		for _, op := range o.again {
			o.heardOf[op.ID] = true
		}
		o.passed, o.top, o.base = o.pass, o.base+queuedGap+o.queued, 0
		if o.isle != nil {
			st.loosen(now)
			o.isle = st.newIsle(now, o.loose)
		}
	}
	told := st.serveHere(now)
	st.mu.Unlock()
	st.tell(told)
}

// loosen turns what was let go here into charges of which it is not known whether the store has them.
// The state is locked.
func (st *state) loosen(now store.Time) {
	o := st.lost
	if o.loose == nil {
		o.loose = map[meterKey][]policy.Lingering{}
	}
	for k, list := range o.loose {
		d := &st.limits[k.limit].Def
		o.loose[k] = slices.DeleteFunc(list, func(s policy.Lingering) bool { return s.Bound+2*d.Window <= int64(now) })
	}
	for k, sum := range o.isle.standing(now) {
		l := &st.limits[k.limit]
		bound := int64(now) + l.Most
		if l.Guard == meter.Strict || l.Late {
			bound = int64(max(now, o.due))
		}
		o.loose[k] = append(o.loose[k], policy.Lingering{Amount: sum, Bound: bound})
	}
	for _, tk := range o.held {
		if tk.number < 0 {
			continue // it is among them since before
		}
		for i := range st.spec.Limits {
			if l := &st.limits[i]; tk.amounts[i] > 0 && l.shared {
				k := l.keyOf(i, tk)
				o.loose[k] = append(o.loose[k], policy.Lingering{Amount: tk.amounts[i], Bound: int64(tk.due)})
			}
		}
		tk.number = -1
	}
}

// backSince reports whether the store has come back since an uptime: what failed before that says
// nothing.
func (st *state) backSince(up time.Duration) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.lost == nil && st.backAt > up
}

// isBack ends the outage.
func (st *state) isBack(b *homecoming) {
	st.mu.Lock()
	o := st.lost
	if b.touch >= 0 && st.member.users > 0 {
		st.touched(&b.ops[b.touch].Result)
	}
	for id, tk := range o.held {
		tk.number = -1
		st.ledger.open[id] = tk
	}
	var told []store.ID
	for _, w := range o.line { // also those who came while this was under way
		told = append(told, w.tk.id)
	}
	for i, w := range b.line {
		op := &b.ops[b.first+i]
		if op.Result.State == store.Granted || op.Result.State == store.Waiting {
			st.waitsLocked(w.tk, op.Wait, op.Result.Now)
		}
		if op.Result.State == store.Waiting {
			told = slices.DeleteFunc(told, func(id store.ID) bool { return id == w.tk.id })
		}
	}
	later := make([]store.Op, 0, len(o.sayings)-b.said)
	for _, s := range o.sayings[b.said:] {
		later = append(later, s.op)
	}
	for i := range b.ops {
		if id := b.ops[i].ID; processOf(id.Session) == st.store.process {
			st.highest = max(st.highest, id.N)
		}
	}
	o.stop()
	st.wasSlow(o)
	ring := st.alarms(true)
	st.line.cut(false)
	st.lost, st.backAt = nil, uptime()
	st.isLost.Store(false)
	st.mu.Unlock()
	for len(later) > 0 {
		n := min(len(later), maxTogether)
		st.post(later[:n])
		later = later[n:]
	}
	sortIDs(told)
	st.tell(told)
	ring()
}
