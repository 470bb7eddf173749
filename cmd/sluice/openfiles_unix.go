//go:build !windows

package main

import "golang.org/x/sys/unix"

// openFiles returns how many files this process may open, 0 if that is not known.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // signed on some systems
}
