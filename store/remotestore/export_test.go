package remotestore

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// WithClock replaces the daemon's clock as it is known here.
func WithClock(now func() store.Time) Option { return func(s *Store) { s.now = now } }

// Hear waits until all that the daemon has told so far has been heard.
func (s *Store) Hear(ctx context.Context) error {
	for _, h := range s.all() {
		if h.isClosed() {
			continue
		}
		if err := h.Apply(ctx, nil); err != nil {
			return err
		}
		for {
			h.mu.Lock()
			told, heard := h.notices, h.heard
			h.mu.Unlock()
			if heard >= told {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("heard %d of %d notices: %w", heard, told, ctx.Err())
			case <-time.After(50 * time.Microsecond):
			}
		}
	}
	return nil
}
