//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package eventlog

import (
	"errors"
	"os"
)

// errLocked: somebody else has the lock.
var errLocked = errors.New("the event log is locked")

// tryLock: where a file that is open cannot be renamed, nothing is rotated, and the log ends when it
// is full.
func tryLock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

func unlock(*os.File) {}
