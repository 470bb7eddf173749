package logstore

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns how long the machine has been up, including sleep. The monotonic clock of package time stands still while
// a machine sleeps, so a lease that is long over would seem to last.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return sinceStart()
	}
	return time.Duration(ts.Nano())
}
