package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// starvation returns the longest time within half a second that a server waited for a processor. If that is long, the
// server was slow because the machine was busy. Timers do not show this, because schedulers favour processes that sleep
// a lot. It returns 0 if the system does not report it, or if s is nil.
func starvation(ctx context.Context, s *redisrun.Server) (most time.Duration) {
	const step, steps = 100 * time.Millisecond, 5
	var seen []time.Duration
	for ; ctx.Err() == nil; pause(ctx, step) {
		var waited time.Duration
		if s != nil {
			waited = runDelay(s.Pid())
		}
		if len(seen) > 0 && waited < seen[len(seen)-1] { // the server was restarted or is down
			seen = nil
		}
		if seen = append(seen, waited); len(seen) > steps+1 {
			seen = seen[1:]
		}
		most = max(most, waited-seen[0])
	}
	return most
}

// runDelay returns how long a process has waited for a processor since its start, or 0 if the system does not report
// it.
func runDelay(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	return parseRunDelay(string(text))
}

// parseRunDelay parses the second number of schedstat: nanoseconds on a run queue.
func parseRunDelay(text string) time.Duration {
	fields := strings.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	n, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}
