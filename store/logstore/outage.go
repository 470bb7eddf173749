package logstore

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// While the log is out of reach, each session does what its [store.OnFailure] says. Answers, closes and cancels of requests
// that the log knows are kept for it. A process that has a share decides within it, by a pool of its own (share.go). When
// the log is back, the process states what it granted, by force, and what it kept, before anything else.

// outage is the time in which the log is out of reach. st.mu guards it.
type outage struct {
	since   store.Time
	why     error // why it goes on
	granted int64
	share   *pool.Share // nil: this process has none
	end     store.Time  // of it
	kept    []keptOp
	numbers uint64 // of tickets granted here
	timer   *time.Timer

	behind    bool // it was noted that this process is behind
	tried     bool // the log may know of a part of what happened here
	returning bool // the log answers, and is told what happened: callers wait for that
}

// keptOp is an operation that the log is told when it is back.
type keptOp struct {
	op store.Op
	at store.Time
}

// maxKept bounds them. Beyond that, tickets end when they expire.
const maxKept = 4096

// apart is the distance of the numbers of tickets that are granted here from those that the log gives. Entries under way
// may still give some.
const apart = 1 << 16

// The pauses between attempts to reach the log. They double from firstTry to lastTry.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = time.Second
)

// errLost reports that the log is out of reach, errBack that it is in reach again.
var (
	errLost = errors.New("the log is lost")
	errBack = errors.New("the log is back")
)

// isLoss reports whether an error means that the log is out of reach.
func isLoss(err error) bool {
	return errors.Is(err, sharedlog.ErrUnavailable) || errors.Is(err, sharedlog.ErrFull) || errors.Is(err, sharedlog.ErrLost) || errors.Is(err, errRestless) || errors.Is(err, errBehind)
}

// lose begins an outage. Only the leader calls it.
func (st *state) lose(err error) {
	st.line.cut(true)
	st.mu.Lock()
	if st.closed || st.out != nil {
		st.mu.Unlock()
		return
	}
	now := st.nowAt(st.store.clock.Uptime())
	st.out = &outage{since: now, why: err}
	st.out.share, st.out.end = st.newShare(now)
	st.noteBehind(err)
	st.endCalm()
	var told []store.ID // callers that cannot go on learn of it when they ask
	for id := range st.waiting {
		if h := st.sessions[id.Session]; h != nil && st.mode(h) != store.FailShare {
			told = append(told, id)
		}
	}
	ring := st.alarms(false)
	st.running.Add(1)
	st.mu.Unlock()
	go func() {
		defer st.running.Done()
		st.tell(told)
		ring()
		st.comeBack()
	}()
}

// mode returns what a session does in an outage. Without a share, FailShare is FailClosed. The caller holds st.mu.
func (st *state) mode(h *handle) store.OnFailure {
	if h.spec.OnFailure == store.FailShare && (st.out.share == nil || !h.isMember()) {
		return store.FailClosed
	}
	return h.spec.OnFailure
}

// alarms returns a function that tells all sessions that the outage began or is over. The caller holds st.mu.
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
	if st.out == nil {
		return o
	}
	o = store.Outage{Since: st.out.since, Why: st.out.why.Error(), Mode: st.mode(h), Granted: st.out.granted}
	if s := st.out.share; s != nil && o.Mode == store.FailShare {
		o.Start, o.Unshared = s.Begins()
		o.End = st.out.end
	}
	return o
}

// decideAlone decides a session's operations without the log. It returns errBack if that is in reach again.
func (st *state) decideAlone(h *handle, ops []store.Op) error {
	st.mu.Lock()
	err := st.decideLocked(h, ops)
	told := st.serveShare()
	st.mu.Unlock()
	st.tell(told)
	return err
}

func (st *state) decideLocked(h *handle, ops []store.Op) error {
	o := st.out
	switch {
	case st.closed:
		return store.ErrClosed
	case o == nil, o.returning:
		return errBack
	}
	now, mode := st.nowAt(st.store.clock.Uptime()), st.mode(h)
	possible := mode != store.FailClosed
	for i := range ops {
		switch ops[i].Kind {
		case store.OpAcquire, store.OpAnswer, store.OpClose, store.OpCancel:
		case store.OpPoll:
			possible = possible && (mode == store.FailOpen || replica.ProcessOf(ops[i].ID.Session) == st.process)
		default:
			possible = false
		}
	}
	for i := range ops {
		op := &ops[i]
		op.Result = store.Result{ID: op.ID, Now: now}
		switch {
		case o.share != nil && o.share.Has(op.ID):
			o.share.Do(now, op)
			if o.tried && op.Kind != store.OpPoll && op.Kind != store.OpAcquire {
				o.keep(op, now) // the log may know the request
			}
		case op.Kind == store.OpAnswer, op.Kind == store.OpClose, op.Kind == store.OpCancel:
			if o.keep(op, now); o.share != nil {
				o.share.Know(now, op)
			}
			if op.Result.State = store.Ended; op.Kind == store.OpAnswer {
				op.Result.State = store.Granted
			}
			delete(st.waiting, op.ID)
		case !possible:
		case op.Kind == store.OpPoll:
			st.pollAlone(op, mode)
		case mode == store.FailOpen:
			st.number(op)
			op.Result.State, op.Result.GrantedAt = store.Granted, now
			o.granted++
		default:
			st.number(op)
			if o.share.Do(now, op); op.Result.State == store.Granted {
				o.granted++
			}
		}
	}
	st.asked(ops)
	if !possible {
		return store.Kept(Unavailable(o.why))
	}
	return nil
}

// pollAlone answers a poll of a request that the log knows.
func (st *state) pollAlone(op *store.Op, mode store.OnFailure) {
	r := &op.Result
	switch core := st.rep.Pool(); {
	case mode == store.FailOpen:
		r.State, r.GrantedAt = store.Granted, r.Now
		st.out.granted++
		st.out.keep(&store.Op{Kind: store.OpCancel, ID: op.ID}, r.Now) // it need not wait there any longer
		delete(st.waiting, op.ID)
	case op.ID.N == 0:
		r.State = store.Granted // only the log knows whether the session has tickets
	case core == nil:
		r.State = store.Ended
	default:
		switch r.State, r.GrantedAt = core.Request(op.ID); r.State {
		case store.Waiting:
			r.Reason = store.Reason{Code: store.CodeStore}
		case store.Unknown:
			r.State = store.Ended
		}
	}
}

// number gives an acquire a number that the log will not give. The caller holds st.mu.
func (st *state) number(op *store.Op) {
	if op.ID.N == 0 {
		o := st.out
		o.numbers++
		op.ID.N = st.rep.Numbered(op.ID.Session) + apart + o.numbers
	}
	op.Result.ID = op.ID
}

func (o *outage) keep(op *store.Op, now store.Time) {
	if len(o.kept) < maxKept {
		o.kept = append(o.kept, keptOp{op.Clone(), now})
	}
}

// aged returns the operation as the log has to be told it after the delay.
func (k *keptOp) aged(now store.Time) store.Op {
	op, late := k.op, now.Sub(k.at)
	op.Result = store.Result{}
	if op.RetryAfter > 0 {
		op.RetryAfter = max(op.RetryAfter-late, time.Millisecond)
	}
	for i, s := range op.Observed {
		op.Observed[i] = store.Observed{Limit: s.Limit, Size: s.Size, Remaining: store.NotStated, ResetIn: store.NotStated} // the rest is out of date
	}
	return op
}

// serveShare lets waiting requests go that have room in the share by now, and sets the timer for the others. It returns
// those whose callers have to be told. The caller holds st.mu.
func (st *state) serveShare() []store.ID {
	o := st.out
	if o == nil || o.share == nil || o.returning || st.closed {
		return nil
	}
	now := st.nowAt(st.store.clock.Uptime())
	told, next := o.share.Serve(now)
	if next == 0 {
		return told
	}
	if d := max(next.Sub(now), leastTick); o.timer == nil {
		o.timer = time.AfterFunc(d, st.serveAlone)
	} else {
		o.timer.Reset(d)
	}
	return told
}

func (st *state) serveAlone() {
	st.mu.Lock()
	told := st.serveShare()
	st.mu.Unlock()
	st.tell(told)
}

// comeBack tries to reach the log until it succeeds.
func (st *state) comeBack() {
	for delay := firstTry; sleep.For(st.life, delay/2+rand.N(delay)); delay = min(2*delay, lastTry) { //nolint:gosec // it spreads, it guards nothing
		if !st.line.seize() {
			continue
		}
		err := st.tryBack()
		st.pass()
		if err == nil {
			st.pulse() // from then on it has a share again
			return
		}
	}
}

// tryBack reads the log, and tells it what has happened meanwhile. The outage is over if that succeeds. Only the leader
// calls it.
func (st *state) tryBack() error {
	call := st.read
	if !st.isUsable() {
		call = st.load
	}
	progress := st.follow()
	err := st.persist(call)
	if err == nil && st.out.behind {
		err = progress.keepsUp(st)
	}
	if err == nil {
		err = st.report()
	}
	if err != nil {
		st.line.cut(true)
		st.mu.Lock()
		st.out.why, st.out.returning = err, false
		st.noteBehind(err)
		notify := st.notified()
		told := st.serveShare()
		st.mu.Unlock()
		st.tell(told)
		notify()
		return err
	}
	st.mu.Lock()
	if st.out.timer != nil {
		st.out.timer.Stop()
	}
	ring := st.alarms(true)
	told := slices.Collect(maps.Keys(st.waiting))
	if s := st.out.share; s != nil {
		told = append(told, s.Pending()...)
	}
	slices.SortFunc(told, func(a, b store.ID) int { return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.N, b.N)) })
	st.out, st.heard = nil, false
	st.mu.Unlock()
	st.tell(slices.Compact(told))
	ring()
	st.settle()
	return nil
}

// report tells the log what has happened in an outage. Requests of callers wait in the line meanwhile.
func (st *state) report() error {
	st.mu.Lock()
	o, now := st.out, st.nowAt(st.store.clock.Uptime())
	o.returning, o.tried = true, true
	st.owed = append(st.owed, st.posted...)
	st.posted = nil
	before := slices.Clone(st.owed)
	for i := range o.kept {
		st.owed = append(st.owed, o.kept[i].aged(now))
	}
	if o.share != nil {
		st.owed = append(st.owed, o.share.Missing(now, replica.SessionOf(st.process, max(st.lastSess, 1)))...)
	}
	st.mu.Unlock()
	st.line.cut(false)
	err := st.repay()
	if err != nil { // all of it is stated again the next time: it is safe to say it twice
		st.owed = before
	}
	return err
}
