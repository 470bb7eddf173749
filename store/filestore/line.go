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
	busy    bool // somebody leads
	pending []*request
	spare   []*request
	pool    sync.Pool

	first request // of one who finds nobody else here, and leads
	alone [1]*request
}

// request is a batch of operations of one goroutine.
type request struct {
	ops  []store.Op
	err  error
	turn chan bool // true: lead, false: it is done

	unnamed []int32 // operations whose tickets the store is to number
}

func (r *request) begin(ops []store.Op) {
	r.ops, r.err, r.unnamed = ops, nil, r.unnamed[:0]
	for i := range ops {
		if ops[i].ID.N == 0 {
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

// join gets in line. Its lock is held, and given back.
func (st *state) join(ctx context.Context, ops []store.Op) error {
	l := &st.line
	r, _ := l.pool.Get().(*request)
	if r == nil {
		r = &request{turn: make(chan bool, 1)}
	}
	r.begin(ops)
	l.pending = append(l.pending, r)
	l.mu.Unlock()
	if leads := <-r.turn; leads {
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
	n := min(len(reqs), maxTogether)
	l.pending = append(l.spare[:0], reqs[n:]...)
	reqs = reqs[:n]
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
	l.mu.Unlock()
	l.pass()
}

// pass passes the lead on to the next in line.
func (l *line) pass() {
	l.mu.Lock()
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
	st.ready.now = 0
	if len(reqs) == 1 && !st.closed {
		st.makeReady(reqs[0].ops)
	}
	done := 0
	err := st.locked(ctx, func() error {
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
		return nil
	})
	st.ready.now = 0
	for _, r := range reqs[done:] {
		r.err = err
	}
	for _, r := range reqs {
		r.restore()
	}
	st.tell()
}
