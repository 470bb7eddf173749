//go:build linux || darwin

package filestore

import (
	"context"
	"sync"

	"github.com/sluicehq/sluice/store"
)

// line is where goroutines of one process meet that want something of the same pool. One of
// them takes the lock and does what all of them want.
type line struct {
	mu      sync.Mutex
	pending []*request
	spare   []*request
	busy    bool // somebody leads
	pool    sync.Pool
}

// request is a batch of operations of one goroutine.
type request struct {
	ops  []store.Op
	err  error
	turn chan bool // true: lead, false: it is done

	unnamed []int32
}

// remember notes which tickets the store is to number.
func (r *request) remember() {
	r.unnamed = r.unnamed[:0]
	for i := range r.ops {
		if r.ops[i].ID.N == 0 {
			r.unnamed = append(r.unnamed, int32(i))
		}
	}
}

// restore takes the numbers back that a step gave which was undone: they may be another's by
// the time that it is tried again.
func (r *request) restore() {
	if r.err == nil {
		return
	}
	for _, i := range r.unnamed {
		r.ops[i].ID.N = 0
	}
}

// apply has ops applied, together with what others want at the same time.
func (st *state) apply(ctx context.Context, ops []store.Op) error {
	l := &st.line
	r, _ := l.pool.Get().(*request)
	if r == nil {
		r = &request{turn: make(chan bool, 1)}
	}
	r.ops, r.err = ops, nil
	r.remember()
	l.mu.Lock()
	l.pending = append(l.pending, r)
	leads := !l.busy
	l.busy = true
	l.mu.Unlock()
	if !leads {
		leads = <-r.turn
	}
	if leads {
		st.lead(ctx, r)
	}
	err := r.err
	r.ops = nil
	l.pool.Put(r)
	return err
}

// maxTogether bounds how many batches are done under one hold of the lock, so that other processes
// have their turn.
const maxTogether = 64

// lead makes the steps of all who are in line, and passes the lead on.
func (st *state) lead(ctx context.Context, own *request) {
	l := &st.line
	l.mu.Lock()
	reqs := l.pending
	l.pending = append(l.spare[:0], reqs[min(len(reqs), maxTogether):]...)
	reqs = reqs[:min(len(reqs), maxTogether)]
	l.mu.Unlock()

	st.hold(ctx, reqs)

	for _, r := range reqs {
		if r != own {
			r.turn <- false
		}
	}
	clear(reqs)
	l.mu.Lock()
	l.spare = reqs[:0]
	if l.busy = len(l.pending) > 0; l.busy {
		l.pending[0].turn <- true
	}
	l.mu.Unlock()
}

// hold makes the steps of several goroutines under one lock, and tells those whose tickets
// they decided.
func (st *state) hold(ctx context.Context, reqs []*request) {
	st.mu.Lock()
	if len(reqs) > 1 {
		ctx = context.Background() // one of them may give up; the others do not
	}
	done := 0
	err := st.locked(ctx, func() error {
		for _, r := range reqs {
			if r.err = st.step(st.now(), r.ops); r.err == nil {
				st.note(r.ops)
			}
			done++
		}
		st.keepTime()
		return nil
	})
	for _, r := range reqs[done:] {
		r.err = err
	}
	for _, r := range reqs {
		r.restore()
	}
	st.tell()
}
