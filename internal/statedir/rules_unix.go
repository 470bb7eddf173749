//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW // a link may have come since it was looked for

// Check refuses a directory in which other users could put files, or replace those that are there. That counts for root too: the
// owner of the directory is not to be trusted with root's files.
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
