// Package sleep waits for time to pass, and for no longer than a context lasts.
package sleep

import (
	"context"
	"time"
)

// For waits for d. It reports false as soon as ctx is over, also if there is nothing to wait for.
func For(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
