package logstore

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/store"
)

// line joins the requests of many goroutines: those that arrive while an exchange with the log is under way go out
// together in the next one. One goroutine at a time leads: it makes the exchange for itself and the others, and then
// tells one of those that came meanwhile to lead. So a lone caller hands nothing to another goroutine.
type line struct {
	mu      sync.Mutex
	busy    bool // somebody leads
	again   bool // what others have appended has to be read once more
	closed  bool
	lost    bool          // requests are refused with errLost, see outage.go
	idle    chan struct{} // closed when nobody leads any more; nil: nobody wants to know
	pending []*request
	spare   []*request // memory for the next pending
	one     [1]*request
}

// maxTogether bounds the requests of one exchange.
const maxTogether = 2048

// request is what one caller wants.
type request struct {
	replica.Request
	look   bool // only to read what others have appended; Request is unused
	tick   bool // only to show that time has passed; Request is unused
	own    bool // of the store itself, see collect
	follow bool // the caller never leads: its deadline is near
	err    error
	turn   chan bool // true: lead; false: answered
	stage  atomic.Uint32
}

// The stages of a request. Its caller may leave in all but the last two.
const (
	waiting   uint32 = iota // nobody has looked at it
	leads                   // its caller was told to lead
	sent                    // it is in an entry that is under way
	left                    // the caller has left: its memory must not be touched
	encoding                // the leader reads its operations
	answering               // the leader writes its results
)

func (st *state) newRequest() *request {
	if r, ok := st.requests.Get().(*request); ok {
		return r
	}
	return &request{turn: make(chan bool, 1)}
}

// free recycles a request that was answered.
func (st *state) free(r *request) {
	*r = request{turn: r.turn}
	st.requests.Put(r)
}

// move takes a request from one of some stages to another.
func (r *request) move(to uint32, from ...uint32) bool {
	for _, f := range from {
		if r.stage.CompareAndSwap(f, to) {
			return true
		}
	}
	return false
}

// do has a request carried out. It returns when that is done, or when ctx ends.
func (st *state) do(ctx context.Context, r *request) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*st.patience() {
		r.follow = true
	}
	l := &st.line
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return store.ErrClosed
	case l.lost:
		l.mu.Unlock()
		return errLost
	case !l.busy && !r.follow:
		l.busy = true
		l.mu.Unlock()
		l.one[0] = r
		st.exchange(l.one[:])
		st.pass()
		<-r.turn
		return r.err
	}
	l.pending = append(l.pending, r)
	if !l.busy {
		l.busy = true
		st.running.Go(st.lead)
	}
	l.mu.Unlock()
	return st.await(ctx, r)
}

// await waits for the answer to a request in the line.
func (st *state) await(ctx context.Context, r *request) error {
	for {
		select {
		case lead := <-r.turn:
			if !lead {
				return r.err
			}
			st.lead()
		case <-ctx.Done():
			if st.quit(r) {
				return ctx.Err()
			}
			ctx = context.Background() // the answer is there any moment
		}
	}
}

// quit ends the wait for a request. It returns false if its answer is being written.
func (st *state) quit(r *request) bool {
	for {
		switch s := r.stage.Load(); s {
		case answering:
			return false
		case encoding:
			runtime.Gosched()
		default:
			if !r.stage.CompareAndSwap(s, left) {
				continue
			}
			if s == leads {
				<-r.turn
				st.running.Go(st.lead)
			}
			return true
		}
	}
}

// lead makes the next exchange for the requests in the line, and passes the lead on.
func (st *state) lead() {
	l := &st.line
	l.mu.Lock()
	batch := l.pending[:min(len(l.pending), maxTogether)]
	rest := l.pending[len(batch):]
	l.pending = append(l.spare[:0], rest...)
	l.mu.Unlock()
	st.exchange(batch)
	clear(batch)
	l.mu.Lock()
	l.spare = batch[:0]
	l.mu.Unlock()
	st.pass()
}

// pass ends an exchange: the first request in the line leads the next one.
func (st *state) pass() {
	l := &st.line
	l.mu.Lock()
	defer l.mu.Unlock()
	alone := true // no request can lead
	for _, r := range l.pending {
		if r.follow {
			continue
		}
		if r.move(leads, waiting) {
			r.turn <- true
			alone = false
			break
		}
	}
	switch {
	case !alone:
	case len(l.pending) > 0 || l.again && !l.closed && !l.lost:
		st.running.Go(st.lead)
	default:
		if l.busy = false; l.idle != nil {
			close(l.idle)
			l.idle = nil
		}
	}
	l.again = false
}

// catchUp has what others have appended read before long. An exchange that is under way may have begun too early.
func (st *state) catchUp() {
	l := &st.line
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed, l.lost:
	case l.busy:
		l.again = true
	default:
		l.busy = true
		st.running.Go(st.lead)
	}
}

// cut with true refuses requests from now on, and answers those in the line so. With false it takes requests again.
func (l *line) cut(lost bool) {
	l.mu.Lock()
	l.lost = lost
	var out []*request
	if lost {
		out, l.pending = l.pending, nil
	}
	l.mu.Unlock()
	for _, r := range out {
		r.answer(errLost)
	}
}

// seize makes the caller lead if nobody does. It ends with pass.
func (l *line) seize() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy || l.closed {
		return false
	}
	l.busy = true
	return true
}

// shut refuses further requests, and returns when nobody leads.
func (l *line) shut() {
	l.mu.Lock()
	l.closed = true
	out := l.pending
	l.pending = nil
	var idle chan struct{}
	if l.busy {
		idle = make(chan struct{})
		l.idle = idle
	}
	l.mu.Unlock()
	for _, r := range out {
		r.answer(store.ErrClosed)
	}
	if idle != nil {
		<-idle
	}
}

// answer finishes a request. It reports false if the caller has left.
func (r *request) answer(err error) bool {
	if !r.move(answering, waiting, leads, sent, encoding) {
		return false
	}
	r.err = err
	r.turn <- false
	return true
}
