//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Broken implements [store.Mortal]. It tries every open pool, which recreates pools whose files were removed. After
// an error it tries again, because the first try may have repaired the damage.
func (s *Store) Broken(ctx context.Context) error {
	if s.mu.LockContext(ctx) != nil {
		return nil // the store is busy
	}
	pools := make([]*state, 0, len(s.pools))
	for _, st := range s.pools {
		pools = append(pools, st)
	}
	s.mu.Unlock()
	for _, st := range pools {
		err := st.try(ctx)
		if err != nil && !passes(err) {
			err = st.try(ctx)
		}
		if err != nil && !passes(err) {
			return err
		}
	}
	return nil
}

// try finds out whether the pool can be used.
func (st *state) try(ctx context.Context) error {
	if err := st.mu.LockContext(ctx); err != nil {
		return err
	}
	st.checked = 0 // check the file now
	err := st.lockedBriefly(func() error { return nil })
	st.tell() // unlocks st.mu
	return err
}

// passes reports whether an error may go away by itself: another process holds the lock, or a resource has run out
// for now.
func passes(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	ours := []error{context.Canceled, context.DeadlineExceeded, store.ErrClosed, errBusy}
	return slices.ContainsFunc(ours, is) || slices.ContainsFunc(transient, is) || noRoom(err)
}
