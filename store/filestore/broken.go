//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Broken implements [store.Mortal]: it tries every pool that is open, which makes those anew whose files were
// removed. A second try follows an error, because the first one may have mended what was damaged.
func (s *Store) Broken(ctx context.Context) error {
	if s.mu.LockContext(ctx) != nil {
		return nil // it is busy
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
	st.checked = 0 // look now
	err := st.lockedBriefly(func() error { return nil })
	st.tell() // which gives st.mu back
	return err
}

// passes reports whether an error may be gone by itself in a while: another process has the lock, or something has run out that
// comes back.
func passes(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	ours := []error{context.Canceled, context.DeadlineExceeded, store.ErrClosed, errBusy}
	return slices.ContainsFunc(ours, is) || slices.ContainsFunc(transient, is) || noRoom(err)
}
