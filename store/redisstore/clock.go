package redisstore

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// systemClock times what this process does in the background. Decisions use the server's clock.
type systemClock struct{}

func (systemClock) Now() store.Time { return store.Time(time.Now().UnixMicro()) }

func (systemClock) AfterFunc(d time.Duration, f func()) interface {
	Reset(d time.Duration)
	Stop()
} {
	return systemTimer{time.AfterFunc(d, f)}
}

type systemTimer struct{ t *time.Timer }

func (t systemTimer) Reset(d time.Duration) { t.t.Reset(d) }
func (t systemTimer) Stop()                 { t.t.Stop() }

// estimate estimates the server's clock from a reply. Between replies it advances with uptime, which cannot be set and
// includes time that the machine sleeps. It is never ahead of the server's clock: a reply counts as if it had arrived the
// moment it was sent.
type estimate struct {
	at  store.Time    // the server's time in the reply; 0: no reply yet
	of  time.Duration // the uptime at which the reply arrived
	rtt time.Duration // how long the call took: the server's clock may be ahead by this much
}

func (e *estimate) now(up time.Duration) store.Time { return e.at.Add(up - e.of) }

// latest returns the latest time that the server's clock can show when a call sent now arrives, or 0 if unknown. It allows
// clocks to drift apart by one part in a thousand. margin covers the time that the call is under way: several times as
// long as the caller waits for a reply.
func (e *estimate) latest(up, margin time.Duration) store.Time {
	if e.at == 0 {
		return 0
	}
	return e.now(up).Add(e.rtt + margin + (up-e.of)/1000)
}

var started = time.Now()

// sinceStart returns how long this process has run, by the clock that shows more. The monotonic clock of package time
// stands still while some machines sleep, and the time of day can be set back.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
