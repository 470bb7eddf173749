package sluicehttp

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
)

// Bodies bounds the memory for request bodies that are held until they are sent. Transports can share one. Bodies of up
// to 16 KiB do not count. A request whose body finds no room fails with [sluice.ErrFull]. Once more than half is used,
// bodies are no longer kept for retries after they were sent, unless [Letters] may need them. The last quarter is for
// requests of the highest class, so that others cannot shut them out.
type Bodies struct {
	// Max is the most that may be held, in bytes.
	Max  int64
	used atomic.Int64
}

// errNoRoom is the error for a body that finds no room.
var errNoRoom = errors.New("sluicehttp: too many bytes of waiting requests are held")

// take reserves n bytes, and reports whether they are free. A nil b has no bound.
func (b *Bodies) take(n int64, highest bool) bool {
	for b != nil {
		used, most := b.used.Load(), b.Max
		if !highest {
			most -= b.Max / 4
		}
		if used+n > most {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			break
		}
	}
	return true
}

func (b *Bodies) give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

// tight reports whether bodies should be dropped early.
func (b *Bodies) tight() bool { return b != nil && b.used.Load() > b.Max/2 }

// full turns errNoRoom into what the caller gets.
func (f *flight) full(err error) error {
	if !errors.Is(err, errNoRoom) {
		return err
	}
	return &sluice.Error{
		Err: sluice.ErrFull, Resource: f.t.Resource, Agent: f.caller.Agent, RetryAt: time.Now().Add(time.Second), Reason: "full",
		Message: f.t.Resource + ": the bodies of waiting requests take too much memory", Hint: "send fewer large requests at a time",
	}
}
