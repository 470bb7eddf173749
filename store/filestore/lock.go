//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// patience is how long a step waits for a lock that another process holds. Steps take
// microseconds: one that holds it for longer is stopped, or its machine is.
const patience = 5 * time.Second

// lock is the kernel's exclusive lock on an open file. It does not tell goroutines of one
// process apart: its owner does.
//
// The kernel lets waiters in by turns and wakes them at once, but a wait for it cannot be
// ended from outside. So a thread of its own waits, and whoever has given up leaves it to the
// next who wants the lock; if there is nobody, it gives the lock back. There is never more than one:
// to the kernel they would all be the same owner.
type lock struct {
	fd       descriptor
	patience time.Duration

	mu     sync.Mutex
	out    bool // the thread is out
	wanted bool // somebody waits for it
	got    chan error
}

func newLock(fd descriptor, patience time.Duration) *lock {
	return &lock{fd: fd, patience: patience, got: make(chan error, 1)}
}

// take waits for the lock, and reports whether it had to. holder tells who has it.
func (l *lock) take(ctx context.Context, holder func() int64) (waited bool, err error) {
	// Once only: asking again and again was measured to be no faster.
	if done, err := l.try(); done {
		return false, err
	}
	return true, l.await(ctx, holder)
}

// await has the thread wait for the lock.
func (l *lock) await(ctx context.Context, holder func() int64) error {
	l.mu.Lock()
	if !l.out {
		// It has a number of its own for the file: ours may be closed, and given to another file,
		// while it waits.
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
	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	select {
	case err := <-l.got:
		return err
	case <-timer.C:
		return l.giveUp(fmt.Errorf("%w: process %d", errBusy, holder()))
	case <-ctx.Done():
		return l.giveUp(ctx.Err())
	}
}

// try takes the lock if that can be done at once.
func (l *lock) try() (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out {
		return false, nil // it would be the thread's
	}
	err = tryLock(l.fd)
	return !errors.Is(err, errTaken), err
}

// wait gets the lock for whoever wants it by then.
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
	closeDescriptor(fd) // the lock is the open file's, not this number's
}

// giveUp stops waiting, unless the lock has just come.
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
