//go:build unix

package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluicehq/sluice/internal/filelock"
)

// If the state directory is removed under a running process, the process creates it again, and locks the file that
// others find there.
func TestARemovedDirectoryIsMadeAnewWithItsLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	f := newFiles(dir)
	defer f.close()
	for _, remove := range []func() error{
		func() error { return nil },
		func() error { return os.RemoveAll(dir) },
		func() error { return os.Remove(filepath.Join(dir, lock)) }, // another process may have made the rest by now
	} {
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		if err := f.append(line(send("a", 1))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.hold(); err != nil {
			t.Fatal(err)
		}
		other, err := os.OpenFile(filepath.Join(dir, lock), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := filelock.Try(other, true); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("another process rotates while this one writes: %v", err)
		}
		_ = other.Close()
		filelock.Unlock(f.lock)
	}
	if got, garbage := all(t, dir); len(got) != 2 || garbage != 0 {
		t.Errorf("%d events and %d lines of garbage since the directory was removed, want 2 and 0", len(got), garbage)
	}
}
