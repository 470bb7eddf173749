//go:build linux || darwin

package filestore_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store/filestore"
)

// A busy store is not broken: a slow process must not make a supervisor restart the daemon.
func TestABusyStoreIsNotBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := opened(t, dir, wide(), filestore.WithPatience(100*time.Millisecond))
	c := start(t, "stopper", stopper{dir})
	c.next() // it has the lock, and is stopped
	if err := s.Broken(t.Context()); err != nil {
		t.Error(err)
	}
	c.goOn()
	c.next()
	if err := s.Broken(t.Context()); err != nil {
		t.Error(err)
	}
}

// The error names what is in the way of the directory. Once it is removed, the store works.
func TestAStoreWhoseDirectoryCannotBeMadeIsBroken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s, _ := opened(t, dir, wide())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Broken(t.Context()); err != nil {
		t.Errorf("it can be made: %v", err)
	}
	for name, block := range map[string]func() error{
		"a file":                         func() error { return os.WriteFile(dir, nil, 0o600) },
		"a directory that is everyone's": func() error { return os.Mkdir(dir, 0o700) },
	} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := block(); err != nil {
			t.Fatal(err)
		}
		if name != "a file" {
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		unusable(t, s.Broken(t.Context()), "")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Broken(t.Context()); err != nil {
		t.Errorf("it can be made again: %v", err)
	}
}
