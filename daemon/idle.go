package daemon

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

// WaitIdle waits until no request has come or run for so long, and reports whether that was so. It returns false when ctx
// ends.
func (d *Daemon) WaitIdle(ctx context.Context, long time.Duration) bool {
	seen, since := d.served.Load(), time.Now()
	for sleep.For(ctx, max(long/10, time.Millisecond)) {
		if n := d.served.Load(); n != seen || d.earlier.Load() > 0 || d.now.Load().users.Load() > 1 {
			seen, since = n, time.Now()
		} else if time.Since(since) >= long {
			return true
		}
	}
	return false
}
