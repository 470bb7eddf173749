package memstore

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// systemClock reads the wall clock once and the monotonic clock from then on, so steps of the wall clock have no
// effect.
type systemClock struct {
	start time.Time
	base  store.Time
}

func newSystemClock() *systemClock {
	now := time.Now()
	return &systemClock{now, store.Time(now.UnixMicro())}
}

func (c *systemClock) Now() store.Time {
	return c.base + store.Time(time.Since(c.start)/time.Microsecond)
}

func (c *systemClock) AfterFunc(d time.Duration, f func()) Timer {
	t := &systemTimer{f: f, timer: time.NewTimer(d), set: true, runs: true}
	go t.run()
	return t
}

// systemTimer calls f from a goroutine that ends when f has not set the timer again. While requests wait, the timer rings
// every millisecond: a goroutine for each call, as time.AfterFunc starts, would have to grow its stack each time.
type systemTimer struct {
	f     func()
	timer *time.Timer

	mu      sync.Mutex
	set     bool // since it last rang
	runs    bool // the goroutine exists
	stopped bool
}

func (t *systemTimer) run() {
	for {
		<-t.timer.C
		t.mu.Lock()
		t.set = false
		stopped := t.stopped
		t.mu.Unlock()
		if !stopped {
			t.f()
		}
		t.mu.Lock()
		if !t.set || t.stopped {
			t.runs = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
	}
}

func (t *systemTimer) Reset(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.set = true
	t.timer.Reset(d)
	if !t.runs {
		t.runs = true
		go t.run()
	}
}

// Stop ends the goroutine too. The timer cannot be set again.
func (t *systemTimer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.runs {
		t.timer.Reset(0)
	}
}
