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

// client is a process that uses the store from afar.
type client struct {
	id    string
	token string // name of the one that it came with

	mu       sync.Mutex
	pools    map[int]*session
	last     int // of the pools' names
	seen     time.Time
	inside   int // requests that are being served
	timer    *time.Timer
	closed   bool
	due      []wire.Notice // that the client has to be told, one for each pool at most
	wake     chan struct{} // there are some
	replaced chan struct{} // closed when another stream is the client's; nil: it has none
}

// session is a pool that a client has open.
type session struct {
	client *client
	name   int
	of     string // name of the pool in the store
	pool   store.Pool

	mu    sync.Mutex // one batch at a time, in order
	seq   uint64     // of the last that was carried out
	sum   uint32     // of what it was
	reply []byte     // to it
}

// hear notes that a client is alive. It reports false if it is too late for that.
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

// lapsed reports that a client has not been heard of for too long. If it has, the clock is set again.
func (c *client) lapsed(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := wire.GoneAfter - now.Sub(c.seen)
	if c.closed {
		return false
	}
	watching := 0
	if c.replaced != nil { // a stream tells nothing of who reads it
		watching = 1
	}
	if left > 0 || c.inside > watching {
		c.timer.Reset(max(left, time.Second))
		return false
	}
	return true
}

// add takes in a pool, and gives it a name.
func (c *client) add(s *session) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, store.ErrClosed
	}
	if len(c.pools) >= maxPools {
		return 0, &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the client has %d pools open: that is all it can", maxPools)}
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

// close ends the client and what it has open.
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

// decided is told by the store which tickets to look at. It does not block.
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

// note adds to what the client has to be told. It is locked.
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
		n.IDs = append(n.IDs, ids...) // a copy: they are valid during the call only
	}
	c.due = append(c.due, n)
}

// take returns what the client has to be told.
func (c *client) take() []wire.Notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.due
	c.due = nil
	return due
}
