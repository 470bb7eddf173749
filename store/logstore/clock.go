package logstore

import (
	"math/rand/v2"
	"os"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Clock is the monotonic clock of a machine. Processes with the same Machine read the same clock.
type Clock struct {
	Machine uint64               // names the machine since its latest boot
	Uptime  func() time.Duration // advances also while the machine sleeps, and cannot be set
}

// systemClock returns the clock of this machine. If the system does not tell which boot this is, the process counts as a
// machine of its own.
func systemClock() Clock {
	id := bootID()
	if id == "" {
		return Clock{rand.Uint64() | 1, uptime} //nolint:gosec // it names, it guards nothing
	}
	namespace, _ := os.Readlink("/proc/self/ns/time") // of Linux: each has a clock of its own
	return Clock{hashOf(id + namespace), uptime}
}

// hashOf is FNV-1a: a hash that is the same in all processes.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// now returns the pool's time, as closely as it is known.
func (st *state) now() store.Time {
	up := st.store.clock.Uptime()
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nowAt(up)
}

// nowAt is now at an uptime. Before the first entry of this machine it is the time of the log when it was loaded, and what has
// passed since. The caller holds st.mu.
func (st *state) nowAt(up time.Duration) store.Time {
	if now, known := st.rep.NowAt(st.store.clock.Machine, up); known {
		return now
	}
	return max(st.loadedAt.Add(up-st.loadedUp), st.rep.Now())
}

var started = time.Now()

// sinceStart returns how long this process has run, by the clock that shows more. The monotonic clock of package time
// stands still while some machines sleep, and the time of day can be set back.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
