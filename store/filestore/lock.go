//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// patience is how long a step waits for a lock that one other process holds. Steps take microseconds, so a longer hold
// means that the process or its machine is stopped. While the lock goes from process to process, a step waits for its turn.
const patience = 5 * time.Second

// glances is how many times a step looks, during its patience, whether another process holds the lock now.
const glances = 5

// lock is the kernel's exclusive lock on an open file. It does not separate goroutines of one process; state.mu
// does.
//
// The kernel serves waiters in turn and wakes them at once, but a blocked wait cannot be cancelled. So a separate
// thread waits. A caller that gives up leaves the thread to the next caller; without one, the thread releases the
// lock. There is never more than one such thread, because to the kernel they would all be the same owner.
type lock struct {
	fd       descriptor
	patience time.Duration

	mu     sync.Mutex
	out    bool // the thread is waiting
	wanted bool // a caller waits for the thread
	got    chan error
}

func newLock(fd descriptor, patience time.Duration) *lock {
	return &lock{fd: fd, patience: patience, got: make(chan error, 1)}
}

// A holder that runs gives the lock back within a few microseconds. To sleep and be woken takes longer than that, and the
// holder would have to wake the sleeper. So a caller tries for a while first, with pauses, because each attempt slows the
// holder down.
const (
	tryFor  = 10 * time.Microsecond
	tryEach = time.Microsecond
)

// canTry is false on one core, where no holder runs while a caller tries, and on Windows, whose clock moves in steps that are
// longer than tryFor.
var canTry = runtime.NumCPU() > 1 && runtime.GOOS != "windows"

// take waits for the lock, and reports whether it had to sleep. holder returns the pid of the current holder.
func (l *lock) take(ctx context.Context, holder func() int64) (slept bool, err error) {
	if done, err := l.tryAgain(); done {
		return false, err
	}
	return true, l.await(ctx, holder)
}

// tryAgain takes the lock if it is free within tryFor.
func (l *lock) tryAgain() (done bool, err error) {
	if done, err = l.try(); done || !canTry {
		return done, err
	}
	began := time.Now()
	for after := tryEach; after <= tryFor && !done; after += tryEach {
		for time.Since(began) < after { //nolint:revive // it only lets time pass
		}
		done, err = l.try()
	}
	return done, err
}

// await waits for the lock in the separate thread.
func (l *lock) await(ctx context.Context, holder func() int64) error {
	l.mu.Lock()
	if !l.out {
		// The thread has a file descriptor of its own: ours may be closed, and its number reused, while the thread
		// waits.
		fd, err := duplicate(l.fd)
		if err != nil {
			l.mu.Unlock()
			return err
		}
		l.out = true
		go l.wait(fd)
	}
	l.wanted = true
	l.mu.Unlock()
	glance := time.NewTicker(max(l.patience/glances, 1))
	defer glance.Stop()
	held := holder()
	for same := 0; ; {
		select {
		case err := <-l.got:
			return err
		case <-glance.C:
			if now := holder(); now != held {
				held, same = now, 0
			} else if same++; same == glances {
				return l.giveUp(fmt.Errorf("%w: process %d", errBusy, held))
			}
		case <-ctx.Done():
			return l.giveUp(ctx.Err())
		}
	}
}

// try takes the lock if it is free.
func (l *lock) try() (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out {
		return false, nil // the lock would be the thread's
	}
	err = tryLock(l.fd)
	return !errors.Is(err, errTaken), err
}

// wait takes the lock for the caller that wants it by then.
func (l *lock) wait(fd descriptor) {
	err := waitLock(fd)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = false
	if l.wanted {
		l.wanted = false
		l.got <- err
	} else if err == nil {
		unlock(fd)
	}
	closeDescriptor(fd) // the lock belongs to the open file, not to this descriptor
}

// giveUp stops waiting, unless the lock has just arrived.
func (l *lock) giveUp(why error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted = false
	select {
	case err := <-l.got:
		return err
	default:
		return why
	}
}

func (l *lock) release() { unlock(l.fd) }
