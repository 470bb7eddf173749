//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// handle is one session on a pool.
type handle struct {
	state   *state
	session uint64
	watch   atomic.Pointer[func([]store.ID)]
	closed  atomic.Bool
	oneShot bool // it ends with its one request
}

// newSession returns an unused session number. The state is locked.
func (st *state) newSession() (uint64, error) {
	for range maxSessions {
		st.lastSess = max((st.lastSess+1)&maxSessions, 1)
		if n := st.process<<16 | st.lastSess; st.sessions[n] == nil {
			return n, nil
		}
	}
	return 0, errors.New("the pool is open too often in this process")
}

// maxSessions bounds the sessions of one process on a pool.
const maxSessions = 0xffff

// open starts a session with the limits of spec.
func (st *state) open(ctx context.Context, spec store.Spec) (*handle, error) {
	if err := st.mu.LockContext(ctx); err != nil {
		return nil, failed("lock", st.path, err)
	}
	var h *handle
	err := st.locked(ctx, func() (err error) {
		shift := st.now() - wall(st.store.clock) // the pool's clock and the time of day may have drifted apart
		for i := range spec.Limits {
			if l := &spec.Limits[i]; l.Reset != 0 {
				l.Reset += shift
			}
		}
		if !spec.ReadOnly { // before limits change: whoever looks at the sizes next knows of this one
			st.publish(st.said.With(&spec))
			defer func() {
				if err != nil {
					st.publish(st.said.Specs())
				}
			}()
		}
		if same := spec.ReadOnly || st.core.Is(&spec); !same || len(st.sessions) > 0 {
			if err := st.reform(&spec, same); err != nil && (!spec.ReadOnly || !noRoom(err)) {
				return err
			}
			st.keepTime()
		}
		session, err := st.newSession()
		if err != nil {
			return err
		}
		h = &handle{state: st, session: session, oneShot: spec.OneShot}
		st.sessions[h.session] = h
		st.said.Add(session, &spec)
		return nil
	})
	st.tell()
	return h, err
}

// reform merges a member's limits into the pool's. Waiting requests may be granted or refused because of them.
func (st *state) reform(spec *store.Spec, same bool) error {
	now := st.now()
	if !same {
		alone := len(st.sessions) == 0 || spec.Restate // limits stated before no longer count
		if alone {
			var err error
			if alone, err = st.isAlone(); err != nil {
				return err
			}
		}
		if err := st.define(now, spec, alone); err != nil {
			return err
		}
		if !alone {
			st.settle(now, st.said.With(spec))
		}
	}
	if err := st.step(now, nil); err != nil {
		return err
	}
	st.note(nil)
	return nil
}

// Apply implements [store.Pool].
func (h *handle) Apply(ctx context.Context, ops []store.Op) error {
	if len(ops) > store.MaxBatch {
		return fmt.Errorf("%d operations in a batch: at most %d", len(ops), store.MaxBatch)
	}
	if h.closed.Load() {
		return store.ErrClosed
	}
	waits := false
	for i := range ops {
		op := &ops[i]
		if op.ID.Session == 0 {
			op.ID.Session = h.session
		}
		waits = waits || op.Tie == store.TieGone || op.Wait != 0 && (op.Kind == store.OpAcquire || op.Kind == store.OpRenew)
	}
	if waits {
		if err := h.state.hang(ctx); err != nil {
			return err
		}
	}
	err := h.state.apply(ctx, ops)
	for i := range ops {
		if err == nil && ops[i].Kind == store.OpAcquire && ops[i].Result.State == store.Refused {
			h.state.sweepSoon()
			break
		}
	}
	return err
}

// Watches implements [store.Watcher]: the kernel closes the bell of a process exactly when the process dies.
func (h *handle) Watches() bool { return true }

// Crowded implements [store.Crowd].
func (h *handle) Crowded() bool { return h.state.crowded.Load() }

// hang makes sure that other processes can notify this one, before any of its requests waits.
func (st *state) hang(ctx context.Context) error {
	if st.hung.Load() {
		return nil
	}
	if err := st.mu.LockContext(ctx); err != nil {
		return failed("lock", st.path, err)
	}
	defer st.mu.Unlock()
	if st.bell != nil || st.closed {
		return nil
	}
	b, err := hang(st.dir, st.process, st.heard)
	if err == nil {
		st.bell = b
		st.hung.Store(true)
	}
	return err
}

// Watch implements [store.Pool].
func (h *handle) Watch(decided func([]store.ID)) { h.watch.Store(&decided) }

// Now implements [store.Pool].
func (h *handle) Now() store.Time {
	return h.state.now()
}

// Close implements [store.Pool].
func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	st := h.state
	s := st.store
	ctx, cancel := st.leavesWithin(h)
	defer cancel()
	err := st.leave(ctx, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	st.mu.Lock()
	last := len(st.sessions) == 0 && s.pools[st.name] == st
	st.mu.Unlock()
	if !last {
		return err
	}
	delete(s.pools, st.name)
	return errors.Join(err, st.shut(ctx))
}

// hurry is how long a command that makes one request waits for the lock when it leaves. Its caller sends the request
// when the command has ended, and the time in which the request has to arrive is running.
const hurry = 20 * time.Millisecond

// leavesWithin bounds how long a session may take to leave. One that gives up leaves what a killed process leaves, which
// the others put in order.
func (st *state) leavesWithin(h *handle) (context.Context, context.CancelFunc) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if h.oneShot && len(st.waiting) == 0 {
		return context.WithTimeout(context.Background(), hurry)
	}
	return context.Background(), func() {}
}

// leave ends a session and cancels its waiting requests.
func (st *state) leave(ctx context.Context, h *handle) error {
	st.mu.Lock()
	if st.closed {
		st.mu.Unlock()
		return nil
	}
	var waiting []store.ID
	member := false
	err := st.locked(ctx, func() error {
		waiting, member = st.core.WaitingOf(h.session), st.core.IsMember(h.session)
		if st.said.Drop(h.session) {
			st.publish(st.said.Specs())
			st.settle(st.now(), st.said.Specs())
		}
		return nil
	})
	delete(st.sessions, h.session)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		st.said.Drop(h.session)
		err = nil
	}
	st.tell()
	if member && err == nil {
		err = st.apply(context.Background(), []store.Op{{Kind: store.OpTouch, ID: store.ID{Session: h.session}, Spent: true}})
	}
	for len(waiting) > 0 && err == nil {
		n := min(len(waiting), store.MaxBatch)
		ops := make([]store.Op, n)
		for i, id := range waiting[:n] {
			ops[i] = store.Op{Kind: store.OpCancel, ID: id}
		}
		err = st.apply(context.Background(), ops)
		waiting = waiting[n:]
	}
	return err
}

// close ends all sessions of a pool. It notifies their waiting requests, which then find the pool closed.
func (st *state) close() error {
	st.mu.Lock()
	handles := make([]*handle, 0, len(st.sessions))
	for _, h := range st.sessions {
		handles = append(handles, h)
	}
	st.mu.Unlock()
	var errs []error
	for _, h := range handles {
		if h.closed.Swap(true) {
			continue
		}
		var waiting []store.ID
		st.mu.Lock()
		_ = st.locked(context.Background(), func() error {
			waiting = st.core.WaitingOf(h.session)
			return nil
		})
		st.mu.Unlock()
		errs = append(errs, st.leave(context.Background(), h))
		if f := h.watch.Load(); f != nil && len(waiting) > 0 {
			(*f)(waiting)
		}
	}
	return errors.Join(append(errs, st.shut(context.Background()))...)
}

// shut detaches the process from the pool. ctx bounds only the checksum for the next process.
func (st *state) shut(ctx context.Context) error {
	st.mu.Lock()
	if st.closed {
		st.mu.Unlock()
		return nil
	}
	b := st.bell
	if ctx.Err() == nil {
		st.sealUp(ctx)
	}
	err := st.detach()
	st.mu.Unlock()
	if b != nil {
		err = errors.Join(err, b.take()) // outside st.mu, because the bell's goroutine may need it
	}
	return err
}
