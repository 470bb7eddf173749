package storeapi

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// client is a process that uses the store remotely.
type client struct {
	id    string
	token string // name of the token it came with

	mu       sync.Mutex
	pools    map[int]*session
	last     int // number of the last pool opened
	seen     time.Time
	inside   int // requests being served
	timer    *time.Timer
	closed   bool
	due      []wire.Notice // notices to send, at most one per pool
	wake     chan struct{} // signals that due is not empty
	replaced chan struct{} // closed when another stream takes over; nil if there is no stream
}

// session is a pool that a client has open.
type session struct {
	client *client
	name   int
	of     string // name of the pool in the store
	pool   store.Pool

	mu    sync.Mutex // one batch at a time, in order
	seq   uint64     // number of the last batch carried out
	sum   uint32     // checksum of that batch
	reply []byte     // response to that batch
}

// hear records a sign of life of the client. It returns false if the client is already closed.
func (c *client) hear() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.seen = time.Now()
	c.inside++
	return true
}

func (c *client) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside--
	c.seen = time.Now()
}

// lapsed reports whether the client has sent no sign of life for too long. If it has not lapsed, it sets the timer
// again.
func (c *client) lapsed(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := wire.GoneAfter - now.Sub(c.seen)
	if c.closed {
		return false
	}
	watching := 0
	if c.replaced != nil { // an open stream does not prove that the client reads it
		watching = 1
	}
	if left > 0 || c.inside > watching {
		c.timer.Reset(max(left, time.Second))
		return false
	}
	return true
}

// add adds an open pool to the client and returns its number.
func (c *client) add(s *session) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, store.ErrClosed
	}
	if len(c.pools) >= maxPools {
		return 0, &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the client has %d pools open, which is the maximum", maxPools)}
	}
	c.last++
	s.name = c.last
	c.pools[s.name] = s
	s.pool.Watch(s.decided)
	return s.name, nil
}

func (c *client) pool(name int) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pools[name]
}

func (c *client) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pools)
}

func (c *client) uses(pool string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.pools {
		if s.of == pool {
			return true
		}
	}
	return false
}

func (c *client) remove(name int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pools, name)
}

// close closes the client and its open pools.
func (c *client) close() error {
	c.mu.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	pools := c.pools
	c.pools = map[int]*session{}
	if c.replaced != nil {
		close(c.replaced)
		c.replaced = nil
	}
	c.mu.Unlock()
	var errs []error
	for _, s := range pools {
		errs = append(errs, s.pool.Close())
	}
	return errors.Join(errs...)
}

// decided is called by the store with the tickets that were decided. It does not block.
func (p *session) decided(ids []store.ID) {
	c := p.client
	c.mu.Lock()
	c.note(p, ids)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// note adds to the notices for the client. The caller holds the lock.
func (c *client) note(s *session, ids []store.ID) {
	for i := range c.due {
		if n := &c.due[i]; n.Pool == s.name {
			if len(n.IDs)+len(ids) > wire.MaxNotice {
				n.All, n.IDs = true, nil
			} else if !n.All {
				n.IDs = append(n.IDs, ids...)
			}
			return
		}
	}
	n := wire.Notice{Pool: s.name}
	if n.All = len(ids) > wire.MaxNotice; !n.All {
		n.IDs = append(n.IDs, ids...) // a copy: ids is valid only during the call
	}
	c.due = append(c.due, n)
}

// take returns the pending notices and clears them.
func (c *client) take() []wire.Notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.due
	c.due = nil
	return due
}
