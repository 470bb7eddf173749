package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/reading"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// handle is one session on a pool.
type handle struct {
	outage.Session
	state  *state
	watch  atomic.Pointer[func([]store.ID)]
	alarm  atomic.Pointer[func(store.Outage, bool)]
	closed atomic.Bool
}

var (
	_ store.Pool     = (*handle)(nil)
	_ store.Recorder = (*handle)(nil)
	_ store.Crowd    = (*handle)(nil)
	_ store.Alarm    = (*handle)(nil)
	_ store.Glancer  = (*handle)(nil)
	_ store.Foreseer = (*handle)(nil)
)

func (st *state) newHandle(spec store.Spec) *handle {
	st.mu.Lock()
	defer st.mu.Unlock()
	session := uint64(0)
	for session == 0 || st.sessions[session] != nil {
		st.lastSess = max((st.lastSess+1)&0xffff, 1)
		session = st.store.process<<16 | st.lastSess
	}
	h := &handle{state: st, Session: outage.Session{ID: session, Spec: spec}}
	h.Member = spec.OnFailure == store.FailShare && !spec.OneShot && !spec.ReadOnly && !st.store.fixed
	st.sessions[session] = h
	st.said.Add(session, &spec)
	if !spec.OneShot && !spec.ReadOnly {
		if !st.resident.Swap(true) && !st.store.fixed && !st.closed {
			st.running.Go(st.show)
		}
		st.enrol()
	}
	st.proc.Join(&h.Session)
	st.keep()
	return h
}

// Apply implements [store.Pool].
func (h *handle) Apply(ctx context.Context, ops []store.Op) error {
	if len(ops) > store.MaxBatch {
		return fmt.Errorf("%d operations in a batch: at most %d", len(ops), store.MaxBatch)
	}
	if h.closed.Load() {
		return store.ErrClosed
	}
	for i := range ops {
		if ops[i].ID.Session == 0 {
			ops[i].ID.Session = h.ID
		}
	}
	err := h.state.applyFor(ctx, h, ops)
	for i := range ops {
		if k := ops[i].Kind; k == store.OpPause || k == store.OpResume {
			h.state.reading.Forget() // the caller looks at what it has done
			break
		}
	}
	return err
}

// Crowded implements [store.Crowd].
func (h *handle) Crowded() bool { return h.state.crowded.Load() }

// Snapshot implements [store.Pool]. It first lets the pool apply what time alone has changed.
func (h *handle) Snapshot(ctx context.Context) (store.Snapshot, error) { return h.snapshot(ctx, false) }

// A pool of this many fields is large: a reading keeps Redis and this process busy for tens of milliseconds. The views of
// a daemon then share one for ten times as long as it took, at most largeAge. After that they take it while the next one is
// in progress, so that none of them waits. A reading that takes long is shared for as long as it took, so that a busy
// machine does not spend all its time reading.
const (
	largeFields = 8192
	largeAge    = time.Second
)

// share decides whether a view takes the last reading of a large pool.
func share(sinceEnd, took time.Duration) reading.Use {
	switch {
	case sinceEnd < min(10*took, max(largeAge, took)):
		return reading.Keep
	case sinceEnd < 3*max(largeAge, took):
		return reading.Renew
	}
	return reading.Refuse
}

// Glance implements [store.Glancer].
func (h *handle) Glance(ctx context.Context) (store.Snapshot, error) {
	return h.snapshot(ctx, true)
}

func (h *handle) snapshot(ctx context.Context, glance bool) (s store.Snapshot, err error) {
	use := exact
	if glance {
		use = func(last reading.Last[*contents]) reading.Use {
			if last.Value.size < largeFields || h.state.isLost.Load() {
				return reading.Refuse
			}
			return share(last.Age-last.Took, last.Took)
		}
	}
	err = h.look(ctx, use, func(p *pool.Pool, now store.Time) { s = p.Snapshot(now) })
	return s, err
}

// History implements [store.Recorder].
func (h *handle) History(ctx context.Context, since store.Time) (past store.History, err error) {
	err = h.look(ctx, exact, func(p *pool.Pool, now store.Time) { past = p.History(now, since) })
	return past, err
}

// Foresee implements [store.Foreseer].
func (h *handle) Foresee(ctx context.Context, ops []store.Op, within time.Duration) error {
	var failed error
	recent := func(last reading.Last[*contents]) reading.Use {
		if last.Age < within && !h.state.isLost.Load() {
			return reading.Keep
		}
		return reading.Refuse
	}
	err := h.look(ctx, recent, func(p *pool.Pool, now store.Time) { failed = p.Foresee(now, h.ID, ops) })
	return errors.Join(err, failed)
}

// exact has a caller wait for a reading of its own.
func exact(reading.Last[*contents]) reading.Use { return reading.Refuse }

// look calls f with a copy of the pool, which may be one that others have read if use says so.
func (h *handle) look(ctx context.Context, use func(reading.Last[*contents]) reading.Use, f func(p *pool.Pool, now store.Time)) error {
	if h.closed.Load() {
		return store.ErrClosed
	}
	st := h.state
	c, err := st.reading.Get(ctx, func(ctx context.Context) (*contents, error) { return st.copyFor(ctx, h) }, use)
	if err != nil {
		return err
	}
	c.mu.Lock() // several callers may share it
	defer c.mu.Unlock()
	f(c.core, c.now)
	return nil
}

// copyFor reads a copy of the pool, for a session that may be closed meanwhile.
func (st *state) copyFor(ctx context.Context, h *handle) (*contents, error) {
	if err := st.applyFor(ctx, h, nil); err != nil {
		return nil, err
	}
	if err := st.lossError(); err != nil {
		return nil, err
	}
	c, err := st.read(ctx)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, unavailable(errGone)
	}
	c.size, c.fields = len(c.fields), nil // core has them, and the copy may be kept
	return c, nil
}

// Watch implements [store.Pool].
func (h *handle) Watch(decided func([]store.ID)) { h.watch.Store(&decided) }

// OnOutage implements [store.Alarm].
func (h *handle) OnOutage(f func(o store.Outage, over bool)) { h.alarm.Store(&f) }

// Outage implements [store.Alarm].
func (h *handle) Outage() (store.Outage, bool) {
	st := h.state
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.outageOf(h), st.lost != nil
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
