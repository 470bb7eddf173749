//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

// OpenNoLink opens a file as [os.OpenFile] does, for its user alone. It refuses a symbolic link.
func OpenNoLink(name string, flags int) (*os.File, error) {
	return os.OpenFile(name, flags|syscall.O_NOFOLLOW, 0o600)
}

func makeAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// Check refuses a directory in which other users could create or replace files. That applies to root too: the owner
// of the directory cannot be trusted with root's files.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "open", Path: dir, Err: ErrOwner}
	}
	if info.Mode().Perm()&0o022 != 0 {
		return &fs.PathError{Op: "open", Path: dir, Err: ErrWritable}
	}
	return nil
}
