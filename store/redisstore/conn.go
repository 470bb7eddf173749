package redisstore

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// pipe numbers the calls that one connection makes. Redis keeps the reply to the latest number, so that a call that is
// sent again gets its reply again and is not carried out twice.
type pipe struct {
	id  uint64
	seq int64 // of the latest call
	had answered
}

// answered is the latest call of a process that was answered, on any of its pipes. A pool that does not know of the call
// has lost data, even if other processes have moved its sequence further since.
type answered struct {
	pipe                 uint64
	seq, epoch, sequence int64
	at                   time.Duration // uptime
}

// remembered is how long after its answer a pool must still know a call. The script keeps replies for ten minutes.
const remembered = 5 * time.Minute

// since returns the call that a pool in this epoch has to know. The number is 0 if there is no such call.
func (a answered) since(epoch int64) (pipe uint64, seq int64) {
	if a.epoch != epoch || uptime()-a.at > remembered {
		return 0, 0
	}
	return a.pipe, a.seq
}

// later returns the one of a and b that the pool carried out later.
func (a answered) later(b answered) answered {
	if b.epoch > a.epoch || b.epoch == a.epoch && b.sequence > a.sequence {
		return b
	}
	return a
}

func newPipe() pipe { return pipe{id: newProcess()} }

// position is how far a pool has come, as this process knows it.
type position struct{ version, epoch, sequence int64 }

// send makes one call of the script.
func (st *state) send(p pipe, blob string, at position, mode string, latest store.Time, within time.Duration) (string, error) {
	return st.store.redis.RunWithin(within, st.store.apply, st.keys(), st.args(p, at, latest, blob, mode)...)
}

// sendTwice makes a call and repeats it if the server could not be reached. It repeats it several times within
// againWithin, because several idle connections may have broken. unknown reports that the script may have carried out the
// call although sendTwice returns an error.
func (st *state) sendTwice(p pipe, blob string, at position, latest store.Time) (text string, unknown bool, err error) {
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

// sendOwn makes a call with operations of the process itself for a pool with some limits, on the control pipe. The caller
// holds st.whole.
func (st *state) sendOwn(ops []store.Op, at position, l limits) (r reply, unknown bool, err error) {
	st.control.seq++
	b := &call{pipe: st.control, limits: l}
	b.write(ops)
	text, unknown, err := st.sendTwice(b.pipe, b.blob, at, 0)
	if err == nil {
		r, err = b.read(text)
	}
	return r, unknown, err
}

// faultOf returns the fault of an error. An error that does not come from redisconn is about the server's reply.
func faultOf(err error) redisconn.Fault {
	if e, ok := errors.AsType[*redisconn.Error](err); ok {
		return e.Fault
	}
	if err == nil {
		return redisconn.FaultNone
	}
	return redisconn.FaultScript
}

// isLoss reports whether a fault means that the store is out of reach for now.
func isLoss(f redisconn.Fault) bool {
	return f == redisconn.FaultUnreachable || f == redisconn.FaultNotRun
}

func isUnknown(f redisconn.Fault) bool {
	return f == redisconn.FaultUnreachable || f == redisconn.FaultClosed
}

// conn carries out requests, one call after the other.
type conn struct {
	state *state
	pipe
}

// call is one call of the script, with the requests of several goroutines.
type call struct {
	pipe
	reqs    []*request
	limits  limits // of the pool
	form    batch  // the operations of all requests, in the form of the script
	blob    string // form, encoded
	at      position
	latest  store.Time    // the script refuses the call if its clock is later
	sent    time.Duration // uptime of the first attempt
	unknown bool          // the script may have carried out the call
	ops     []store.Op    // operations of the process itself, or of requests that were given up
}

// reply is what the script replies.
type reply struct {
	what                     string
	now, wake                store.Time
	version, sequence, epoch int64
	crowded                  bool       // requests wait
	decided                  []store.ID // tickets of this process that no longer wait
}

// carryOut makes one call for several requests, and retries it after catching up with the pool.
func (c *conn) carryOut(reqs []*request) {
	st := c.state
	c.seq++
	b := &call{pipe: c.pipe, reqs: reqs, sent: uptime()}
	began := b.sent
	for tries := 0; ; tries++ {
		if tries > 0 {
			began = uptime() // a system call
		}
		if !b.unknown {
			st.encode(b, began) // an unknown call is sent unchanged: the script repeats its reply if it was carried out
		}
		text, unknown, err := st.sendTwice(b.pipe, b.blob, b.at, b.latest)
		if b.unknown = unknown || b.unknown && err != nil; err != nil {
			if isLoss(faultOf(err)) && st.backSince(began) && tries < maxTries {
				continue // the outage that caused the error is over
			}
			c.failed(b, err)
			return
		}
		r, err := b.read(text)
		switch {
		case err != nil || r.what == "late": // the key holds foreign content
			c.rename()
			failAll(reqs, st.damaged(errGarbled.Error(), errGarbled))
			return
		case r.what == "ok":
			st.done(b, &r)
			return
		case tries == maxTries:
			failAll(reqs, unavailable(errBusy))
			return
		}
		if err := st.catchUp(&r, b); err != nil {
			c.failed(b, err)
			return
		}
	}
}

// rename gives the connection a new pipe: what the script has kept for the old one is unknown.
func (c *conn) rename() { c.pipe = newPipe() }

// failed ends a call that failed for good. If the store is out of reach, the outage begins.
func (c *conn) failed(b *call, err error) {
	if fault := faultOf(err); fault != redisconn.FaultClosed && (b.unknown || isLoss(fault)) {
		c.rename()
		c.state.lose(err, b)
		return
	}
	failAll(b.reqs, c.state.trouble(err))
}

// encode writes the requests of a call for the pool as it is known now, at an uptime. The call was not carried out before.
func (st *state) encode(b *call, up time.Duration) {
	st.mu.Lock()
	b.at = position{st.version, st.epoch, st.sequence}
	b.had = st.had
	b.limits = st.limits()
	if b.latest = 0; !st.store.fixed {
		b.latest = st.clock.latest(up, 4*st.patience())
	}
	st.mu.Unlock()
	b.form = batch{long: st.store.longWay, apart: b.limits.apart()}
	for _, q := range b.reqs {
		if q.handle != nil && !st.store.fixed {
			q.stayAlive()
		}
		for k := range q.ops {
			op := b.limits.op(q.ops[k])
			b.form.add(&op, k == 0)
		}
	}
	b.blob = string(b.form.bytes())
}

// limits returns the limits of the pool as it is known. The caller holds st.mu.
func (st *state) limits() (l limits) {
	if st.known != nil {
		l = limitsOf(st.known)
	}
	return l
}

// write is encode for operations of the process itself.
func (b *call) write(ops []store.Op) {
	b.ops, b.form = ops, batch{}
	for i := range ops {
		op := b.limits.op(ops[i])
		b.form.add(&op, false)
	}
	b.blob = string(b.form.bytes())
}

// read decodes a reply into the results of the requests, or of b.ops if there are no requests.
func (b *call) read(text string) (r reply, err error) {
	in := reader{b: []byte(text)}
	in.array()
	r.what = in.text()
	r.now = store.Time(in.int())
	if r.what == "none" || r.what == "void" || r.what == "late" {
		return r, in.err()
	}
	r.version, r.sequence, r.epoch = in.int(), in.int(), in.int()
	if r.what != "ok" {
		return r, in.err()
	}
	r.wake = store.Time(in.int())
	r.crowded = in.int() > 0
	for range in.array() / 2 {
		r.decided = append(r.decided, store.ID{Session: uint64(in.int()), N: uint64(in.int())}) //nolint:gosec // never negative
	}
	into := make([]*store.Result, 0, len(b.form.forms))
	for i := range b.ops {
		into = append(into, &b.ops[i].Result)
	}
	for _, q := range b.reqs {
		for k := range q.ops {
			into = append(into, &q.ops[k].Result)
		}
	}
	b.form.results(&in, r.now, func(i int) *store.Result { return into[i] })
	for _, res := range into {
		res.Reason.Limit = b.limits.name(res.Reason.Limit)
	}
	return r, in.err()
}

func (r *reader) err() error {
	if r.bad {
		return errGarbled
	}
	return nil
}

// done records the reply to a call and answers its requests.
func (st *state) done(b *call, r *reply) {
	st.took(r.now, r.sequence, b.sent)
	st.crowded.Store(r.crowded)
	var undo []store.Op
	var told []store.ID
	st.mu.Lock()
	st.had = st.had.later(answered{b.id, b.seq, r.epoch, r.sequence, b.sent})
	for _, q := range b.reqs {
		left := !q.turn.CompareAndSwap(turnAsked, turnAnswered)
		if q.handle != nil {
			undo = append(undo, st.proc.Note(&q.handle.Session, q.ops, left)...)
		}
	}
	if st.lost != nil { // tickets that begin to wait now compete for the share
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

// failAll answers requests with an error.
func failAll(reqs []*request, err error) {
	if errors.Is(err, redisconn.ErrClosed) {
		err = store.ErrClosed
	}
	for _, q := range reqs {
		q.err = err
		q.turn.CompareAndSwap(turnAsked, turnAnswered)
		q.finish()
	}
}

// finish wakes the caller, if one waits.
func (q *request) finish() {
	switch {
	case q.posted:
		q.free()
	case q.turn.Load() == turnAnswered:
		q.done <- struct{}{}
	}
}

// stayAlive bounds how long waiting requests outlive their process, which polls them every few seconds.
func (q *request) stayAlive() {
	for i := range q.ops {
		if op := &q.ops[i]; op.Kind == store.OpAcquire && op.Alive == 0 {
			op.Alive = outage.WaitersLive
		}
	}
}

// jitter spreads processes that would wake at the same time.
func jitter() time.Duration { return rand.N(50 * time.Millisecond) } //nolint:gosec // only spreads load
