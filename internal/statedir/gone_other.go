//go:build !windows

package statedir

import "os"

// Truncate shortens an open file.
func Truncate(f *os.File, size int64) error { return f.Truncate(size) }

// Rename renames a file within its directory and replaces an existing one.
func Rename(from, to string) error { return os.Rename(from, to) }

// Replace is [Rename] for files whose names may be missing for a moment.
func Replace(from, to string) error { return os.Rename(from, to) }

// Discard removes a file that may be open.
func Discard(name string) error { return os.Remove(name) }

// Gone reports whether an open file is no longer the one at its path, because it was removed, moved or replaced. A
// lock on such a file excludes only processes that opened it before.
func Gone(f *os.File, name string) bool {
	mine, err := f.Stat()
	if err != nil {
		return true
	}
	there, err := os.Lstat(name)
	return err != nil || !os.SameFile(mine, there)
}
