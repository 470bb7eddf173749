package fleet_test

import (
	"runtime"
	"testing"
	"time"
)

// idleTime is not to be had here: the processors count as idle all the time, and timers alone tell.
func idleTime(*testing.T) time.Duration {
	return time.Duration(now()) * time.Duration(runtime.NumCPU())
}
