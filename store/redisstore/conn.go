package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// pipe makes calls whose order the script knows: the reply of each is kept until the next has come,
// so that one that is sent again is answered and not done again.
type pipe struct {
	line uint64
	seq  int64
	had  answered
}

// answered is the latest call of a process that was answered, on whichever line. A pool that does not know of it has lost memory, also
// if others have brought its sequence further since.
type answered struct {
	line                 uint64
	seq, epoch, sequence int64
	at                   time.Duration // uptime
}

// remembered is for how long after its answer a call is surely still known to a pool, which keeps replies for ten minutes.
const remembered = 5 * time.Minute

// since returns the call that a pool of an epoch has to know of: its line and number, which is 0 if there is none.
func (a answered) since(epoch int64) (line uint64, seq int64) {
	if a.epoch != epoch || uptime()-a.at > remembered {
		return 0, 0
	}
	return a.line, a.seq
}

// later is the one of two that came later in the pool.
func (a answered) later(b answered) answered {
	if b.epoch > a.epoch || b.epoch == a.epoch && b.sequence > a.sequence {
		return b
	}
	return a
}

func newPipe() pipe { return pipe{line: newProcess()} }

// stand is what a caller thinks of a pool.
type stand struct{ version, epoch, sequence int64 }

// send makes one call.
func (st *state) send(p pipe, blob string, at stand, mode string, latest store.Time, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return st.store.redis.RunKeys(ctx, st.store.apply, st.keys(), st.args(p, at, latest, blob, mode)...)
}

// sendTwice makes a call, and makes it again if it has failed: more than once if there is the time, because
// of connections that were idle several may have broken. It reports whether it may have been made although
// there is an error.
func (st *state) sendTwice(p pipe, blob string, at stand, latest store.Time) (text string, unknown bool, err error) {
	began := time.Now()
	patience := st.patience()
	text, err = st.send(p, blob, at, "", latest, patience)
	fault := faultOf(err)
	unknown = isUnknown(fault)
	failed := time.Now()
	if err == nil {
		st.store.slow.took(failed.Sub(began))
	}
	if !isLoss(fault) || failed.Sub(began) >= patience {
		return text, unknown, err
	}
	for {
		time.Sleep(againAfter/4 + rand.N(againAfter)) //nolint:gosec // it spreads, it guards nothing
		left := againWithin - time.Since(failed)
		text, err = st.send(p, blob, at, "", latest, left)
		fault = faultOf(err)
		unknown = unknown || isUnknown(fault)
		if !isLoss(fault) || time.Since(failed)+againAfter >= againWithin {
			return text, unknown && err != nil, err
		}
	}
}

// faultOf says what an error means. One that does not come from the server is about what it said.
func faultOf(err error) redisconn.Fault {
	if e, ok := errors.AsType[*redisconn.Error](err); ok {
		return e.Fault
	}
	if err == nil {
		return redisconn.FaultNone
	}
	return redisconn.FaultScript
}

// isLoss reports that a fault means that the store cannot be used for now.
func isLoss(f redisconn.Fault) bool {
	return f == redisconn.FaultUnreachable || f == redisconn.FaultNotRun
}

func isUnknown(f redisconn.Fault) bool {
	return f == redisconn.FaultUnreachable || f == redisconn.FaultClosed
}

// conn carries requests out.
type conn struct {
	state *state
	pipe
}

// call is one of the script, with the requests of several goroutines.
type call struct {
	pipe
	reqs    []*request
	places  []limitmap.Map // of each request
	form    batch          // all of them, as the script reads them
	blob    string         // the same
	at      stand
	latest  store.Time
	sent    time.Duration // uptime of the first attempt
	unknown bool          // it may have been made
	ops     []store.Op    // once it was given up: what was in it
}

// reply is what the script answers.
type reply struct {
	what                     string
	now, wake                store.Time
	version, sequence, epoch int64
	crowded                  bool       // somebody waits
	decided                  []store.ID // of this process
}

// carryOut makes one call for several requests.
func (ln *conn) carryOut(reqs []*request) {
	st := ln.state
	ln.seq++
	b := &call{pipe: ln.pipe, reqs: reqs, places: make([]limitmap.Map, len(reqs)), sent: uptime()}
	for tries := 0; ; tries++ {
		if !b.unknown {
			st.encode(b) // else it is sent as it was, so that it is answered if it was made
		}
		began := uptime()
		text, unknown, err := st.sendTwice(b.pipe, b.blob, b.at, b.latest)
		if b.unknown = unknown || b.unknown && err != nil; err != nil {
			if isLoss(faultOf(err)) && st.backSince(began) && tries < maxTries {
				continue // it was lost in an outage that is over
			}
			ln.failed(b, err)
			return
		}
		r, err := b.read(text)
		switch {
		case err != nil || r.what == "late": // nothing of Sluice's keeps this key
			ln.rename()
			b.fail(st, st.damaged(errGarbled.Error(), errGarbled))
			return
		case r.what == "ok":
			st.done(b, &r)
			return
		case tries == maxTries:
			b.fail(st, unavailable(errBusy))
			return
		}
		if err := st.catchUp(&r, b); err != nil {
			ln.failed(b, err)
			return
		}
	}
}

// rename gives the connection another key: of the old one it is not known what stands there.
func (ln *conn) rename() { ln.pipe = newPipe() }

// failed ends a batch whose call has failed for good.
func (ln *conn) failed(b *call, err error) {
	if fault := faultOf(err); fault != redisconn.FaultClosed && (b.unknown || isLoss(fault)) {
		ln.rename()
		ln.state.lose(err, b)
		return
	}
	b.fail(ln.state, ln.state.trouble(err))
}

// encode writes the batch as the pool stands by now. It was not made before.
func (st *state) encode(b *call) {
	st.mu.Lock()
	b.at = stand{st.version, st.epoch, st.sequence}
	b.had = st.had
	if b.latest = 0; !st.store.fixed {
		b.latest = st.clock.latest(uptime(), 4*st.patience())
	}
	st.mu.Unlock()
	b.form = st.newBatch()
	for i, q := range b.reqs {
		if q.handle != nil {
			b.places[i] = *q.handle.places.Load()
			if !st.store.fixed {
				q.stayAlive()
			}
		}
		for k := range q.ops {
			op := &q.ops[k]
			if b.places[i] != nil {
				there := *op
				op = &there
				b.places[i].Op(op)
			}
			b.form.add(op, k == 0)
		}
	}
	b.blob = string(b.form.bytes())
}

func (st *state) newBatch() batch {
	st.mu.Lock()
	defer st.mu.Unlock()
	return batch{
		long: st.store.longWay, limits: len(st.proc.Spec().Limits),
		apart: slices.ContainsFunc(st.proc.Spec().Limits, func(l store.Limit) bool { return l.Per&store.PerAgent != 0 }),
	}
}

// write is encode for operations of the process itself, which are the pool's.
func (b *call) write(ops []store.Op) {
	b.ops, b.form = ops, batch{}
	for i := range ops {
		b.form.add(&ops[i], false)
	}
	b.blob = string(b.form.bytes())
}

// read reads a reply into the requests, or into what is left of them.
func (b *call) read(text string) (r reply, err error) {
	in := reader{b: []byte(text)}
	in.array()
	r.what = in.text()
	r.now = store.Time(in.int())
	switch r.what {
	case "ok":
	case "none", "void", "late":
		return r, in.err()
	default:
		r.version, r.sequence, r.epoch = in.int(), in.int(), in.int()
		return r, in.err()
	}
	r.version, r.sequence, r.epoch = in.int(), in.int(), in.int()
	r.wake = store.Time(in.int())
	r.crowded = in.int() > 0
	for range in.array() / 2 {
		if in.bad { // or a number alone would take all memory
			break
		}
		r.decided = append(r.decided, store.ID{Session: uint64(in.int()), N: uint64(in.int())}) //nolint:gosec // never negative
	}
	if b.reqs == nil {
		b.form.results(&in, r.now, func(i int) *store.Result { return &b.ops[i].Result })
		return r, in.err()
	}
	into := make([]*store.Result, 0, len(b.form.forms))
	for _, q := range b.reqs {
		for k := range q.ops {
			into = append(into, &q.ops[k].Result)
		}
	}
	b.form.results(&in, r.now, func(i int) *store.Result { return into[i] })
	for i, q := range b.reqs {
		for k := range q.ops {
			b.places[i].Result(&q.ops[k].Result)
		}
	}
	return r, in.err()
}

func (r *reader) err() error {
	if r.bad {
		return errGarbled
	}
	return nil
}

// done takes in that a batch was made, and answers those who asked.
func (st *state) done(b *call, r *reply) {
	st.took(r.now, r.sequence, b.sent)
	st.crowded.Store(r.crowded)
	var undo []store.Op
	var told []store.ID
	st.mu.Lock()
	st.had = st.had.later(answered{b.line, b.seq, r.epoch, r.sequence, b.sent})
	for i, q := range b.reqs {
		left := !q.turn.CompareAndSwap(turnAsked, turnAnswered)
		if q.handle != nil {
			undo = append(undo, st.proc.Note(&q.handle.Session, q.ops, b.places[i], left)...)
		}
	}
	if st.lost != nil { // what begins to wait now takes part in the share
		told = st.serveLocked(st.nowLocked())
	}
	st.mu.Unlock()
	st.arm(r.now, r.wake)
	st.tell(r.decided)
	for _, q := range b.reqs {
		q.finish()
	}
	st.tell(told)
	st.post(undo)
}

// fail answers all with an error.
func (b *call) fail(st *state, err error) {
	if errors.Is(err, redisconn.ErrClosed) {
		err = store.ErrClosed
	}
	for _, q := range b.reqs {
		q.err = err
		q.turn.CompareAndSwap(turnAsked, turnAnswered)
		q.finish()
	}
}

// finish tells the caller, if there is one.
func (q *request) finish() {
	switch {
	case q.nobody:
		q.free()
	case q.turn.Load() == turnAnswered:
		q.done <- struct{}{}
	}
}

// stayAlive has requests that wait die with their process: it asks after them every few seconds.
func (q *request) stayAlive() {
	for i := range q.ops {
		if op := &q.ops[i]; op.Kind == store.OpAcquire && op.Alive == 0 {
			op.Alive = outage.WaitersLive
		}
	}
}

// jitter spreads processes that would wake at the same time.
func jitter() time.Duration { return rand.N(50 * time.Millisecond) } //nolint:gosec // it guards nothing
