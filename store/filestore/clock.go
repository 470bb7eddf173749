//go:build linux || darwin || windows

package filestore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Clock is the source of time. It must be the same for all processes that share a directory.
type Clock interface {
	// Now returns the time since the machine was booted.
	Now() store.Time
	// Boot identifies this boot of the machine.
	Boot() [16]byte
	// AfterFunc calls f after d, once.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of AfterFunc. It is an alias so that a Clock need not import this package.
type Timer = interface {
	Reset(d time.Duration)
	Stop()
}

// bootClock is the system clock that counts from boot and continues while the machine sleeps. Reading it takes a
// system call. Go's own clock needs none, but stops during sleep. So bootClock reads the system clock at most ten
// times a second. The two may also run at different rates: macOS slews one of them, and not the other.
type bootClock struct {
	boot   [16]byte
	micros func() int64 // the system's clock
	start  time.Time
	base   atomic.Int64 // the system's clock at start
	until  atomic.Int64 // nanoseconds since start until which base is valid
	mu     sync.Mutex
}

const askEvery = 100 * time.Millisecond

// systemClock is shared by the whole process.
var systemClock = sync.OnceValues(func() (*bootClock, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	return newBootClock(boot, bootMicros), nil
})

func newBootClock(boot [16]byte, micros func() int64) *bootClock {
	c := &bootClock{boot: boot, micros: micros, start: time.Now()}
	c.ask(0)
	return c
}

func (c *bootClock) Boot() [16]byte { return c.boot }

func (c *bootClock) Now() store.Time {
	if cheapClock {
		return store.Time(bootMicros())
	}
	since := time.Since(c.start)
	if int64(since) >= c.until.Load() {
		c.ask(since)
	}
	return store.Time(c.base.Load() + int64(since)/1000)
}

// ask updates base. It grows by the time that the machine slept, and follows the difference of the rates. Otherwise a
// process that runs for days would be ahead of those that have just begun, and give back charges too early.
func (c *bootClock) ask(since time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Both clocks must be read at nearly the same instant, but this process may be interrupted in between.
	const apart, noise = 20 * time.Microsecond, 100
	best, base := time.Duration(1<<62), int64(0)
	for range 100 {
		before := time.Since(c.start)
		boot := c.micros()
		after := time.Since(c.start)
		if d := after - before; d < best {
			best, base = d, boot-int64(before+d/2)/1000
		}
		if best <= apart {
			break
		}
	}
	doubt := noise + int64(best/2)/1000 // an interruption makes base wrong by at most half the time of the reading
	if was := c.base.Load(); was == 0 || base > was+doubt || base < was-doubt {
		c.base.Store(base)
	}
	c.until.Store(int64(since + askEvery))
}

func (c *bootClock) AfterFunc(d time.Duration, f func()) Timer {
	return systemTimer{time.AfterFunc(d, f)}
}

type systemTimer struct{ t *time.Timer }

func (t systemTimer) Reset(d time.Duration) { t.t.Reset(d) }
func (t systemTimer) Stop()                 { t.t.Stop() }
