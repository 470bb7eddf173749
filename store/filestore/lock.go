//go:build linux || darwin

package filestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a step waits for a lock that another process holds. Steps take
// microseconds: one that holds it for longer is stopped, or its machine is.
const patience = 5 * time.Second

// maxStray bounds how many threads of a process wait for a lock that was given up on.
const maxStray = 4

// lock is the kernel's exclusive lock on an open file. It does not tell goroutines of one
// process apart: its owner does.
type lock struct {
	fd       int
	patience time.Duration
	stray    atomic.Int32
}

// take waits for the lock. holder tells who has it.
func (l *lock) take(ctx context.Context, holder func() int64) error {
	for range 8 { // most are done within the time that it takes to ask
		if err := tryLock(l.fd, unix.LOCK_EX); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		runtime.Gosched()
	}
	if l.stray.Load() >= maxStray {
		return l.late(holder)
	}
	// The kernel lets waiters in by turns, and wakes them at once; but a wait cannot be
	// ended from here. So a thread of its own waits, and gives the lock back if it comes too late.
	const waiting, taken, given = 0, 1, 2
	var state atomic.Int32
	got := make(chan error, 1)
	l.stray.Add(1)
	go func() {
		defer l.stray.Add(-1)
		err := unix.Flock(l.fd, unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(l.fd, unix.LOCK_EX)
		}
		if state.CompareAndSwap(waiting, taken) {
			got <- err
		} else if err == nil {
			unlock(l.fd)
		}
	}()
	timer := time.NewTimer(l.patience)
	defer timer.Stop()
	var err error
	select {
	case err := <-got:
		return err
	case <-timer.C:
		err = l.late(holder)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !state.CompareAndSwap(waiting, given) {
		return <-got
	}
	return err
}

func (l *lock) late(holder func() int64) error {
	return fmt.Errorf("%w: process %d", errBusy, holder())
}

func (l *lock) release() { unlock(l.fd) }
