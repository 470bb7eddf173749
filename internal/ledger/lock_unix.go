//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package ledger

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Waiting for the lock: its holder needs some microseconds, unless it was stopped in the middle.
const (
	patience   = 5 * time.Second
	firstPause = 20 * time.Microsecond
	lastPause  = 5 * time.Millisecond
)

var errHeld = errors.New("another process has had them locked for seconds")

// await takes the kernel's lock on a file.
func await(ctx context.Context, f *os.File) error {
	var until time.Time
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		switch now := time.Now(); {
		case until.IsZero():
			until = now.Add(patience)
		case now.After(until):
			return errHeld
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func unlock(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }
