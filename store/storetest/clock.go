package storetest

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Clock is a clock that stands still until Advance moves it. It has the methods that memstore requires of a clock.
// It is safe for concurrent use.
type Clock struct {
	mu     sync.Mutex
	now    store.Time
	timers map[*timer]struct{}
	seq    int
}

// NewClock returns a clock that shows start.
func NewClock(start store.Time) *Clock {
	return &Clock{now: start, timers: map[*timer]struct{}{}}
}

// Now returns the time of the clock.
func (c *Clock) Now() store.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc calls f, from within Advance, when the clock has been moved by d. A fraction of a microsecond is rounded
// up, so a timer never fires early.
func (c *Clock) AfterFunc(d time.Duration, f func()) interface {
	Reset(d time.Duration)
	Stop()
} {
	t := &timer{clock: c, f: f}
	t.Reset(d)
	return t
}

// Advance moves the clock by d. On the way it stops at the time of each due timer, in order, and calls its function
// at that time.
func (c *Clock) Advance(d time.Duration) {
	end := c.Now().Add(d)
	for {
		f := c.next(end)
		if f == nil {
			return
		}
		f()
	}
}

// next moves the clock to the first timer due by end and returns its function. If there is none, it moves the clock
// to end and returns nil.
func (c *Clock) next(end store.Time) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *timer
	for t := range c.timers {
		if t.at <= end && (first == nil || t.at < first.at || t.at == first.at && t.seq < first.seq) {
			first = t
		}
	}
	if first == nil {
		c.now = max(c.now, end)
		return nil
	}
	delete(c.timers, first)
	c.now = max(c.now, first.at)
	return first.f
}

type timer struct {
	clock *Clock
	f     func()
	at    store.Time
	seq   int // timers due at the same time fire in the order they were set
}

func (t *timer) Reset(d time.Duration) {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t.seq = c.seq
	t.at = c.now + store.Time((max(d, 0)+time.Microsecond-1)/time.Microsecond)
	c.timers[t] = struct{}{}
}

func (t *timer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
}
