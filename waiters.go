package sluice

import (
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice/store"
)

// waiters is where goroutines wait for the store's word. There is no goroutine behind it:
// each caller blocks on its own bell.
type waiters struct {
	bells  atomic.Uint64 // notices so far
	closed atomic.Bool
	// entered is how many wait, to be read without the lock.
	entered atomic.Int64

	mu      sync.Mutex
	waiting map[uint64]*waiter

	// spare bells belong to this line alone: one made in a synctest bubble must not ring
	// in another.
	spare sync.Pool
}

type waiter struct{ bell chan struct{} }

// decided is told by the store which tickets to look at again. Bells are rung after the
// lock is free: those who wake up want it next.
func (l *waiters) decided(ids []store.ID) {
	var few [16]*waiter
	rung := few[:0]
	l.mu.Lock()
	l.bells.Add(1)
	for _, id := range ids {
		if w := l.waiting[id.N]; w != nil {
			delete(l.waiting, id.N)
			rung = append(rung, w)
		}
	}
	l.entered.Store(int64(len(l.waiting)))
	l.mu.Unlock()
	for _, w := range rung {
		w.bell <- struct{}{} // it has room: a bell is rung once for each time it is entered
	}
}

// enter begins to listen for a ticket. missed tells that a notice may have come since
// bells was read, or that no more will come: then there is no bell.
func (l *waiters) enter(n, bells uint64) (w *waiter, missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bells.Load() != bells || l.closed.Load() {
		return nil, true
	}
	if w, _ = l.spare.Get().(*waiter); w == nil {
		w = &waiter{make(chan struct{}, 1)}
	}
	l.waiting[n] = w
	l.entered.Store(int64(len(l.waiting)))
	return w, false
}

// leave stops listening before the bell has rung. One that is being rung this very
// moment is left to the collector.
func (l *waiters) leave(n uint64, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[n] == w {
		delete(l.waiting, n)
		l.spare.Put(w)
		l.entered.Store(int64(len(l.waiting)))
	}
}

// close wakes everyone to be told so.
func (l *waiters) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed.Store(true)
	l.bells.Add(1)
	for n, w := range l.waiting {
		delete(l.waiting, n)
		w.bell <- struct{}{}
	}
	l.entered.Store(0)
}
