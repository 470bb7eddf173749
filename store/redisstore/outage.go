package redisstore

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// outage is the time in which the store cannot be reached. All of it is under the state's lock.
type outage struct {
	since   store.Time
	first   error // why it began
	err     error // why it goes on
	granted int64
	base    uint64 // numbers of tickets that are let go here come after it; 0: there are none yet
	last    uint64 // how many were given
	queued  uint64 // to those who wait
	pass    uint64 // the number that sessions are moved past on an attempt to come back
	passed  uint64 // and may have been on an earlier one
	top     uint64 // what was given until then is not above it; 0: there was none that was heard

	isle    *isle // nil: the process has no share
	held    map[store.ID]*ticket
	heardOf map[store.ID]bool               // those that the store may have heard of on an attempt to come back
	due     store.Time                      // when the last of those that were let go is over
	user    who                             // the last that was let go something
	users   map[uint64]who                  // an agent of each session that was let go something
	loose   map[meterKey][]policy.Lingering // charges of which it is not known whether the store has them
	line    []*islander                     // who waits here, in order
	sayings []saying                        // what was said of the store's tickets
	again   []store.Op                      // acquires that were sent on the way back, and may not have arrived
	paused  store.Time                      // until then nobody is let go: the provider has said so
	cause   string
	halted  bool // on the way back: nobody is let go
	timer   *time.Timer
}

// saying is an operation that the store is told when it is back.
type saying struct {
	op store.Op
	at store.Time
}

// islander is one who waits until the process has room of its own.
type islander struct {
	tk       *ticket
	deadline store.Time // 0: none
	retry    store.Time // 0: not before the store is back
}

// who speaks for a session.
type who struct {
	agent string
	class uint8
}

// span is a range of numbers.
type span struct{ from, to uint64 }

const (
	maxSayings = 4096
	maxSpans   = 256
	localGap   = 1 << 20 // between what the store may have given by now and what is given here
	queuedGap  = 1 << 32 // those who wait are numbered apart, so that they can come after all who do not
	localSpan  = 1 << 33
)

// lose takes in that the store cannot be reached. The batch is the one whose call has failed.
func (st *state) lose(err error, b *call) {
	st.mu.Lock()
	if b.unknown {
		b.giveUp()
		st.void = append(st.void, b)
	}
	var cut []*request
	var told []store.ID
	var ring func()
	first := st.lost == nil && !st.closed
	if first {
		now := st.nowLocked()
		st.lost = &outage{since: now, first: err, err: err, held: map[store.ID]*ticket{}, users: map[uint64]who{}, heardOf: map[store.ID]bool{}, isle: st.newIsle(now, nil)}
		st.isLost.Store(true)
		cut = st.line.cut(true)
		// Those who wait in Redis stay there. Those who would rather not find out.
		told = st.waitingLocked(func(h *handle) bool { return st.modeOf(h) != store.FailShare })
		ring = st.alarms(false)
		st.running.Go(st.comeBack)
	}
	closed := st.closed
	st.mu.Unlock()
	if closed {
		b.fail(st, store.ErrClosed)
		return
	}
	reqs := b.reqs
	b.reqs = nil
	for _, q := range append(reqs, cut...) {
		q.lost = true
		if q.nobody {
			st.post(q.ops)
		}
		q.turn.CompareAndSwap(turnAsked, turnAnswered)
		q.finish()
	}
	if first {
		st.tell(told)
		ring()
	}
}

// giveUp keeps of a batch what has to be known when it turns out that its call was made.
func (b *call) giveUp() {
	b.ops = nil
	for i, q := range b.reqs {
		for k := range q.ops {
			op := store.Op{Kind: q.ops[k].Kind, ID: q.ops[k].ID}
			if q.handle == nil {
				op.Kind = store.OpForget // nothing to undo
			}
			b.ops = append(b.ops, op)
		}
		b.places[i] = nil
	}
}

// modeOf is what a session does while the store is lost. The state is locked.
func (st *state) modeOf(h *handle) store.OnFailure {
	if h.spec.OnFailure == store.FailShare && (!h.member || st.lost != nil && st.lost.isle == nil) {
		return store.FailClosed
	}
	return h.spec.OnFailure
}

// alarms returns what tells all sessions of an outage. The state is locked.
func (st *state) alarms(over bool) func() {
	type call struct {
		f func(store.Outage, bool)
		o store.Outage
	}
	var calls []call
	for _, h := range st.sessions {
		if f := h.alarm.Load(); f != nil {
			calls = append(calls, call{*f, st.outageOf(h)})
		}
	}
	return func() {
		for _, c := range calls {
			c.f(c.o, over)
		}
	}
}

// outageOf describes the outage to a session. The state is locked.
func (st *state) outageOf(h *handle) store.Outage {
	o := st.lost
	if o == nil {
		return store.Outage{}
	}
	return store.Outage{Since: o.since, Why: redisconn.Why(o.err), Mode: st.modeOf(h), Granted: o.granted}
}

// newID names a ticket that is let go here, or waits here. The state is locked.
func (st *state) newID(session uint64, waits bool) store.ID {
	o := st.lost
	st.rebase()
	if waits {
		o.queued++
		return store.ID{Session: session, N: o.base + queuedGap + o.queued}
	}
	o.last++
	return store.ID{Session: session, N: o.base + o.last}
}

// rebase chooses which numbers are given here: higher ones than the store may have given, and than sessions may have been
// moved past. The state is locked.
func (st *state) rebase() {
	o := st.lost
	if o.base != 0 {
		return
	}
	n := len(st.alone)
	o.last, o.queued = 0, 0
	if o.top != 0 { // the store has given none since
		o.base = o.top + localGap
		st.alone[n-1].to = o.base + localSpan
		return
	}
	o.base = st.highest + localGap
	if n > 0 {
		o.base = max(o.base, st.alone[n-1].to+localGap)
	}
	if st.alone = append(st.alone, span{o.base, o.base + localSpan}); len(st.alone) > maxSpans {
		st.alone = st.alone[1:]
	}
}

// passing chooses the number that sessions are moved past on the way back. The store goes on from there, so who begins to wait
// here while the attempt is under way gets a number far above it. The state is locked.
func (st *state) passing() uint64 {
	st.rebase()
	o := st.lost
	o.pass = o.base + queuedGap + o.queued + 1
	o.queued += 1 + localGap
	last := &st.alone[len(st.alone)-1]
	last.to = max(last.to, o.base+queuedGap+o.queued+localGap)
	return o.pass
}

// isLocal reports whether a ticket was let go here.
func (st *state) isLocal(id store.ID) bool {
	if id.N < localGap || processOf(id.Session) != st.store.process {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.isLocalLocked(id)
}

func (st *state) isLocalLocked(id store.ID) bool {
	for _, s := range st.alone {
		if id.N > s.from && id.N < s.to {
			return true
		}
	}
	return false
}

// excuse makes of the answer that there is no such ticket that it has ended: it was let go here, and
// the store has never heard of it.
func excuse(op *store.Op) {
	switch op.Kind {
	case store.OpAnswer:
		op.Result.State = store.Granted
	case store.OpClose, store.OpCancel, store.OpPoll, store.OpRenew:
		op.Result.State = store.Ended
	}
}

// put remembers operations for when the store is back.
func (o *outage) put(now store.Time, ops ...store.Op) {
	for i := range ops {
		op := ops[i]
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			if op.TTL == 0 {
				continue
			}
		default:
			continue
		}
		if len(o.sayings) < maxSayings { // else tickets end with their time to live
			op.Result = store.Result{}
			o.sayings = append(o.sayings, saying{op, now})
		}
	}
}

// said is what the store is told of something that was said a while ago.
func (s *saying) said(now store.Time) store.Op {
	op := s.op
	late := now.Sub(s.at)
	if op.RetryAfter > 0 {
		op.RetryAfter = max(op.RetryAfter-late, time.Millisecond)
	}
	if len(op.Observed) > 0 {
		list := make([]store.Observed, len(op.Observed))
		for i, o := range op.Observed {
			list[i] = store.Observed{Limit: o.Limit, Size: o.Size, Remaining: -1, ResetIn: -1} // the rest was true then
		}
		op.Observed = list
	}
	if op.Kind == store.OpPoll {
		op.TTL = max(op.TTL-late, time.Millisecond)
	}
	return op
}

// leave forgets who waits here for a session that ends.
func (o *outage) leave(session uint64) {
	kept := o.line[:0]
	for _, w := range o.line {
		if w.tk.id.Session != session {
			kept = append(kept, w)
		}
	}
	clear(o.line[len(kept):])
	o.line = kept
}

func (o *outage) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// each visits the tickets that are known here only.
func (o *outage) each(f func(*ticket)) {
	for _, tk := range o.held {
		f(tk)
	}
	for _, w := range o.line {
		f(w.tk)
	}
}

// error is what those are told who get nothing.
func (o *outage) error() error {
	err := unavailable(o.err)
	if errors.Is(err, redisconn.ErrClosed) {
		return store.ErrClosed
	}
	return err
}
