package redisstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sluicehq/sluice/internal/limitmap"
	"github.com/sluicehq/sluice/internal/pool"
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
func (h *handle) Snapshot(ctx context.Context) (s store.Snapshot, err error) {
	err = h.look(ctx, func(p *pool.Pool, now store.Time) {
		s = p.Snapshot(now)
		there, inForce := p.Limits()
		limitmap.Of(h.Spec.Limits, there, inForce).Snapshot(&s)
	})
	return s, err
}

// History implements [store.Recorder].
func (h *handle) History(ctx context.Context, since store.Time) (past store.History, err error) {
	err = h.look(ctx, func(p *pool.Pool, now store.Time) { past = p.History(now, since) })
	return past, err
}

// look calls f with a copy of the pool.
func (h *handle) look(ctx context.Context, f func(p *pool.Pool, now store.Time)) error {
	st := h.state
	if err := h.Apply(ctx, nil); err != nil {
		return err
	}
	if err := st.lossError(); err != nil {
		return err
	}
	c, err := st.read(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		return unavailable(errGone)
	}
	f(c.core, c.now)
	return nil
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
