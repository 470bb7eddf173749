//go:build linux || darwin

package fleet_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// taskVar holds the task of a process that a test has started: the test binary starts itself again.
const taskVar = "SLUICE_FLEET_TEST_TASK"

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if task := os.Getenv(taskVar); task != "" {
		os.Exit(work(task))
	}
	code := m.Run()
	if n := waived.Load(); n > 0 && n == stretches.Load() {
		fmt.Printf("the machine never kept up: in none of %d measurements can anybody tell what was granted\n", n)
		if os.Getenv("SLUICE_STRICT") != "" && code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}

// stamp is a moment on CLOCK_MONOTONIC, in nanoseconds. All processes of a machine share that clock, and nobody
// can set it.
type stamp int64

func now() stamp {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("no monotonic clock: " + err.Error()) // every system that this compiles on has one
	}
	return stamp(t.Nano())
}

func (s stamp) sub(t stamp) time.Duration { return time.Duration(s - t) }
