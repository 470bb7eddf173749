package redisstore

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// errGone tells that a pool has vanished from Redis.
var errGone = errors.New("the pool is not in Redis any more")

// state is one pool, as this process knows it.
type state struct {
	store *Store
	name  string
	key   string
	users int // under the store's lock

	life    context.Context // ends with the pool's use
	end     context.CancelFunc
	running sync.WaitGroup // what goes on by itself

	// whole is held by who looks at the pool as a whole: opens it, heals it, or comes back to it. It is
	// taken before mu.
	whole   sync.Mutex
	control pipe

	mu       sync.Mutex
	known    *pool.Pool      // the limits; nothing else in it counts
	proc     *outage.Process // what this process has of it, also while the store is lost
	version  int64
	epoch    int64
	sequence int64 // the highest that was seen
	had      answered
	clock    estimate
	lastSess uint64
	said     pool.Said
	opening  *store.Spec // what is about to be said, see stated.go; nil: nothing
	heldBy   string      // the process whose size of a limit holds instead of a larger one of ours; "": not known
	strange  store.Time  // until when nothing is settled: nobody knows what another process states
	sessions map[uint64]*handle
	memory   *memory    // what the machine remembers of the pool; nil: nothing is kept
	recalled store.Time // the memory is of then, and nobody has looked whether it matters
	matters  time.Duration
	timer    interface {
		Reset(d time.Duration)
		Stop()
	}
	timerAt  store.Time
	upkeep   bool     // it goes on
	enrolled *os.File // whose lock tells that this process lives; nil: nothing does
	closed   bool

	lost      *loss         // nil while the store can be reached
	card      ctxlock.Mutex // held while others are told what this process states
	touching  sync.Mutex    // held while the pool is told that the process is there, or is not
	void      []*call       // calls of which it is not known whether they were made
	isLost    atomic.Bool
	upholding atomic.Bool   // a goroutine sees to what is stated
	crowded   atomic.Bool   // somebody waits in the pool
	resident  atomic.Bool   // somebody is here to stay
	backAt    time.Duration // uptime at which the last outage was over

	ears ears
	line combiner
}

func newState(s *Store, name string) *state {
	st := &state{
		store: s, name: name, key: s.prefix + ":{" + name + "}",
		sessions: map[uint64]*handle{}, proc: outage.New(s.process),
	}
	st.life, st.end = context.WithCancel(context.Background())
	st.control = newPipe()
	st.card = ctxlock.New()
	st.line.init(st)
	return st
}

// channel is where a process is told of decisions on its tickets: this and its number.
func (st *state) channel() string { return st.key + ":" }

// now returns the server's time, as near as it is known.
func (st *state) now() store.Time {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nowLocked()
}

func (st *state) nowLocked() store.Time {
	if st.store.fixed || st.clock.at == 0 {
		return st.store.clock.Now()
	}
	return st.clock.now(uptime())
}

// rebaseAfter is how long an estimate of the server's clock is relied on: clocks drift.
const rebaseAfter = 10 * time.Second

// took takes in what a reply says of the pool. The call was sent at an uptime.
func (st *state) took(now store.Time, sequence int64, sent time.Duration) {
	up := uptime()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sequence = max(st.sequence, sequence)
	// The answer that took the shortest is the best, and says for longest what time it is at least.
	if now >= st.clock.now(up) || st.lost == nil && up-st.clock.of > rebaseAfter {
		st.clock = estimate{at: now, of: up, rtt: up - sent}
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

// leaveWithin bounds how long a process that ends waits for Redis.
const leaveWithin = 2 * time.Second

// leave ends a session: what waits is cancelled, and a member leaves.
func (st *state) leave(h *handle) error {
	st.mu.Lock()
	delete(st.sessions, h.ID)
	ops := st.proc.Leave(&h.Session)
	said := st.said.Drop(h.ID) && st.resident.Load()
	closed := st.closed
	st.mu.Unlock()
	if closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if err := st.sayGoodbye(ctx, ops); err != nil {
		if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			return nil // who cannot say so is gone all the same: all of it is over by itself before long
		}
		return err
	}
	if said {
		st.takeBack(ctx)
	}
	return nil
}

func (st *state) sayGoodbye(ctx context.Context, ops []store.Op) error {
	st.touching.Lock() // a touch under way would come after the farewell
	defer st.touching.Unlock()
	for len(ops) > 0 {
		n := min(len(ops), maxTogether)
		if err := st.apply(ctx, ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// close ends all sessions of the pool. Those who wait are told to look: they will find it closed.
func (st *state) close() error {
	st.mu.Lock()
	handles := make([]*handle, 0, len(st.sessions))
	for _, h := range st.sessions {
		handles = append(handles, h)
	}
	waiting := st.proc.Waiting(nil)
	st.mu.Unlock()
	var errs []error
	for _, h := range handles {
		if h.closed.Swap(true) {
			continue
		}
		errs = append(errs, st.leave(h))
		f := h.watch.Load()
		if f == nil {
			continue
		}
		var ids []store.ID
		for _, id := range waiting {
			if id.Session == h.ID {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			(*f)(ids)
		}
	}
	st.stop()
	return errors.Join(errs...)
}

// stop ends what goes on by itself.
func (st *state) stop() {
	st.halt()
	st.strike(false)
}

func (st *state) halt() {
	st.mu.Lock()
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	if st.lost != nil {
		st.lost.stop()
	}
	cancel := st.ears.cancel
	st.ears.cancel = nil
	st.mu.Unlock()
	st.end()
	if cancel != nil {
		cancel()
	}
	st.line.stop()
	st.running.Wait()
	st.remember()
}
