package logstore

import (
	"math/rand/v2"
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
	return Clock{hashOf(id), uptime, preciseAfterFunc}
}

// hashOf is FNV-1a: a hash that is the same in all processes.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// estimate tells the pool's time between entries. It is never ahead: the stamp of an entry counts as the time at which the
// reply arrived.
type estimate struct {
	at store.Time    // pool time of an own entry; 0: none yet
	of time.Duration // the uptime at which its reply arrived
}

func (e *estimate) now(up time.Duration) store.Time { return e.at.Add(up - e.of) }

// rebaseAfter is how long an estimate counts, because clocks drift.
const rebaseAfter = 10 * time.Second

// took improves the estimate by an entry. The fastest reply gives the best one, so a later reply replaces it only if it
// shows a later time, or the estimate is old.
func (e *estimate) took(at store.Time, up time.Duration) {
	if e.at == 0 || at >= e.now(up) || up-e.of > rebaseAfter {
		*e = estimate{at, up}
	}
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
