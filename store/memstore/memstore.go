// Package memstore keeps pools in the memory of one process: a mutex and a timer around the state machine that all
// stores share. It is the reference for the other stores.
//
// Importing it registers the scheme "mem:". Every store that is opened is separate.
package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

func init() {
	store.Register("mem", func(_ context.Context, url string) (store.Store, error) {
		if url != "mem:" {
			return nil, fmt.Errorf("store %q: nothing may follow \"mem:\"", url)
		}
		return New(), nil
	})
}

// Clock is the source of a store's time.
type Clock interface {
	Now() store.Time
	// AfterFunc calls f after d, once.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call. It is an alias so that clocks need not import this package.
type Timer = interface {
	Reset(d time.Duration)
	Stop()
}

// Option changes how a store works.
type Option func(*Store)

// WithClock replaces the process's clock, for tests and simulations.
func WithClock(c Clock) Option { return func(s *Store) { s.clock = c } }

// Store holds pools in memory.
type Store struct {
	clock Clock

	mu     sync.Mutex
	pools  map[string]*state
	kept   map[string]any
	closed bool
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Shelf  = (*Store)(nil)
	_ store.Lister = (*Store)(nil)
	_ store.Pool   = (*handle)(nil)
	_ store.Quick  = (*handle)(nil)
)

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{clock: newSystemClock(), pools: map[string]*state{}}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Pool implements [store.Store].
func (s *Store) Pool(_ context.Context, spec store.Spec) (store.Pool, error) {
	spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
	st, made, err := s.stateOf(spec)
	if err != nil {
		return nil, err
	}
	return st.open(spec, made)
}

// stateOf finds or creates a pool.
func (s *Store) stateOf(spec store.Spec) (st *state, made bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, store.ErrClosed
	}
	if st = s.pools[spec.Name]; st != nil {
		return st, false, nil
	}
	core, err := pool.New(spec, s.clock.Now())
	if err != nil {
		return nil, false, err
	}
	st = &state{clock: s.clock, core: core, sessions: map[uint64]*handle{}}
	s.pools[spec.Name] = st
	return st, true, nil
}

// Keep implements [store.Shelf].
func (s *Store) Keep(name string, value any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.kept[name]; ok {
		return old
	}
	if s.kept == nil {
		s.kept = map[string]any{}
	}
	s.kept[name] = value
	return value
}

// Secret implements [store.Secrets].
func (s *Store) Secret(_ context.Context, name string, fresh []byte) ([]byte, error) {
	return s.Keep("secret "+name, slices.Clone(fresh)).([]byte), nil
}

// Pools implements [store.Lister].
func (s *Store) Pools(context.Context) (store.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list store.Listing
	if s.closed {
		return list, store.ErrClosed
	}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		st := s.pools[name]
		st.mu.Lock()
		spec := st.core.Stated()
		st.mu.Unlock()
		if !list.Add(spec, nil) {
			break
		}
	}
	return list, nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, st := range s.pools {
		st.close()
	}
	return nil
}

// state is one pool and its sessions.
type state struct {
	clock Clock

	mu       sync.Mutex
	core     *pool.Pool
	quick    [1]store.Op // for CloseTicket and CollectTicket
	timer    Timer
	timerAt  store.Time // 0: not set
	lastSess uint64
	sessions map[uint64]*handle
	said     pool.Said
	closed   bool
}

// open starts a session with the limits of spec.
func (st *state) open(spec store.Spec, made bool) (*handle, error) {
	_ = st.apply(nil, nil) // what time has brought comes under the limits that there were; closed: said below
	st.mu.Lock()
	if !made && !spec.ReadOnly {
		if err := st.redefine(spec); err != nil {
			st.mu.Unlock()
			return nil, err
		}
	}
	st.lastSess++
	h := &handle{state: st, session: st.lastSess}
	st.sessions[h.session] = h
	st.said.Add(h.session, &spec)
	return h, st.applyLocked(nil, nil) // new limits may admit or refuse waiting requests
}

// redefine applies a member's limits to the pool. Only this store can have the pool open.
func (st *state) redefine(spec store.Spec) error {
	alone := spec.Restate || len(st.sessions) == 0
	if err := st.core.Reform(spec, alone); err != nil {
		return err
	}
	return st.core.Settle(st.said.With(&spec))
}

// close closes the pool. Sessions with waiting requests are notified and then find the pool closed.
func (st *state) close() {
	st.mu.Lock()
	var waiting []store.ID
	if !st.closed {
		for session := range st.sessions {
			waiting = append(waiting, st.core.WaitingOf(session)...)
		}
	}
	st.closed = true
	if st.timer != nil {
		st.timer.Stop()
	}
	bell := st.notices(waiting)
	st.mu.Unlock()
	bell.ring()
}

// apply runs one step, for a session or (h nil) for the pool itself, and notifies the sessions whose waiting tickets it
// decided.
func (st *state) apply(h *handle, ops []store.Op) error {
	st.mu.Lock()
	return st.applyLocked(h, ops)
}

// applyLocked is apply with the lock held. It releases the lock.
func (st *state) applyLocked(h *handle, ops []store.Op) error {
	if st.closed || h != nil && h.closed {
		st.mu.Unlock()
		return store.ErrClosed
	}
	now := st.clock.Now()
	st.core.Apply(now, ops)
	if wake := st.core.Wake(); wake != 0 {
		st.arm(now, wake)
	}
	decided := st.core.Decided()
	if len(decided) == 0 {
		st.mu.Unlock()
		return nil
	}
	bell := st.notices(decided)
	st.mu.Unlock()
	bell.ring()
	return nil
}

// arm sets the timer. A timer that is set for an earlier time is left alone: it finds nothing to do and sets itself
// again, which is cheaper than moving it at every step.
func (st *state) arm(now, wake store.Time) {
	if st.timerAt != 0 && st.timerAt <= wake {
		return
	}
	st.timerAt = wake
	d := wake.Sub(now)
	if st.timer == nil {
		st.timer = st.clock.AfterFunc(d, st.tick)
		return
	}
	st.timer.Reset(d)
}

func (st *state) tick() {
	st.mu.Lock()
	st.timerAt = 0
	_ = st.applyLocked(nil, nil) // the only error is ErrClosed: nothing is left to serve
}

// notice lists consecutive decided tickets of one session.
type notice struct {
	decided func([]store.ID)
	to      int // end of its tickets in ids
}

// bell is what a step has to tell. It is pooled, because while requests wait most steps decide some.
type bell struct {
	ids  []store.ID
	list []notice
}

var spareBells = sync.Pool{New: func() any { return new(bell) }}

// notices returns a bell for the sessions of tickets.
func (st *state) notices(ids []store.ID) *bell {
	b := spareBells.Get().(*bell)
	b.ids, b.list = b.ids[:0], b.list[:0]
	var at uint64
	for _, id := range ids {
		if n := len(b.list); n == 0 || at != id.Session {
			h := st.sessions[id.Session]
			if h == nil {
				continue
			}
			f := h.watch.Load()
			if f == nil {
				continue
			}
			at = id.Session
			b.list = append(b.list, notice{decided: *f})
		}
		b.ids = append(b.ids, id)
		b.list[len(b.list)-1].to = len(b.ids)
	}
	return b
}

// ring tells the sessions. The lock is not held.
func (b *bell) ring() {
	from := 0
	for i := range b.list {
		n := &b.list[i]
		n.decided(b.ids[from:n.to])
		from, n.decided = n.to, nil
	}
	spareBells.Put(b)
}

// handle is one session on a pool.
type handle struct {
	state   *state
	session uint64
	watch   atomic.Pointer[func([]store.ID)]
	// Guarded by the state's lock.
	closed bool
}

// Apply implements [store.Pool].
func (h *handle) Apply(_ context.Context, ops []store.Op) error {
	if len(ops) > store.MaxBatch {
		return fmt.Errorf("%d operations in a batch: at most %d", len(ops), store.MaxBatch)
	}
	for i := range ops {
		if ops[i].ID.Session == 0 {
			ops[i].ID.Session = h.session
		}
	}
	h.state.mu.Lock()
	return h.state.applyLocked(h, ops)
}

// CloseTicket implements [store.Quick].
func (h *handle) CloseTicket(id store.ID, spent bool) error {
	st := h.state
	st.mu.Lock()
	op := &st.quick[0]
	op.Kind, op.ID, op.Spent = store.OpClose, id, spent
	return st.applyLocked(h, st.quick[:])
}

// CollectTicket implements [store.Quick].
func (h *handle) CollectTicket(id store.ID) (store.Result, error) {
	st := h.state
	st.mu.Lock()
	if st.closed || h.closed {
		st.mu.Unlock()
		return store.Result{}, store.ErrClosed
	}
	op := &st.quick[0]
	op.Kind, op.ID = store.OpPoll, id
	st.core.Collect(st.clock.Now(), op)
	res := op.Result
	if st.core.Stirred() { // the ticket ended with its grant, so the next may go
		return res, st.applyLocked(nil, nil)
	}
	st.mu.Unlock()
	return res, nil
}

// History implements [store.Recorder].
func (h *handle) History(_ context.Context, since store.Time) (store.History, error) {
	st := h.state
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed || h.closed {
		return store.History{}, store.ErrClosed
	}
	return st.core.History(st.clock.Now(), since), nil
}

// Snapshot implements [store.Pool]. It first applies all changes that are due by now.
func (h *handle) Snapshot(context.Context) (store.Snapshot, error) {
	st := h.state
	_ = st.apply(nil, nil) // ErrClosed is returned below
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed || h.closed {
		return store.Snapshot{}, store.ErrClosed
	}
	return st.core.Snapshot(st.core.Now()), nil
}

// Foresee implements [store.Foreseer].
func (h *handle) Foresee(_ context.Context, ops []store.Op, _ time.Duration) error {
	st := h.state
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed || h.closed {
		return store.ErrClosed
	}
	return st.core.Foresee(st.clock.Now(), h.session, ops)
}

// Watches implements [store.Watcher]. It is always true: the store does not outlive its process.
func (h *handle) Watches() bool { return true }

// Watch implements [store.Pool].
func (h *handle) Watch(decided func([]store.ID)) { h.watch.Store(&decided) }

// Now implements [store.Pool].
func (h *handle) Now() store.Time { return h.state.clock.Now() }

// Close implements [store.Pool].
func (h *handle) Close() error {
	st := h.state
	_ = st.apply(nil, nil) // as for open
	st.mu.Lock()
	if h.closed {
		st.mu.Unlock()
		return nil
	}
	h.closed = true
	delete(st.sessions, h.session)
	var err error
	if st.said.Drop(h.session) { // it may be the one that made a limit small
		err = st.core.Settle(st.said.Specs())
	}
	stirred := st.core.Stirred()
	waiting, member := st.core.WaitingOf(h.session), st.core.IsMember(h.session)
	st.mu.Unlock()
	ops := make([]store.Op, 0, len(waiting)+1)
	for _, id := range waiting {
		ops = append(ops, store.Op{Kind: store.OpCancel, ID: id})
	}
	if member {
		ops = append(ops, store.Op{Kind: store.OpTouch, ID: store.ID{Session: h.session}, Spent: true})
	}
	if len(ops) == 0 && !stirred {
		return err
	}
	if e := st.apply(nil, ops); e != nil && !errors.Is(e, store.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}
