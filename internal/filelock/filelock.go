// Package filelock takes the kernel's lock on an open file. The lock dies with its holder.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

// ErrLocked is about a lock that another process, or another open file, has.
var ErrLocked = errors.New("another process has locked it")

// Try takes the lock of f if it is free, alone or with others that share it. It returns [ErrLocked] if it is not.
func Try(f *os.File, exclusive bool) error {
	err := try(f, exclusive)
	if err != nil && !errors.Is(err, ErrLocked) {
		return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return err
}

// Pauses between two tries of Wait: a holder needs some microseconds, unless it was stopped in the middle.
const (
	firstPause = 20 * time.Microsecond
	lastPause  = 5 * time.Millisecond
)

// Wait takes the lock of f for its caller alone. It returns [ErrLocked] if the lock was not free within patience.
func Wait(ctx context.Context, f *os.File, patience time.Duration) error {
	var until time.Time
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := Try(f, true)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		switch now := time.Now(); {
		case until.IsZero():
			until = now.Add(patience)
		case now.After(until):
			return err
		}
		if !sleep.For(ctx, pause) {
			return ctx.Err()
		}
	}
}
