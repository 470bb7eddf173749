package redisstore

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// What a process does without the store is decided in internal/outage. This file notices that the store is
// lost, calls it, and makes the calls that find the store again.

// loss is why and since when the store cannot be reached. It is under the state's lock.
type loss struct {
	since store.Time
	first error       // why it began
	err   error       // why it goes on
	timer *time.Timer // when time may have made room here; nil: there was no need yet
}

func (l *loss) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// error is what callers are told that get nothing.
func (l *loss) error() error {
	err := unavailable(l.err)
	if errors.Is(err, redisconn.ErrClosed) {
		return store.ErrClosed
	}
	return err
}

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
		st.lost = &loss{since: now, first: err, err: err}
		st.proc.Begin(now, st.clock.rtt)
		st.isLost.Store(true)
		cut = st.line.cut(true)
		// Those who wait in Redis stay there, and wait for the share as well. Those who would rather not find out.
		told = st.proc.Waiting(func(s *outage.Session) bool { return st.proc.Mode(s) != store.FailShare })
		told = append(told, st.serveLocked(now)...)
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

// alarms returns what tells all sessions of an outage. The state is locked.
func (st *state) alarms(over bool) func() {
	var calls []func()
	for _, h := range st.sessions {
		if f := h.alarm.Load(); f != nil {
			o := st.outageOf(h)
			calls = append(calls, func() { (*f)(o, over) })
		}
	}
	return func() {
		for _, f := range calls {
			f()
		}
	}
}

// outageOf describes the outage to a session. The state is locked.
func (st *state) outageOf(h *handle) (o store.Outage) {
	if st.lost != nil {
		o = st.proc.Outage(&h.Session)
		o.Why = redisconn.Why(st.lost.err)
	}
	return o
}

// decideAlone decides a session's operations without the store. It returns errBack if the store is there
// again.
func (st *state) decideAlone(h *handle, ops []store.Op) error {
	st.mu.Lock()
	told, err := st.decideLocked(h, ops)
	st.mu.Unlock()
	st.tell(told)
	return err
}

func (st *state) decideLocked(h *handle, ops []store.Op) (told []store.ID, err error) {
	switch {
	case st.lost == nil:
		return nil, errBack
	case h == nil:
		return nil, st.lost.error()
	}
	now := st.nowLocked()
	if !st.proc.Decide(&h.Session, *h.places.Load(), ops, now) {
		return nil, store.Kept(st.lost.error())
	}
	return st.serveLocked(now), nil
}

// serve is called when time may have made room here.
func (st *state) serve() {
	st.mu.Lock()
	told := st.serveLocked(st.nowLocked())
	st.mu.Unlock()
	st.tell(told)
}

// serveLocked lets go who has room, and sets the clock for who has not. It returns who has to be told.
func (st *state) serveLocked(now store.Time) []store.ID {
	if st.lost == nil || st.closed {
		return nil
	}
	told, next := st.proc.Serve(now)
	if next != 0 {
		st.lost.stop()
		st.lost.timer = time.AfterFunc(max(next.Sub(now), time.Millisecond), st.serve)
	}
	return told
}

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
	back := st.proc.Return(st.nowLocked())
	at := stand{st.version, st.epoch, st.sequence}
	st.mu.Unlock()
	sent := uptime()
	for n := 0; n < len(back.Ops); n += maxTogether {
		ops := back.Ops[n:min(n+maxTogether, len(back.Ops))]
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
			st.notYet(unknown || n > 0, err)
			return false
		}
		st.took(r.now, r.sequence, sent)
		st.tell(r.decided)
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
		if err == nil && r.what == "ok" {
			st.proc.Put(st.nowLocked(), b.undo()...)
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

// notYet goes on alone after an attempt to come back, of which the store may have heard some.
func (st *state) notYet(heard bool, err error) {
	st.stillLost(err)
	st.mu.Lock()
	now := st.nowLocked()
	st.proc.Stay(heard, now, st.clock.rtt)
	told := st.serveLocked(now)
	st.mu.Unlock()
	st.tell(told)
}

// backSince reports whether the store has come back since an uptime: what failed before that says
// nothing.
func (st *state) backSince(up time.Duration) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.lost == nil && st.backAt > up
}

// isBack ends the outage.
func (st *state) isBack(b *outage.Return) {
	st.mu.Lock()
	st.lost.stop()
	st.wasSlow(st.lost)
	ring := st.alarms(true)
	told, later := st.proc.End(b)
	st.line.cut(false)
	st.lost, st.backAt = nil, uptime()
	st.isLost.Store(false)
	st.mu.Unlock()
	for part := range slices.Chunk(later, maxTogether) {
		st.post(part)
	}
	st.tell(told)
	ring()
}
