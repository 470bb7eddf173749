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

// Package internal/outage decides what a process does without the store. This file notices that the store is lost, hands
// over to that package, and tries to reach the store again.

// loss is why and since when the store is out of reach. st.mu guards it.
type loss struct {
	since store.Time
	first error       // why the outage began
	err   error       // why it goes on
	timer *time.Timer // calls serve when time may have made room in the share; nil: not needed yet
}

func (l *loss) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// error returns the error for callers that are refused.
func (l *loss) error() error {
	err := unavailable(l.err)
	if errors.Is(err, redisconn.ErrClosed) {
		return store.ErrClosed
	}
	return err
}

// lossError returns the error for callers that cannot go on in an outage, nil if there is none.
func (st *state) lossError() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.lost == nil {
		return nil
	}
	return st.lost.error()
}

// lose begins an outage after call b failed. All its requests, and all pending ones, are decided without the store.
func (st *state) lose(err error, b *call) {
	st.mu.Lock()
	reqs := b.reqs
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
		cut = st.combiner.cut(true)
		// Tickets that wait in Redis keep waiting there, and compete for the share as well. Sessions that do not use the
		// share are woken: their callers poll, and learn of the outage.
		told = st.proc.Waiting(func(s *outage.Session) bool { return st.proc.Mode(s) != store.FailShare })
		told = append(told, st.serveLocked(now)...)
		ring = st.alarms(false)
		st.running.Go(st.comeBack)
	}
	closed := st.closed
	st.mu.Unlock()
	if closed {
		failAll(reqs, store.ErrClosed)
		return
	}
	for _, q := range append(reqs, cut...) {
		q.lost = true
		if q.posted {
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

// giveUp keeps kinds and ids of a call's operations, to undo them if it turns out that the script carried out the call.
func (b *call) giveUp() {
	b.ops = nil
	for _, q := range b.reqs {
		for k := range q.ops {
			op := store.Op{Kind: q.ops[k].Kind, ID: q.ops[k].ID}
			if q.handle == nil {
				op.Kind = store.OpForget // operations of the process itself need no undo
			}
			b.ops = append(b.ops, op)
		}
	}
	b.reqs = nil
}

// alarms returns a function that tells all sessions that the outage began or is over. The caller holds st.mu, and calls
// the function without it.
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

// outageOf describes the outage to a session. The caller holds st.mu.
func (st *state) outageOf(h *handle) (o store.Outage) {
	if st.lost != nil {
		o = st.proc.Outage(&h.Session)
		o.Why = redisconn.Why(st.lost.err)
	}
	return o
}

// decideAlone decides a session's operations without the store. It returns errBack if the store is in reach again.
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
	if !st.proc.Decide(&h.Session, ops, now) {
		return nil, store.Kept(st.lost.error())
	}
	return st.serveLocked(now), nil
}

// serve grants waiting tickets when time may have made room in the share.
func (st *state) serve() {
	st.mu.Lock()
	told := st.serveLocked(st.nowLocked())
	st.mu.Unlock()
	st.tell(told)
}

// serveLocked grants the waiting tickets that have room, and sets a timer for the others. It returns the tickets whose
// sessions have to be told.
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

// The pauses between attempts to reach a lost store. They double from firstTry to lastTry, with jitter because a whole
// fleet may have lost it.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = time.Second
)

// comeBack tries to reach the store until it succeeds.
func (st *state) comeBack() {
	delay := firstTry
	for {
		select {
		case <-time.After(delay/2 + rand.N(delay)): //nolint:gosec // it spreads, it guards nothing
		case <-st.life.Done():
			return
		}
		if st.tryBack() {
			st.askAll() // the store may have given up some tickets meanwhile
			st.tick()
			return
		}
		delay = min(2*delay, lastTry)
	}
}

// tryBack resolves calls with an unknown outcome, and tells the store what has happened meanwhile. It reports whether
// the store is back.
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
	at, limits := position{st.version, st.epoch, st.sequence}, st.limits()
	st.mu.Unlock()
	sent := uptime()
	for n := 0; n < len(back.Ops); n += maxTogether {
		r, unknown, err := st.sendOwn(back.Ops[n:min(n+maxTogether, len(back.Ops))], at, limits)
		if err != nil || r.what != "ok" {
			if unknown { // nothing to undo: all operations have ids, so the next attempt repeats them safely
				st.mu.Lock()
				st.void = append(st.void, &call{pipe: st.control})
				st.mu.Unlock()
				st.control = newPipe()
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

// stillLost records why the outage goes on.
func (st *state) stillLost(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.lost != nil && err != nil {
		st.lost.err = err
	}
}

// resolve finds out whether the script carried out the calls that were not answered, and voids those that it did not, so
// that a late copy has no effect. It reports whether all outcomes are known.
func (st *state) resolve() bool {
	for {
		st.mu.Lock()
		if len(st.void) == 0 {
			st.mu.Unlock()
			return true
		}
		b := st.void[0]
		st.mu.Unlock()
		text, err := st.send(b.pipe, string(appendArray(nil, 0)), position{}, "void", 0, st.patience())
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

// undo returns cancels for the tickets that a call got for callers that were answered without it.
func (b *call) undo() (ops []store.Op) {
	for i := range b.ops {
		op := &b.ops[i]
		if op.Kind == store.OpAcquire && op.ID.N == 0 && (op.Result.State == store.Granted || op.Result.State == store.Waiting) {
			ops = append(ops, store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
	return ops
}

// notYet goes on without the store after a failed attempt to come back. heard reports that the store may have carried out
// a part of it.
func (st *state) notYet(heard bool, err error) {
	st.stillLost(err)
	st.mu.Lock()
	now := st.nowLocked()
	st.proc.Stay(heard, now, st.clock.rtt)
	told := st.serveLocked(now)
	st.mu.Unlock()
	st.tell(told)
}

// backSince reports whether the store has come back after uptime up. A call that began before then and failed says
// nothing about the store now.
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
	st.combiner.cut(false)
	st.lost, st.backAt = nil, uptime()
	st.isLost.Store(false)
	st.mu.Unlock()
	for chunk := range slices.Chunk(later, maxTogether) {
		st.post(chunk)
	}
	st.tell(told)
	ring()
}
