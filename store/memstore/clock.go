package memstore

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// systemClock reads the wall clock once and the monotonic clock from then on, so steps of the wall clock have no
// effect.
type systemClock struct {
	start time.Time
	base  store.Time
}

func newSystemClock() *systemClock {
	now := time.Now()
	return &systemClock{now, store.Time(now.UnixMicro())}
}

func (c *systemClock) Now() store.Time {
	return c.base + store.Time(time.Since(c.start)/time.Microsecond)
}

func (c *systemClock) AfterFunc(d time.Duration, f func()) Timer {
	return systemTimer{time.AfterFunc(d, f)}
}

type systemTimer struct{ t *time.Timer }

func (t systemTimer) Reset(d time.Duration) { t.t.Reset(d) }
func (t systemTimer) Stop()                 { t.t.Stop() }
