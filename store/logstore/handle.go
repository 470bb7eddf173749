package logstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// handle is one session on a pool.
type handle struct {
	state   *state
	session uint64
	spec    store.Spec
	watch   atomic.Pointer[func([]store.ID)]
	alarm   atomic.Pointer[func(store.Outage, bool)]
	notice  atomic.Pointer[func(store.Notice)]
	crowd   atomic.Pointer[func()]
	closed  atomic.Bool
}

var (
	_ store.Pool     = (*handle)(nil)
	_ store.Recorder = (*handle)(nil)
	_ store.Crowd    = (*handle)(nil)
	_ store.Calm     = (*handle)(nil)
	_ store.Foreseer = (*handle)(nil)
	_ store.Alarm    = (*handle)(nil)
	_ store.Copied   = (*handle)(nil)
)

// Apply implements [store.Pool].
func (h *handle) Apply(ctx context.Context, ops []store.Op) error {
	if len(ops) > store.MaxBatch {
		return fmt.Errorf("%d operations in a batch: at most %d", len(ops), store.MaxBatch)
	}
	if h.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range ops {
		if ops[i].ID.Session == 0 {
			ops[i].ID.Session = h.session
		}
	}
	if len(ops) == 1 && h.state.taken(&ops[0]) {
		return nil
	}
	if mayWait(ops) {
		h.state.listen(ctx)
	}
	for {
		err := h.state.doOps(ctx, h.session, ops)
		if errors.Is(err, errLost) {
			err = h.state.decideAlone(h, ops)
		}
		if !errors.Is(err, errBack) {
			return err
		}
	}
}

// Crowded implements [store.Crowd].
func (h *handle) Crowded() bool { return h.state.crowded.Load() }

// Snapshot implements [store.Pool].
func (h *handle) Snapshot(ctx context.Context) (s store.Snapshot, err error) {
	err = h.look(ctx, func(p *pool.Pool, now store.Time) { s = p.Snapshot(now) })
	return s, err
}

// History implements [store.Recorder].
func (h *handle) History(ctx context.Context, since store.Time) (past store.History, err error) {
	err = h.look(ctx, func(p *pool.Pool, now store.Time) { past = p.History(now, since) })
	return past, err
}

// Foresee implements [store.Foreseer].
func (h *handle) Foresee(ctx context.Context, ops []store.Op, _ time.Duration) error {
	var failed error
	err := h.look(ctx, func(p *pool.Pool, now store.Time) { failed = p.Foresee(now, h.session, ops) })
	return errors.Join(err, failed)
}

// look reads what others have appended, and calls f with a copy of the pool in which time has come to now. The pool itself
// does not move.
func (h *handle) look(ctx context.Context, f func(p *pool.Pool, now store.Time)) error {
	if h.closed.Load() {
		return store.ErrClosed
	}
	st := h.state
	r := st.newRequest()
	r.look = true
	if err := st.do(ctx, r); err != nil {
		return st.lossError(err)
	}
	st.free(r)
	view, now := st.view()
	if view == nil {
		return Unavailable(errNoPool)
	}
	for wake := view.Wake(); wake != 0 && wake <= now; {
		view.Serve(wake)
		next := view.Wake()
		if next <= wake {
			break
		}
		wake = next
	}
	f(view, now)
	return nil
}

// errNoPool reports that no session has opened the pool.
var errNoPool = errors.New("the log has no pool yet")

// view returns a copy of the pool, and the time.
func (st *state) view() (*pool.Pool, store.Time) {
	up := st.store.clock.Uptime()
	st.mu.Lock()
	defer st.mu.Unlock()
	core := st.rep.Pool()
	if core == nil {
		return nil, 0
	}
	return core.View(), st.nowAt(up)
}

// Watch implements [store.Pool].
func (h *handle) Watch(decided func([]store.ID)) { h.watch.Store(&decided) }

// tell tells the session of requests that were decided.
func (h *handle) tell(ids []store.ID) {
	if f := h.watch.Load(); f != nil && len(ids) > 0 {
		(*f)(ids)
	}
}

// OnOutage implements [store.Alarm].
func (h *handle) OnOutage(f func(o store.Outage, over bool)) { h.alarm.Store(&f) }

// Outage implements [store.Alarm].
func (h *handle) Outage() (store.Outage, bool) {
	st := h.state
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.outageOf(h), st.out != nil
}

// Now implements [store.Pool].
func (h *handle) Now() store.Time { return h.state.now() }

// Close implements [store.Pool].
func (h *handle) Close() error {
	if h.closed.Swap(true) {
		return nil
	}
	err := h.state.leave(h)
	h.state.store.release(h.state)
	return err
}
