//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// Summarizing a pool takes longer than copying its records: 30 ms against 3 ms for 16 MB. All processes wait for the
// lock meanwhile, so snapshots work on a copy. A copy on the heap would stay until the next garbage collection and
// double the memory that the process may use. So the copy has its own memory, which the system gets back right after
// the snapshot. Only one snapshot at a time has a copy.

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

// look calls f with a copy of the pool that has been advanced to now. If the disk has no room for that step, look
// makes it only in the copy, because reading needs no disk space. f must not keep the pool.
func (h *handle) look(ctx context.Context, f func(p *pool.Pool, now store.Time)) error {
	st := h.state
	full := h.Apply(ctx, nil)
	if full != nil && !noRoom(full) {
		return full
	}
	if err := st.looking.LockContext(ctx); err != nil {
		return failed("lock", st.path, err)
	}
	defer st.looking.Unlock()
	mem, now, err := h.copied(ctx)
	if err != nil {
		return err
	}
	defer forget(mem)
	space, err := flat.Mapped(mem, func(size int64) error {
		if size > int64(len(mem)) {
			return flat.ErrFull
		}
		return nil
	})
	if err != nil {
		return err
	}
	var attached error
	err = st.faultless(func() {
		var p *pool.Pool
		if p, attached = pool.Attach(space); attached != nil {
			return
		}
		if full != nil {
			p.Apply(now, nil)
		}
		f(p, now)
	})
	return errors.Join(err, attached)
}

// copied returns a copy of the records, which the caller must release with forget, and the time of the copy.
func (h *handle) copied(ctx context.Context) (mem []byte, now store.Time, err error) {
	st := h.state
	if err := st.mu.LockContext(ctx); err != nil {
		return nil, 0, failed("lock", st.path, err)
	}
	defer st.mu.Unlock()
	err = st.locked(ctx, func() (err error) {
		if h.closed.Load() {
			return store.ErrClosed
		}
		size := st.space.Size()
		if mem, err = anonymous(2*size + 1<<20); err != nil { // spare room for a step on the copy
			return failed("look", st.path, err)
		}
		copy(mem, st.file.mem[page:page+size])
		now = st.now()
		return nil
	})
	if err != nil && mem != nil {
		forget(mem)
	}
	return mem, now, err
}
