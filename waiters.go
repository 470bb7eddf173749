package sluice

import (
	"sync"
	"sync/atomic"

	"github.com/sluicehq/sluice/store"
)

// waiters is where goroutines wait for decisions of the store. It has no goroutine of its own: each caller blocks on
// its own bell.
type waiters struct {
	bells  atomic.Uint64 // notices so far
	closed atomic.Bool
	// entered is the number of waiters, for reading without the lock.
	entered atomic.Int64

	mu      sync.Mutex
	waiting map[uint64]*waiter

	// spare holds unused bells. It is not shared between resources: a bell made in one synctest bubble must not ring in
	// another.
	spare sync.Pool
}

type waiter struct{ bell chan struct{} }

// decided is called by the store with the tickets that are decided. It rings the bells after unlocking, because the
// goroutines that wake up need the lock next.
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
		w.bell <- struct{}{} // does not block: a bell rings once each time it is entered
	}
}

// enter starts to listen for a ticket. missed is set, and w nil, if a notice may have come since bells was read, or if
// no more will come.
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

// leave stops listening before the bell has rung. A bell that is ringing at this moment is left to the garbage
// collector.
func (l *waiters) leave(n uint64, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[n] == w {
		delete(l.waiting, n)
		l.spare.Put(w)
		l.entered.Store(int64(len(l.waiting)))
	}
}

// close wakes all waiters, which then find it closed.
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
