package sluicehttp

import (
	"sync"
	"time"
)

// connecting lists the attempts that have no connection yet, oldest first. One timer serves them all: most attempts get
// their connection at once, and one timer each would wake a thread of the runtime every time.
type connecting struct {
	mu          sync.Mutex
	first, last *attempt
	armed       bool // the timer is set, for the oldest attempt or earlier
}

// add watches an attempt for hangAfter from now.
func (c *connecting) add(a *attempt, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.hangsAt, a.waits = now.Add(hangAfter), true
	if a.before = c.last; a.before != nil {
		a.before.behind = a
	} else {
		c.first = a
	}
	c.last = a
	if !c.armed {
		c.armed = true
		time.AfterFunc(hangAfter, c.look)
	}
}

// remove stops watching an attempt.
func (c *connecting) remove(a *attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !a.waits {
		return
	}
	if a.before != nil {
		a.before.behind = a.behind
	} else {
		c.first = a.behind
	}
	if a.behind != nil {
		a.behind.before = a.before
	} else {
		c.last = a.before
	}
	a.before, a.behind, a.waits = nil, nil, false
}

// look calls hangs on the attempts that have waited too long, and sets the timer for the next.
func (c *connecting) look() {
	now := time.Now()
	for {
		c.mu.Lock()
		a := c.first
		if a == nil || a.hangsAt.After(now) {
			if c.armed = a != nil; c.armed {
				time.AfterFunc(a.hangsAt.Sub(now), c.look)
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.remove(a)
		a.hangs()
	}
}
