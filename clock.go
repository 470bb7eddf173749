package sluice

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// sameClock is the difference up to which the store's clock counts as the same as ours. Its times are then shown
// unchanged, to the last digit.
const sameClock = time.Second

// loaded is when this process loaded the package.
var loaded = time.Now()

// uptime returns the time since then on the monotonic clock, for times that only this process compares: steps of the
// wall clock do not change it.
func uptime() time.Duration { return time.Since(loaded) }

// clock converts the store's times to our own wall clock, for people to read. Its value is how far our clock is ahead.
type clock time.Duration

// clockAt compares the clocks. now is the current time of the store.
func clockAt(now store.Time) clock {
	ahead := time.Duration(time.Now().UnixMicro()-int64(now)) * time.Microsecond
	if ahead.Abs() < sameClock {
		return 0
	}
	return clock(ahead)
}

func (r *resource) clock() clock { return clockAt(r.pool.Now()) }

// time converts a store time to our clock; 0 becomes the zero time.
func (c clock) time(t store.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	if c == 0 {
		return t.Std()
	}
	// The comparison of the clocks is not exact to the microsecond.
	return t.Std().Add(time.Duration(c)).Round(time.Millisecond)
}

// minute returns the minute of our clock that covers most of a minute of the store's clock.
func (c clock) minute(start store.Time) time.Time {
	return c.time(start).Add(time.Minute / 2).Truncate(time.Minute)
}

// moment converts a store time for JSON; 0 becomes nil.
func (c clock) moment(t store.Time) *time.Time {
	if t == 0 {
		return nil
	}
	at := c.time(t)
	return &at
}

// store converts one of our times to the store's clock; the zero time becomes 0.
func (c clock) store(t time.Time) store.Time {
	if t.IsZero() {
		return 0
	}
	return store.Time(max(t.Add(-time.Duration(c)).UnixMicro(), 0))
}
