//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sluicehq/sluice/store"
)

// combiner combines requests from goroutines of one process on the same pool. One goroutine takes the lock and makes
// the steps of all of them.
type combiner struct {
	mu      sync.Mutex
	busy    bool // a goroutine leads
	pending []*request
	spare   []*request
	pool    sync.Pool

	first request // for a leader that finds no other request
	alone [1]*request
}

// request is a batch of operations of one goroutine.
type request struct {
	ops  []store.Op
	err  error
	turn chan bool // true: lead; false: the step is done

	// Guarded by combiner.mu.
	left    bool // its caller has given up and owns the operations again
	working bool // its step is being made

	unnamed []int32 // operations whose tickets the store numbers

}

func (r *request) begin(ops []store.Op) {
	r.ops, r.err, r.unnamed = ops, nil, r.unnamed[:0]
	r.left, r.working = false, false
	for i := range ops {
		if ops[i].ID.N == 0 {
			r.unnamed = append(r.unnamed, int32(i))
		}
	}
}

// restore clears the ticket numbers that an undone step assigned. Another ticket may have them when the step is
// tried again.
func (r *request) restore() {
	if r.err == nil {
		return
	}
	for _, i := range r.unnamed {
		r.ops[i].ID.N = 0
	}
}

// apply applies the ops of a session, together with concurrent requests of other goroutines.
func (st *state) apply(ctx context.Context, ops []store.Op) error {
	l := &st.line
	l.mu.Lock()
	if l.busy {
		return st.join(ctx, ops)
	}
	l.busy = true
	l.mu.Unlock()
	r := &l.first
	r.begin(ops)
	l.alone[0] = r
	st.hold(ctx, l.alone[:])
	err := r.err
	r.ops = nil
	l.pass()
	return err
}

// join adds a request to the queue. l.mu is held, and join unlocks it.
func (st *state) join(ctx context.Context, ops []store.Op) error {
	l := &st.line
	r, _ := l.pool.Get().(*request)
	if r == nil {
		r = &request{turn: make(chan bool, 1)}
	}
	r.begin(ops)
	l.pending = append(l.pending, r)
	l.mu.Unlock()
	select {
	case leads := <-r.turn:
		if leads {
			st.lead(ctx, r)
		}
	case <-ctx.Done():
		if l.leave(r) {
			return failed("lock", st.path, ctx.Err())
		}
		if leads := <-r.turn; leads {
			st.lead(ctx, r)
		}
	}
	err := r.err
	r.ops = nil
	l.pool.Put(r)
	return err
}

// leave removes a request from the queue when its caller gives up. It returns false if the request is about to lead,
// or its step is being made.
func (l *combiner) leave(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.working || len(r.turn) > 0 {
		return false
	}
	r.left = true
	l.pending = slices.DeleteFunc(l.pending, func(x *request) bool { return x == r })
	return true
}

// claim returns the requests whose callers still wait. From now on these callers wait for the step.
func (l *combiner) claim(reqs []*request) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	reqs = slices.DeleteFunc(reqs, func(r *request) bool { return r.left })
	for _, r := range reqs {
		r.working = true
	}
	return reqs
}

// maxTogether bounds the batches under one hold of the lock, so that other processes get their turn.
const maxTogether = 64

// lead makes the steps of all queued requests, and passes the lead on.
func (st *state) lead(ctx context.Context, own *request) {
	l := &st.line
	l.mu.Lock()
	reqs := l.pending
	n := min(len(reqs), maxTogether)
	l.pending = append(l.spare[:0], reqs[n:]...)
	reqs = reqs[:n]
	l.mu.Unlock()

	reqs = st.hold(ctx, reqs)

	l.mu.Lock()
	var again []*request
	for _, r := range reqs {
		switch {
		case r == own:
		case r.working:
			r.turn <- false
		case !r.left: // only the leader gave up
			again = append(again, r)
		}
	}
	if len(again) > 0 {
		l.pending = append(again, l.pending...)
	}
	clear(reqs)
	l.spare = reqs[:0]
	l.mu.Unlock()
	l.pass()
}

// pass passes the lead on to the next request in the queue.
func (l *combiner) pass() {
	l.mu.Lock()
	if l.busy = len(l.pending) > 0; l.busy {
		l.pending[0].turn <- true
	}
	l.mu.Unlock()
}

// hold makes the steps of several goroutines under one lock, and notifies the owners of decided tickets. The first
// request leads, and ctx belongs to it: when the leader gives up, the others go on without it. hold returns the
// requests whose callers still wait.
func (st *state) hold(ctx context.Context, reqs []*request) []*request {
	if err := st.mu.LockContext(ctx); err != nil {
		reqs[0].err = failed("lock", st.path, err)
		return reqs
	}
	st.ready.now = 0
	if len(reqs) == 1 && !st.closed {
		st.makeReady(reqs[0].ops)
	}
	done := 0
	err := st.locked(ctx, func() error {
		st.settleIfDue()
		reqs = st.line.claim(reqs)
		for _, r := range reqs {
			if st.ready.now != 0 {
				r.err = st.stepReady(r.ops)
			} else {
				r.err = st.step(st.now(), r.ops)
			}
			if r.err == nil {
				st.note(r.ops)
			}
			done++
		}
		st.keepTime()
		st.lookAround()
		return nil
	})
	st.ready.now = 0
	rest := reqs[done:]
	switch gaveUp := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()); {
	case gaveUp && len(rest) > 0:
		rest[0].err = err // only the leader fails
		rest = rest[:1]
	case err != nil:
		if done == 0 {
			reqs = st.line.claim(reqs)
			rest = reqs
		}
		for _, r := range rest {
			r.err = err
		}
	}
	for _, r := range reqs[:done] {
		r.restore()
	}
	for _, r := range rest {
		r.restore()
	}
	st.tell()
	return reqs
}
