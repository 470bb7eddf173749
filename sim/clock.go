package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// clock runs a store on virtual time.
type clock struct{ *loop }

var _ memstore.Clock = clock{}

func (c clock) Now() store.Time { return c.now }

func (c clock) AfterFunc(d time.Duration, f func()) memstore.Timer {
	t := &timer{loop: c.loop, f: f}
	t.Reset(d)
	return t
}

type timer struct {
	*loop
	f     func()
	event *event
}

func (t *timer) Reset(d time.Duration) {
	t.Stop()
	// Rounded up: a timer never fires early.
	t.event = t.after(store.Time((max(d, 0)+time.Microsecond-1)/time.Microsecond), t.f)
}

func (t *timer) Stop() {
	if t.event != nil {
		t.cancel(t.event)
		t.event = nil
	}
}
