package sluice

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// sameClock is how far the store's clock may be from ours and still be taken for the same: then
// its times are shown as they are, to the last digit.
const sameClock = time.Second

// clock turns the store's times into times of our own wall clock, for people to read. It is the
// time by which ours is ahead.
type clock time.Duration

// clockAt compares the clocks: it is now on the store's.
func clockAt(now store.Time) clock {
	ahead := time.Duration(time.Now().UnixMicro()-int64(now)) * time.Microsecond
	if ahead.Abs() < sameClock {
		return 0
	}
	return clock(ahead)
}

func (r *resource) clock() clock { return clockAt(r.pool.Now()) }

// time is a store time on our clock; zero for none.
func (c clock) time(t store.Time) time.Time {
	if t == 0 {
		return time.Time{}
	}
	if c == 0 {
		return t.Std()
	}
	// The clocks are never compared to the microsecond.
	return t.Std().Add(time.Duration(c)).Round(time.Millisecond)
}

// minute is the minute of our clock that a minute of the store's falls into, for the most part.
func (c clock) minute(start store.Time) time.Time {
	return c.time(start).Add(time.Minute / 2).Truncate(time.Minute)
}

// moment is a store time as JSON wants it; nil for none.
func (c clock) moment(t store.Time) *time.Time {
	if t == 0 {
		return nil
	}
	at := c.time(t)
	return &at
}

// store is one of our times on the store's clock, 0 for none.
func (c clock) store(t time.Time) store.Time {
	if t.IsZero() {
		return 0
	}
	return store.Time(max(t.Add(-time.Duration(c)).UnixMicro(), 0))
}
