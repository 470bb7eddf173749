package sluice

import (
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice/store"
)

// line is where goroutines wait for the store's word. There is no goroutine behind it:
// each caller blocks on its own bell.
type line struct {
	bells atomic.Uint64 // notices so far

	mu      sync.Mutex
	waiting map[uint64]*waiter
	closed  bool

	// spare bells belong to this line alone: one made in a synctest bubble must not ring
	// in another.
	spare sync.Pool
}

type waiter struct{ bell chan struct{} }

// decided is told by the store which tickets to look at again.
func (l *line) decided(ids []store.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bells.Add(1)
	for _, id := range ids {
		if w := l.waiting[id.N]; w != nil {
			w.ring()
		}
	}
}

func (w *waiter) ring() {
	select {
	case w.bell <- struct{}{}:
	default: // it has been rung and has not looked yet
	}
}

// enter begins to listen for a ticket. missed tells that a notice may have come since
// bells was read.
func (l *line) enter(n, bells uint64) (w *waiter, missed, open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, false
	}
	if w, _ = l.spare.Get().(*waiter); w == nil {
		w = &waiter{make(chan struct{}, 1)}
	}
	l.waiting[n] = w
	return w, l.bells.Load() != bells, true
}

// leave stops listening.
func (l *line) leave(n uint64, w *waiter) {
	l.mu.Lock()
	delete(l.waiting, n)
	l.mu.Unlock()
	select {
	case <-w.bell: // a late ring is not for the next one to use this bell
	default:
	}
	l.spare.Put(w)
}

func (l *line) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close wakes everyone to be told so.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, w := range l.waiting {
		w.ring()
	}
}
