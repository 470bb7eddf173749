package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/placed"
	"github.com/sluicehq/sluice/store"
)

// line is where goroutines of this process meet that want something of the same pool: what they ask
// for while a call is under way goes out in the next one.
type line struct {
	state *state

	mu      sync.Mutex
	ready   sync.Cond
	pending []*request
	stopped bool
	running sync.WaitGroup
	lanes   int
	idle    int
}

// request is a batch of operations of one goroutine.
type request struct {
	handle *handle // nil: of the process itself
	ops    []store.Op
	err    error
	done   chan struct{}
}

const (
	maxTogether = 256 // operations in a call: Redis does nothing else meanwhile
	maxLanes    = 2   // calls under way
)

func (l *line) init(st *state) {
	l.state = st
	l.ready.L = &l.mu
}

// applyFor applies the operations of a session.
func (st *state) applyFor(ctx context.Context, h *handle, ops []store.Op) error {
	r := &request{handle: h, ops: append([]store.Op(nil), ops...), done: make(chan struct{})}
	if err := st.line.add(r); err != nil {
		return err
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
	for i := range ops {
		ops[i].ID, ops[i].Result = r.ops[i].ID, r.ops[i].Result
	}
	return r.err
}

// apply applies operations of the process itself.
func (st *state) apply(ctx context.Context, ops []store.Op) error { return st.applyFor(ctx, nil, ops) }

// add gets in line, and starts a lane if all are busy.
func (l *line) add(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return store.ErrClosed
	}
	l.pending = append(l.pending, r)
	most := maxLanes
	if l.state.store.fixed {
		most = 1
	}
	if l.idle > 0 {
		l.ready.Signal()
	} else if l.lanes < most {
		l.lanes++
		l.running.Go(l.work)
	}
	return nil
}

func (l *line) stop() {
	l.mu.Lock()
	l.stopped = true
	l.ready.Broadcast()
	l.mu.Unlock()
	l.running.Wait()
}

// work makes calls, one after the other.
func (l *line) work() {
	ln := newLane(l.state)
	for {
		reqs := l.take()
		if reqs == nil {
			return
		}
		ln.carryOut(reqs)
	}
}

// take waits for requests. It returns nil when there will be none.
func (l *line) take() []*request {
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
	n, ops := 0, 0
	for n < len(l.pending) && (n == 0 || ops+len(l.pending[n].ops) <= maxTogether) {
		ops += len(l.pending[n].ops)
		n++
	}
	reqs := append([]*request(nil), l.pending[:n]...)
	l.pending = append(l.pending[:0], l.pending[n:]...)
	if len(l.pending) > 0 && l.idle > 0 {
		l.ready.Signal()
	}
	return reqs
}

// lane makes calls whose order the script knows: the reply of each is kept until the next has come,
// so that one that is sent again is answered and not done again.
type lane struct {
	state *state
	key   string
	seq   int64
	buf   []byte
}

func newLane(st *state) *lane {
	return &lane{state: st, key: fmt.Sprintf("%s:r:%d", st.key, newProcess())}
}

// reply is what the script answers.
type reply struct {
	what                     string
	now, wake                store.Time
	version, sequence, epoch int64
	waiting                  int64
	decided                  []store.ID // of this process
}

// carryOut makes one call for several requests.
func (ln *lane) carryOut(reqs []*request) {
	st := ln.state
	ln.seq++
	var r reply
	var err error
	for tries := 0; ; tries++ {
		r, err = ln.call(reqs)
		if err != nil || r.what == "ok" || tries == maxTries {
			break
		}
		if err = st.catchUp(&r); err != nil {
			break
		}
	}
	if err == nil && r.what != "ok" {
		err = unavailable(errBusy)
	}
	if err == nil {
		st.took(&r)
		for _, q := range reqs {
			st.follow(q.ops)
		}
		st.arm(r.now, r.wake)
		st.tell(r.decided)
	}
	for _, q := range reqs {
		q.err = err
		close(q.done)
	}
}

// call runs the script once and reads its reply into the requests.
func (ln *lane) call(reqs []*request) (r reply, err error) {
	st := ln.state
	st.mu.Lock()
	version, epoch, seen := st.version, st.epoch, st.sequence
	st.mu.Unlock()
	var b batch
	places := make([]placed.Places, len(reqs))
	for i, q := range reqs {
		if q.handle != nil {
			places[i] = *q.handle.places.Load()
		}
		for k := range q.ops {
			there := q.ops[k]
			places[i].Op(&there)
			b.add(&there)
		}
	}
	args := st.store.withClock([]string{
		fmt.Sprint(ln.seq), fmt.Sprint(version), fmt.Sprint(epoch), fmt.Sprint(seen), string(b.bytes()), fmt.Sprint(st.store.process), st.channel(), "", "0",
	})
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	text, err := st.store.link.RunKeys(ctx, st.store.apply, st.keys(ln.key), args...)
	if err != nil {
		return r, unavailable(err)
	}
	in := reader{b: []byte(text)}
	in.array()
	r.what = in.text()
	r.now = store.Time(in.int())
	if r.what != "ok" {
		if r.what != "none" {
			r.version, r.sequence, r.epoch = in.int(), in.int(), in.int()
		}
		return r, nil
	}
	r.version, r.sequence, r.epoch = in.int(), in.int(), in.int()
	r.wake, r.waiting = store.Time(in.int()), in.int()
	for range in.array() / 2 {
		r.decided = append(r.decided, store.ID{Session: uint64(in.int()), N: uint64(in.int())}) //nolint:gosec // never negative
	}
	ops, of := make([]*store.Op, 0, len(b.ids)), make([]int, 0, len(b.ids))
	for i, q := range reqs {
		for k := range q.ops {
			ops, of = append(ops, &q.ops[k]), append(of, i)
		}
	}
	b.results(&in, r.now, func(i int) *store.Result { return &ops[i].Result })
	for i, op := range ops {
		if op.Kind == store.OpAcquire {
			op.ID = op.Result.ID
		}
		places[of[i]].Result(&op.Result)
	}
	if in.bad {
		return r, unavailable(errGarbled)
	}
	return r, nil
}

const callWithin = 5 * time.Second

// catchUp takes in that the pool is not what this process thinks it is.
func (st *state) catchUp(r *reply) error {
	ctx, cancel := context.WithTimeout(context.Background(), callWithin)
	defer cancel()
	if r.what == "none" {
		st.mu.Lock()
		var spec store.Spec
		for _, h := range st.sessions {
			spec = h.spec
		}
		st.mu.Unlock()
		_, err := st.tryOpen(ctx, &spec)
		return err
	}
	_, err := st.tryOpen(ctx, &store.Spec{Look: true})
	return err
}

// jitter spreads processes that would wake at the same time.
func jitter() time.Duration { return rand.N(50 * time.Millisecond) } //nolint:gosec // it guards nothing
