//go:build unix

package forward

import (
	"errors"
	"io/fs"
)

// private refuses a key that other users can read.
func private(info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return errors.New("other users can read it; chmod 600 it, or replace it with sluice ca rotate")
	}
	return nil
}
