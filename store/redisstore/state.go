package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// errGone tells that a pool has vanished from Redis.
var errGone = errors.New("the pool is not in Redis any more")

// state is one pool, as this process knows it.
type state struct {
	store *Store
	name  string
	key   string
	users int // under the store's lock

	mu       sync.Mutex
	known    *pool.Pool // the limits; nothing else in it counts
	version  int64
	epoch    int64
	sequence int64 // the highest that was seen
	lastSess uint64
	sessions map[uint64]*handle
	waiting  map[store.ID]struct{} // of this process
	clockAt  store.Time            // the server's, when
	clockOf  time.Time             // this was
	timer    interface {
		Reset(d time.Duration)
		Stop()
	}
	timerAt store.Time
	closed  bool

	line line
}

func newState(s *Store, name string) *state {
	st := &state{
		store: s, name: name, key: s.prefix + ":{" + name + "}",
		sessions: map[uint64]*handle{}, waiting: map[store.ID]struct{}{},
	}
	st.line.init(st)
	return st
}

// channel is where this process is told of decisions on its tickets.
func (st *state) channel() string { return st.key + ":" }

// now returns the server's time, as near as it is known.
func (st *state) now() store.Time {
	if st.store.fixed {
		return st.store.clock.Now()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.clockAt == 0 {
		return st.store.clock.Now()
	}
	return st.clockAt.Add(time.Since(st.clockOf))
}

// took takes in what a reply says of the pool.
func (st *state) took(r *reply) {
	st.mu.Lock()
	st.sequence = max(st.sequence, r.sequence)
	if !st.store.fixed && r.now > st.clockAt {
		st.clockAt, st.clockOf = r.now, time.Now()
	}
	st.mu.Unlock()
}

// follow keeps track of which tickets of this process wait. The ops have been applied.
func (st *state) follow(ops []store.Op) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case store.OpAcquire, store.OpRenew, store.OpPoll:
			if op.Result.State == store.Waiting {
				st.waiting[op.Result.ID] = struct{}{}
			} else {
				delete(st.waiting, op.Result.ID)
			}
		case store.OpCancel, store.OpClose:
			delete(st.waiting, op.ID)
		}
	}
}

// arm sees to it that somebody looks when time alone may let in one who waits.
func (st *state) arm(now, wake store.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if wake == 0 || st.closed || st.timerAt != 0 && st.timerAt <= wake {
		return
	}
	if len(st.waiting) == 0 && !st.store.fixed {
		return // those whose tickets wait see to it
	}
	st.timerAt = wake
	d := max(wake.Sub(now), 0)
	if !st.store.fixed {
		d += jitter()
	}
	if st.timer == nil {
		st.timer = st.store.clock.AfterFunc(d, st.tick)
		return
	}
	st.timer.Reset(d)
}

// tick looks whether time has let anybody in.
func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	closed := st.closed
	st.mu.Unlock()
	if !closed {
		_ = st.apply(context.Background(), nil) // those who wait find out when they ask
	}
}

// tell tells sessions of this process that tickets of theirs were decided.
func (st *state) tell(ids []store.ID) {
	for len(ids) > 0 {
		n := 1
		for n < len(ids) && ids[n].Session == ids[0].Session {
			n++
		}
		st.mu.Lock()
		for _, id := range ids[:n] {
			delete(st.waiting, id)
		}
		h := st.sessions[ids[0].Session]
		st.mu.Unlock()
		if h != nil {
			if f := h.watch.Load(); f != nil {
				(*f)(ids[:n])
			}
		}
		ids = ids[n:]
	}
}

// isAlone reports whether no other process uses the pool.
func (st *state) isAlone(core *pool.Pool) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.sessions) == 0
}

func (st *state) nextEpoch() int64 { return 1 }

func (st *state) seen() int64 {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.sequence
}

// leave ends a session: what waits is cancelled.
func (st *state) leave(h *handle) error {
	st.mu.Lock()
	delete(st.sessions, h.session)
	var ops []store.Op
	for id := range st.waiting {
		if id.Session == h.session {
			ops = append(ops, store.Op{Kind: store.OpCancel, ID: id})
		}
	}
	closed := st.closed
	st.mu.Unlock()
	if closed || len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	return st.apply(ctx, ops)
}

// leaveWithin bounds how long a process that ends waits for Redis.
const leaveWithin = 2 * time.Second

// close ends all sessions of the pool. Those who wait are told to look: they will find it closed.
func (st *state) close() error {
	st.mu.Lock()
	handles := make([]*handle, 0, len(st.sessions))
	for _, h := range st.sessions {
		handles = append(handles, h)
	}
	waiting := make([]store.ID, 0, len(st.waiting))
	for id := range st.waiting {
		waiting = append(waiting, id)
	}
	st.mu.Unlock()
	var errs []error
	for _, h := range handles {
		if h.closed.Swap(true) {
			continue
		}
		errs = append(errs, st.leave(h))
		if f := h.watch.Load(); f != nil {
			var ids []store.ID
			for _, id := range waiting {
				if id.Session == h.session {
					ids = append(ids, id)
				}
			}
			if len(ids) > 0 {
				(*f)(ids)
			}
		}
	}
	st.stop()
	return errors.Join(errs...)
}

// stop ends what goes on by itself.
func (st *state) stop() {
	st.mu.Lock()
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	st.mu.Unlock()
	st.line.stop()
}
