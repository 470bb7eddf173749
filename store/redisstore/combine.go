package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// combiner is where goroutines of this process meet that want something of the same pool: what they ask
// for while a call is under way goes out in the next one.
type combiner struct {
	state *state

	mu      sync.Mutex
	ready   sync.Cond
	pending []*request
	lost    bool // nobody gets in
	stopped bool
	running sync.WaitGroup
	conns   int
	idle    int

	lead    *conn // of a caller that is alone
	leading bool  // it is in use
}

// request is a batch of operations of one goroutine.
type request struct {
	handle *handle // nil: of the process itself
	ops    []store.Op
	err    error
	lost   bool // it has to be decided without the store
	nobody bool // waits for it
	done   chan struct{}
	turn   atomic.Uint32
}

// Who has a request in hand. The one who finds it asked decides.
const (
	turnAsked    uint32 = iota
	turnAnswered        // the conn has: the caller waits for it
	turnLeft            // the caller has left: the conn cleans up, and nothing of the caller's is touched
)

const (
	maxTogether = 256 // operations in a call: Redis does nothing else meanwhile
	maxConns    = 2   // calls under way
)

// errLost tells that the store cannot be reached at the moment, errBack that it can be again.
var (
	errLost = errors.New("the store is lost")
	errBack = errors.New("the store is back")
)

func (l *combiner) init(st *state) {
	l.state = st
	l.ready.L = &l.mu
}

// requests are used again, but for those whose callers have left.
var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

func newRequest(h *handle, ops []store.Op) *request {
	r := requests.Get().(*request)
	r.handle, r.err, r.lost, r.nobody = h, nil, false, false
	r.turn.Store(turnAsked)
	r.ops = append(r.ops[:0], ops...)
	for i := range r.ops {
		if op := &r.ops[i]; len(op.Observed)+len(op.WaitsFor) > 0 { // the caller may leave and use them again
			op.Observed, op.WaitsFor = slices.Clone(op.Observed), slices.Clone(op.WaitsFor)
		}
	}
	return r
}

func (q *request) free() {
	q.handle = nil
	if cap(q.ops) > maxTogether {
		q.ops = nil
	}
	clear(q.ops)
	requests.Put(q)
}

// applyFor applies the operations of a session.
func (st *state) applyFor(ctx context.Context, h *handle, ops []store.Op) error {
	for {
		err := st.tryApply(ctx, h, ops)
		if !errors.Is(err, errBack) {
			return err
		}
	}
}

func (st *state) tryApply(ctx context.Context, h *handle, ops []store.Op) error {
	if err := ctx.Err(); err != nil {
		return err // which says nothing about the store
	}
	if st.isLost.Load() {
		return st.decideAlone(h, ops)
	}
	if h != nil && mayWait(ops) {
		if err := st.listen(ctx); err != nil {
			return err
		}
	}
	r := newRequest(h, ops)
	if reqs := st.line.tryLead(ctx, r); reqs != nil {
		st.line.lead.carryOut(reqs)
		st.line.led()
	} else if err := st.line.add(r); err != nil {
		r.free()
		if errors.Is(err, errLost) {
			return st.decideAlone(h, ops)
		}
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.turn.CompareAndSwap(turnAsked, turnLeft) {
			return ctx.Err()
		}
		<-r.done
	}
	if r.lost {
		r.free()
		return st.decideAlone(h, ops)
	}
	err := r.err
	if err == nil {
		for i := range ops {
			ops[i].Result = r.ops[i].Result
			if ops[i].Kind == store.OpAcquire {
				ops[i].ID = ops[i].Result.ID
			}
			if ops[i].Result.State == store.Unknown {
				st.mu.Lock()
				st.proc.Excuse(&ops[i])
				st.mu.Unlock()
			}
		}
	}
	r.free()
	return err
}

func mayWait(ops []store.Op) bool {
	for i := range ops {
		if op := &ops[i]; op.Wait != 0 && (op.Kind == store.OpAcquire || op.Kind == store.OpRenew) {
			return true
		}
	}
	return false
}

// apply applies operations of the process itself.
func (st *state) apply(ctx context.Context, ops []store.Op) error { return st.applyFor(ctx, nil, ops) }

// post has operations applied that nobody waits for, now or when the store is back.
func (st *state) post(ops []store.Op) {
	if len(ops) == 0 {
		return
	}
	r := newRequest(nil, ops)
	r.nobody = true
	if err := st.line.add(r); err != nil {
		r.free()
		if errors.Is(err, errLost) {
			st.mu.Lock()
			st.proc.Put(st.nowLocked(), ops...)
			st.mu.Unlock()
		}
	}
}

// add gets in line, and starts a conn if all are busy.
func (l *combiner) add(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return store.ErrClosed
	case l.lost:
		return errLost
	}
	l.pending = append(l.pending, r)
	l.rouse()
	return nil
}

// tryLead has a caller make its call by itself if nobody else is about: to hand it to a conn and back takes as
// long as Redis does. It returns what goes out, nil if the caller has to get in line. One who leads
// cannot leave before the call is over, so it is only for those who have the time.
func (l *combiner) tryLead(ctx context.Context, r *request) []*request {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*l.state.patience() || !l.state.resident.Load() && !l.state.store.fixed {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leading || l.lost || l.stopped || len(l.pending) > 0 || l.conns > l.idle {
		return nil
	}
	l.leading = true
	if l.lead == nil {
		l.lead = &conn{state: l.state, pipe: newPipe()}
	}
	l.running.Add(1)
	l.pending = append(l.pending, r)
	return l.takeSome()
}

// led ends that.
func (l *combiner) led() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = false
	if len(l.pending) > 0 {
		l.rouse()
	}
	l.running.Done()
}

// rouse has a conn take what is pending. The combiner is locked.
func (l *combiner) rouse() {
	most := maxConns
	if l.state.store.fixed {
		if most = 1; l.leading {
			return // one after the other
		}
	}
	if l.idle > 0 {
		l.ready.Signal()
	} else if l.conns < most {
		l.conns++
		l.running.Go(l.work)
	}
}

// cut lets nobody in any more, and returns those who were waiting. With false they may come again.
func (l *combiner) cut(lost bool) (out []*request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
	if lost {
		out, l.pending = l.pending, nil
	}
	return out
}

func (l *combiner) stop() {
	l.mu.Lock()
	l.stopped = true
	l.ready.Broadcast()
	l.mu.Unlock()
	l.running.Wait()
}

// work makes calls, one after the other.
func (l *combiner) work() {
	ln := &conn{state: l.state, pipe: newPipe()}
	for {
		reqs := l.take()
		if reqs == nil {
			return
		}
		ln.carryOut(reqs)
	}
}

// take waits for requests. It returns nil when there will be none.
func (l *combiner) take() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) == 0 {
		if l.stopped {
			return nil
		}
		l.idle++
		l.ready.Wait()
		l.idle--
	}
	reqs := l.takeSome()
	if len(l.pending) > 0 && l.idle > 0 {
		l.ready.Signal()
	}
	return reqs
}

// takeSome takes as many as go into a call. The combiner is locked.
func (l *combiner) takeSome() []*request {
	n, ops := 0, 0
	for n < len(l.pending) && (n == 0 || ops+len(l.pending[n].ops) <= maxTogether) {
		ops += len(l.pending[n].ops)
		n++
	}
	reqs := append([]*request(nil), l.pending[:n]...)
	rest := copy(l.pending, l.pending[n:])
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
	return reqs
}
