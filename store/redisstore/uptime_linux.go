package redisstore

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long the machine has been up, asleep or not. The clock of package time stands still
// while a machine sleeps: then a lease would seem to last that is long over.
func uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return sinceStart()
	}
	return time.Duration(ts.Nano())
}
