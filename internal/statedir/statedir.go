// Package statedir has the rules for files in the state directory: who owns it, who can write to it, and that
// symbolic links inside it are not followed. All code that keeps files there opens them through this package.
package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Errors of the rules.
var (
	ErrOwner    = errors.New("it belongs to another user")
	ErrWritable = errors.New("other users can write to this directory")
	ErrLink     = errors.New("it is a symbolic link, which is not followed here")
	ErrForeign  = errors.New("it is not a plain file")
)

// Default returns the user's directory for state. It may not exist.
func Default() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification says to ignore relative paths
		var err error
		if runtime.GOOS == "windows" {
			base, err = os.UserCacheDir()
		} else if base, err = os.UserHomeDir(); err == nil {
			base = filepath.Join(base, ".local", "state")
		}
		if err != nil {
			return "", err
		}
	}
	return filepath.Join(base, "sluice"), nil
}

// Of returns the directory that the URL of a file store names.
func Of(url string) (string, error) {
	path, ok := strings.CutPrefix(url, "file:")
	if !ok {
		return "", errors.New("the URL of a file store begins with \"file:\"")
	}
	if path = strings.TrimPrefix(path, "//"); path == "" {
		return Default()
	}
	return filepath.Abs(path)
}

// Make creates the state directory, which only its user can read, or checks an existing one. The path may contain
// links.
func Make(dir string) error {
	if err := makeAll(dir); err != nil {
		return err
	}
	return Check(dir)
}

// MakeInside creates a directory inside another one, and checks both. It refuses a link: after the check only the
// user can put one there.
func MakeInside(dir string) error {
	if err := Make(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := NoLink(dir); err != nil {
		return err
	}
	return Make(dir)
}

// NoLink refuses a link in place of a directory. The directory may be missing.
func NoLink(dir string) error {
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return &fs.PathError{Op: "open", Path: dir, Err: ErrLink}
	}
	return nil
}

// Open opens a file in the state directory as [os.OpenFile] does, for its user alone. It refuses links and anything
// that is not a regular file.
func Open(name string, flags int) (*os.File, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
	case !info.Mode().IsRegular(): // opening a pipe may block forever
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrForeign}
	}
	return OpenNoLink(name, flags) // a link may have been created since the check
}
