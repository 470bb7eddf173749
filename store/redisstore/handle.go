package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
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
	places atomic.Pointer[limitmap.Map] // of this session's limits in the pool
	closed atomic.Bool
}

var (
	_ store.Pool     = (*handle)(nil)
	_ store.Recorder = (*handle)(nil)
	_ store.Crowd    = (*handle)(nil)
	_ store.Alarm    = (*handle)(nil)
	_ store.Glancer  = (*handle)(nil)
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
	h.place()
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

// place maps the session's limits to the pool's. The caller holds st.mu.
func (h *handle) place() {
	there, inForce := h.state.known.Limits()
	p := limitmap.Of(h.Spec.Limits, there, inForce)
	h.places.Store(&p)
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
	return h.state.applyFor(ctx, h, ops)
}

// Crowded implements [store.Crowd].
func (h *handle) Crowded() bool { return h.state.crowded.Load() }

// Snapshot implements [store.Pool]. It first lets the pool apply what time alone has changed.
func (h *handle) Snapshot(ctx context.Context) (store.Snapshot, error) { return h.snapshot(ctx, 0) }

// A pool of this many fields is large: a reading keeps Redis and this process busy for tens of milliseconds. The views of
// a daemon then share one for ten times as long as it took, at most largeAge. A reading that took longer than largeAge is
// shared for as long as it took, so that a busy machine does not spend all its time reading.
const (
	largeFields = 8192
	largeAge    = time.Second
)

// recent reports whether a reading of a large pool may be shared. Readers that want an exact state give age 0.
func recent(sinceEnd, took, age time.Duration) bool {
	return age > 0 && sinceEnd < min(10*took, max(age, took))
}

// Glance implements [store.Glancer].
func (h *handle) Glance(ctx context.Context) (store.Snapshot, error) {
	return h.snapshot(ctx, largeAge)
}

func (h *handle) snapshot(ctx context.Context, age time.Duration) (s store.Snapshot, err error) {
	err = h.look(ctx, age, func(p *pool.Pool, now store.Time) {
		s = p.Snapshot(now)
		there, inForce := p.Limits()
		limitmap.Of(h.Spec.Limits, there, inForce).Snapshot(&s)
	})
	return s, err
}

// History implements [store.Recorder].
func (h *handle) History(ctx context.Context, since store.Time) (past store.History, err error) {
	err = h.look(ctx, 0, func(p *pool.Pool, now store.Time) { past = p.History(now, since) })
	return past, err
}

// look calls f with a copy of the pool. The copy of a large pool may have the given age.
func (h *handle) look(ctx context.Context, age time.Duration, f func(p *pool.Pool, now store.Time)) error {
	if h.closed.Load() {
		return store.ErrClosed
	}
	st := h.state
	c, err := st.reading.Get(ctx, func(ctx context.Context) (*contents, error) { return st.copyFor(ctx, h) }, func(last reading.Last[*contents]) bool {
		return len(last.Value.fields) >= largeFields && recent(last.Age-last.Took, last.Took, age) && !st.isLost.Load()
	})
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
