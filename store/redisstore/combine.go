package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// combiner joins the requests of many goroutines to one pool: requests that arrive while a call is under way go out
// together in the next call.
type combiner struct {
	state *state

	mu      sync.Mutex
	ready   sync.Cond
	pending []*request
	lost    bool // add refuses requests with errLost
	stopped bool
	running sync.WaitGroup
	conns   int
	idle    int

	lead    *conn // for a caller that makes its call itself, see tryLead
	leading bool  // lead is in use
}

// request is a batch of operations of one goroutine.
type request struct {
	handle *handle // nil: the process itself asks
	ops    []store.Op
	err    error
	lost   bool // the request has to be decided without the store
	posted bool // no caller waits for the result
	done   chan struct{}
	turn   atomic.Uint32
}

// The turn of a request: the conn and the caller both try to move it on from turnAsked, and the first one wins.
const (
	turnAsked    uint32 = iota
	turnAnswered        // the conn answers, and the caller waits for that
	turnLeft            // the caller has left: the conn cleans up and leaves the caller's memory alone
)

const (
	maxTogether = 256 // operations in a call, because Redis does nothing else meanwhile
	maxConns    = 2   // calls under way
)

// errLost reports that the store is out of reach, errBack that it is in reach again.
var (
	errLost = errors.New("the store is lost")
	errBack = errors.New("the store is back")
)

func (l *combiner) init(st *state) {
	l.state = st
	l.ready.L = &l.mu
}

// requests recycles requests, except those whose callers have left.
var requests = sync.Pool{New: func() any { return &request{done: make(chan struct{}, 1)} }}

func newRequest(h *handle, ops []store.Op) *request {
	r := requests.Get().(*request)
	r.handle, r.err, r.lost, r.posted = h, nil, false, false
	r.turn.Store(turnAsked)
	r.ops = append(r.ops[:0], ops...)
	for i := range r.ops {
		r.ops[i] = ops[i].Clone() // the caller may leave and reuse its slices
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

// applyFor applies the operations of a session, or of the process itself if h is nil.
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
		return err // the caller gave up, which says nothing about the store
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
	if reqs := st.combiner.tryLead(ctx, r); reqs != nil {
		st.combiner.lead.carryOut(reqs)
		st.combiner.led()
	} else if err := st.combiner.add(r); err != nil {
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

// post applies operations in the background, now or when the store is back.
func (st *state) post(ops []store.Op) {
	if len(ops) == 0 {
		return
	}
	r := newRequest(nil, ops)
	r.posted = true
	if err := st.combiner.add(r); err != nil {
		r.free()
		if errors.Is(err, errLost) {
			st.mu.Lock()
			st.proc.Put(st.nowLocked(), ops...)
			st.mu.Unlock()
		}
	}
}

// add appends a request to the pending ones, and starts a conn if all are busy.
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

// tryLead lets a caller make its call itself if no other call is under way: handing the request to a conn and back takes
// as long as Redis does. It returns the requests to send, or nil if the caller has to add its request instead. A caller
// that leads cannot leave before the call is over, so callers with a near deadline do not lead.
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
	return []*request{r}
}

// led ends what tryLead began.
func (l *combiner) led() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = false
	if len(l.pending) > 0 {
		l.rouse()
	}
	l.running.Done()
}

// rouse wakes or starts a conn for the pending requests. The caller holds l.mu.
func (l *combiner) rouse() {
	most := maxConns
	if l.state.store.fixed {
		if most = 1; l.leading {
			return // tests make one call after the other
		}
	}
	if l.idle > 0 {
		l.ready.Signal()
	} else if l.conns < most {
		l.conns++
		l.running.Go(l.work)
	}
}

// cut with true refuses further requests and returns the pending ones. With false it accepts requests again.
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

// work makes calls, one after the other, until the combiner stops.
func (l *combiner) work() {
	c := &conn{state: l.state, pipe: newPipe()}
	for {
		reqs := l.take()
		if reqs == nil {
			return
		}
		c.carryOut(reqs)
	}
}

// take waits for requests. It returns nil when the combiner has stopped.
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

// takeSome takes as many pending requests as fit one call. The caller holds l.mu.
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
