package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// The lock is on one byte far behind the end: on Windows it keeps others from reading what it covers.
func far() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

func try(f *os.File, exclusive bool) error {
	Unlock(f) // it may have the lock in another way, which it would wait for itself; elsewhere a lock is taken anew in this way too
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if exclusive {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, far())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}

// Unlock gives the lock of f back.
func Unlock(f *os.File) { _ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, far()) }
