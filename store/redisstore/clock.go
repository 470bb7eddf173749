package redisstore

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// systemClock times what this process does by itself; decisions are made on the server's.
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

// estimate is what is known of the server's clock from its last answer. Between answers it is
// carried on by uptime, which no one can set and which also goes on while the machine sleeps. It is
// never ahead of the server's: an answer counts as if it had taken no time to come.
type estimate struct {
	at  store.Time    // what the server said; 0: nothing yet
	of  time.Duration // the uptime at which that arrived
	rtt time.Duration // how long the call had taken: so much later it may be there
}

func (e *estimate) now(up time.Duration) store.Time { return e.at.Add(up - e.of) }

// latest is the latest that the server's clock can show when a call made now arrives there, 0 if that
// is not known. Two clocks may drift apart by one part in a thousand, and a call may be on its way for a
// while: margin is several times as long as any is waited for.
func (e *estimate) latest(up, margin time.Duration) store.Time {
	if e.at == 0 {
		return 0
	}
	return e.now(up).Add(e.rtt + margin + (up-e.of)/1000)
}

var started = time.Now()

// sinceStart is how long this process has been there by the clock that goes on: that of package time
// stands still while some machines sleep, and the time of day may be set.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
