// Package ctxlock is a mutex that a caller can stop waiting for.
package ctxlock

import "context"

// Mutex is a mutual exclusion lock. Make one with [New]. Its holder may itself wait, for a file that another process
// has locked: callers with a deadline use LockContext.
type Mutex chan struct{}

// New returns an unlocked mutex.
func New() Mutex { return make(Mutex, 1) }

// Lock waits for the mutex.
func (m Mutex) Lock() { m <- struct{}{} }

// Unlock gives the mutex back.
func (m Mutex) Unlock() { <-m }

// LockContext waits for the mutex until ctx ends, and then returns the error of ctx. A free mutex is taken even
// if ctx has ended.
func (m Mutex) LockContext(ctx context.Context) error {
	select {
	case m <- struct{}{}:
		return nil
	default:
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
