package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// stamp is a time on CLOCK_MONOTONIC, in nanoseconds. All processes of a machine share that clock and none can set it,
// so their stamps are comparable.
type stamp int64

// clock reads stamps. In a time namespace, CLOCK_MONOTONIC is shifted by an exact, known amount, which clock subtracts.
type clock struct{ shift time.Duration }

func (c clock) now() stamp {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no monotonic clock: " + err.Error()) // every system that this compiles on has one
	}
	return stamp(ts.Nano() - int64(c.shift))
}

// now returns the time on this process's clock, which is not shifted.
func now() stamp { return clock{}.now() }

func (s stamp) add(d time.Duration) stamp { return s + stamp(d) }
func (s stamp) sub(t stamp) time.Duration { return time.Duration(s - t) }

// wallShift returns how far Go's wall clock is off from the system's.
func wallShift() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts); err != nil {
		panic("no clock: " + err.Error())
	}
	return time.Duration(time.Now().UnixNano() - ts.Nano())
}
