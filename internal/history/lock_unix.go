//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package history

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the kernel's lock on a file, which dies with its holder, or fails at once.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
