package remotestore

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// WithClock replaces the daemon's clock as it is known here.
func WithClock(now func() store.Time) Option { return func(s *Store) { s.now = now } }

// Hear waits until every session has been told of as many tickets as the daemon's store has told of.
func (s *Store) Hear(ctx context.Context, told func(session uint64) int) error {
	for _, h := range s.all() {
		for {
			h.mu.Lock()
			heard, of := h.heard, told(h.session)
			h.mu.Unlock()
			if heard >= of {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("heard of %d tickets, not %d: %w", heard, of, ctx.Err())
			case <-time.After(50 * time.Microsecond):
			}
		}
	}
	return nil
}
