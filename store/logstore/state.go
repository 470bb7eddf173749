package logstore

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// state is one pool in this process. Its sessions share it.
type state struct {
	store    *Store
	name     string
	log      sharedlog.Log
	process  uint64
	mine     func(session uint64) bool
	writer   *replica.Writer
	life     context.Context // ends when the pool is no longer used
	end      context.CancelFunc
	uses     int            // guarded by the store
	running  sync.WaitGroup // background work
	opening  sync.Mutex     // held while a session opens or closes
	listened time.Duration  // the uptime of the latest attempt to listen; opening guards it

	line     line
	requests sync.Pool

	// Of the goroutine that leads. The replica is changed by it alone, with mu held.
	loaded   bool
	at       sharedlog.Position // before the next entry
	parts    []replica.Request
	flight   flight
	poison   map[place]bool     // entries at which the replica fails
	reloaded time.Duration      // the uptime of the latest reload after a divergence
	before   *replica.Replica   // what was known before an attempt to load the log that is not over; nil: nothing
	was      sharedlog.Position // where that ended
	stood    sharedlog.Position // what this process had acted on before it loaded a log that may lack its end; zero: that is at
	more     *replica.Replica   // knows what the log may lack, see heal.go; nil: it lacks nothing
	owed     []store.Op         // that the log lacks

	mu       sync.Mutex // guards what follows
	rep      *replica.Replica
	loadedAt store.Time    // pool time when the log was first loaded
	loadedUp time.Duration // the uptime then
	ahead    headStart
	sessions map[uint64]*handle
	lastSess uint64
	waiting  map[store.ID]bool // requests of this process that were left waiting; true: spent with their grant
	// collected has grants of this process that their callers do not know of yet, see collect.
	collected map[store.ID]store.Result
	told      []store.ID            // of them, those that were decided since and have to be told
	notices   []store.Notice        // that sessions have to be told of
	rung      map[uint64]struct{}   // other processes that have to be woken
	keeper    uint64                // that the others wait for then
	late      map[uint64]store.Time // processes that they do not wait for, and until when
	wakeAt    store.Time            // what the replica waits for, as other processes know it
	timer     timer                 // nil before it is needed
	timerAt   store.Time            // 0: not set
	looked    time.Duration
	shot      int64         // size of the latest snapshot
	shooting  bool          // one is being written
	rests     time.Duration // the uptime until which others write snapshots
	upkeep    bool          // keepUp runs
	closed    bool

	memory *memory          // nil: there is none
	found  sharedlog.Loaded // of the first load, without its bytes

	posted []store.Op // that the log could not be told, see post
	heard  bool       // the log has heard of this process since the latest outage
	out    *outage    // nil while the log is in reach

	counts    counts
	calm      calm
	isCalm    atomic.Bool
	crowded   atomic.Bool
	listening atomic.Bool
}

func newState(s *Store, name string, oneShot bool) *state {
	process := replica.ProcessID(rand.Uint64()) //nolint:gosec // it names, it guards nothing
	st := &state{
		store: s, name: name, log: s.engine.Log(name), process: process,
		writer: replica.NewWriter(replica.Identity{Process: process, Machine: s.clock.Machine, OneShot: oneShot}),
		rep:    replica.New(), sessions: map[uint64]*handle{}, waiting: map[store.ID]bool{}, rung: map[uint64]struct{}{},
		collected: map[store.ID]store.Result{},
		poison:    map[place]bool{}, late: map[uint64]store.Time{},
	}
	st.mine = func(session uint64) bool { return replica.ProcessOf(session) == process }
	st.life, st.end = context.WithCancel(context.Background())
	return st
}

// patience is how long an exchange may take before the log counts as out of reach.
func (st *state) patience() time.Duration { return st.store.patience }

// open opens a session.
func (st *state) open(ctx context.Context, spec store.Spec) (*handle, error) {
	st.opening.Lock()
	defer st.opening.Unlock()
	h := &handle{state: st, spec: spec}
	st.mu.Lock()
	for h.session == 0 || st.sessions[h.session] != nil {
		st.lastSess = max((st.lastSess+1)&replica.MaxSession, 1)
		h.session = replica.SessionOf(st.process, st.lastSess)
	}
	st.mu.Unlock()
	recalled := st.recall()
	r := st.newRequest()
	r.Request = replica.Request{Kind: replica.Open, Session: h.session, Spec: &h.spec}
	if err := st.do(ctx, r); err != nil {
		return nil, st.lossError(err) // not recycled: the caller may have left
	}
	st.free(r)
	if st.misses(recalled, &spec) {
		if err := st.ask(ctx, replica.Forget); err != nil {
			return nil, st.lossError(err)
		}
	}
	if st.store.touch > 0 && (st.found.Created || st.found.Now/hour != st.found.At.Stamp/hour) { // it is new, or nobody has used it in this hour
		st.found.Created, st.found.At.Stamp = false, st.found.Now
		st.keep() // processes that go on do so again by themselves
	}
	if !spec.OneShot {
		st.listenLocked(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.sessions[h.session] = h
	if !st.upkeep && !st.closed && st.store.touch > 0 {
		st.upkeep = true
		st.running.Go(st.keepUp)
	}
	return h, nil
}

const hour = store.Time(time.Hour / time.Microsecond)

// leaveWithin bounds how long a closing session waits for the log.
const leaveWithin = 2 * time.Second

// leave ends a session. The last one ends the process's membership.
func (st *state) leave(h *handle) error {
	st.opening.Lock()
	defer st.opening.Unlock()
	st.mu.Lock()
	delete(st.sessions, h.session)
	last := len(st.sessions) == 0
	for id := range st.waiting {
		if id.Session == h.session {
			delete(st.waiting, id)
		}
	}
	var undo []store.Op
	for id := range st.collected {
		if id.Session == h.session {
			delete(st.collected, id)
			undo = append(undo, store.Op{Kind: store.OpCancel, ID: id})
		}
	}
	st.mu.Unlock()
	r := st.newRequest()
	r.Request = replica.Request{Kind: replica.Close, Session: h.session}
	if last {
		r.Kind = replica.Leave
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if len(undo) > 0 {
		_ = st.doOps(ctx, h.session, undo)
	}
	err := st.do(ctx, r)
	if errors.Is(err, errLost) || errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
		return nil // the others see before long that the process is gone
	}
	return err
}

// close ends all sessions. It wakes callers that wait, who then find their session closed.
func (st *state) close() error {
	st.mu.Lock()
	handles := slices.Collect(maps.Values(st.sessions))
	waiting := slices.Collect(maps.Keys(st.waiting))
	st.mu.Unlock()
	var errs []error
	for _, h := range handles {
		if h.closed.Swap(true) {
			continue
		}
		errs = append(errs, st.leave(h))
		ids := slices.DeleteFunc(slices.Clone(waiting), func(id store.ID) bool { return id.Session != h.session })
		h.tell(ids)
	}
	st.stop()
	return errors.Join(errs...)
}

// stop ends all background work.
func (st *state) stop() {
	st.remember(true)
	st.mu.Lock()
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	if st.out != nil && st.out.timer != nil {
		st.out.timer.Stop()
	}
	st.mu.Unlock()
	st.line.shut()
	st.end()
	st.running.Wait()
}
