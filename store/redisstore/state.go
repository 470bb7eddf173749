package redisstore

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/reading"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// errGone reports that a pool has vanished from Redis.
var errGone = errors.New("the pool is not in Redis any more")

// state is what this process knows of one pool. Its sessions share it.
type state struct {
	store *Store
	name  string
	key   string
	uses  int // how many sessions use it; guarded by store.mu

	life    context.Context // ends when the pool is no longer used
	end     context.CancelFunc
	running sync.WaitGroup // background goroutines

	// whole serializes opening, healing and coming back to the pool. Lock it before mu.
	whole   sync.Mutex
	control pipe // for calls made under whole

	mu       sync.Mutex
	known    *pool.Pool      // only its limits count; nil: the pool was not read yet
	proc     *outage.Process // tickets and share of this process, kept for outages
	version  int64
	epoch    int64
	sequence int64 // the highest seen
	had      answered
	clock    estimate
	lastSess uint64
	said     pool.Said
	opening  *store.Spec // stated in advance by open, see stated.go; nil: none
	heldBy   string      // the process whose smaller size of a limit is in force instead of ours; "": unknown
	strange  store.Time  // until then sizes stay as they are: what some other process states is unknown
	sessions map[uint64]*handle
	memory   *memory    // what this machine recorded of the pool; nil: nothing is recorded
	recalled store.Time // the time of a memory that outdated has not judged yet; 0: none
	matters  time.Duration
	timer    interface {
		Reset(d time.Duration)
		Stop()
	}
	timerAt  store.Time
	upkeep   bool     // keepUp runs
	enrolled *os.File // its lock shows other processes that this one lives; nil: none
	closed   bool

	lost       *loss         // nil while the store is in reach
	publishing ctxlock.Mutex // held while publish writes what this process states
	touching   sync.Mutex    // held while the process tells the pool that it is alive, or leaves
	void       []*call       // calls with an unknown outcome
	isLost     atomic.Bool   // lost != nil
	upholding  atomic.Bool   // the goroutine of uphold runs
	crowded    atomic.Bool   // requests wait in the pool
	resident   atomic.Bool   // a session that is neither one-shot nor read-only was opened
	backAt     time.Duration // the uptime at which the last outage was over

	listener listener
	combiner combiner
	reading  reading.Shared[*contents]
}

func newState(s *Store, name string) *state {
	st := &state{
		store: s, name: name, key: s.prefix + ":{" + name + "}",
		sessions: map[uint64]*handle{}, proc: outage.New(s.process),
	}
	st.life, st.end = context.WithCancel(context.Background())
	st.control = newPipe()
	st.publishing = ctxlock.New()
	st.combiner.init(st)
	return st
}

// channel returns the prefix of the channels on which processes are told of decided tickets. The process's number follows.
func (st *state) channel() string { return st.key + ":" }

// now returns the estimated time of the server.
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

// rebaseAfter is how long an estimate of the server's clock is used, because clocks drift.
const rebaseAfter = 10 * time.Second

// took records the time and sequence of a reply. sent is the uptime at which the call was sent.
func (st *state) took(now store.Time, sequence int64, sent time.Duration) {
	up := uptime()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sequence = max(st.sequence, sequence)
	// The fastest reply gives the best estimate, so a later one replaces it only if it shows a later time.
	if now >= st.clock.now(up) || st.lost == nil && up-st.clock.of > rebaseAfter {
		st.clock = estimate{at: now, of: up, rtt: up - sent}
	}
}

// tell tells sessions of this process that their tickets were decided.
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

// leaveWithin bounds how long a closing session waits for Redis.
const leaveWithin = 2 * time.Second

// leave ends a session: it cancels the waiting tickets, and the last session of a member leaves the pool.
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
			return nil // the pool forgets the session by itself before long
		}
		return err
	}
	if said {
		st.takeBack(ctx)
	}
	return nil
}

func (st *state) sayGoodbye(ctx context.Context, ops []store.Op) error {
	st.touching.Lock() // a touch under way must not arrive after the farewell
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

// close ends all sessions of the pool. It wakes waiting callers, which then find the session closed.
func (st *state) close() error {
	st.mu.Lock()
	handles := slices.Collect(maps.Values(st.sessions))
	waiting := st.proc.Waiting(nil)
	st.mu.Unlock()
	var errs []error
	for _, h := range handles {
		if h.closed.Swap(true) {
			continue
		}
		errs = append(errs, st.leave(h))
		ids := slices.DeleteFunc(slices.Clone(waiting), func(id store.ID) bool { return id.Session != h.ID })
		if f := h.watch.Load(); f != nil && len(ids) > 0 {
			(*f)(ids)
		}
	}
	st.stop()
	return errors.Join(errs...)
}

// stop ends the background work and removes the lock file.
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
	cancel := st.listener.cancel
	st.listener.cancel = nil
	st.mu.Unlock()
	st.end()
	if cancel != nil {
		cancel()
	}
	st.combiner.stop()
	st.running.Wait()
	st.remember(true)
}
