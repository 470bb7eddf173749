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
	// after is [time.AfterFunc] of this clock; nil: that itself.
	after func(d time.Duration, f func()) timer
}

// systemClock returns the clock of this machine. If the system does not tell which boot this is, the process counts as a
// machine of its own.
func systemClock() Clock {
	id := bootID()
	if id == "" {
		return Clock{rand.Uint64() | 1, uptime, preciseAfterFunc} //nolint:gosec // it names, it guards nothing
	}
	namespace, _ := os.Readlink("/proc/self/ns/time") // of Linux: each has a clock of its own
	return Clock{hashOf(id + namespace), uptime, preciseAfterFunc}
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

// headStart learns how much later than planned entries are stamped that are to show that a moment has come: the timer fires late, the
// estimate lags behind, and the entry travels. So they are planned that much earlier.
type headStart struct {
	least   time.Duration // by which they were late
	planned store.Time    // when the one under way was to be made; 0: none is
}

// mostAhead bounds the head start: another process appends an entry if this one is late.
const mostAhead = grace

// time returns the head start: less than the least delay, so that few entries are too early.
func (s *headStart) time() time.Duration { return s.least * 3 / 4 }

// took learns from an entry. The least delay is forgotten slowly.
func (s *headStart) took(at store.Time) {
	if s.planned == 0 {
		return
	}
	late := min(max(at.Sub(s.planned), 0), mostAhead)
	s.least = min(late, s.least+(late-s.least)/16)
	s.planned = 0
}

var started = time.Now()

// sinceStart returns how long this process has run, by the clock that shows more. The monotonic clock of package time
// stands still while some machines sleep, and the time of day can be set back.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
