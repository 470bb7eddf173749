//go:build linux || darwin

package filestore_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSomethingElseInPlaceOfTheFileIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		put        func(t *testing.T, state, away string)
	}{
		{"a directory", "is a directory", func(t *testing.T, state, _ string) {
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link to it", "symbolic link", func(t *testing.T, state, away string) {
			if err := os.Symlink(away, state); err != nil {
				t.Fatal(err)
			}
		}},
		{"a pipe", "not a state file", func(t *testing.T, state, _ string) {
			if err := unix.Mkfifo(state, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a device", "", func(t *testing.T, state, away string) {
			if err := os.Symlink(os.DevNull, state); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, state, _ := pristine(t)
			away := filepath.Join(t.TempDir(), "away")
			if err := os.Rename(state, away); err != nil {
				t.Fatal(err)
			}
			c.put(t, state, away)
			_, err := charged(dir)
			unusable(t, err, c.says)
			if err := os.Remove(state); err != nil {
				t.Fatalf("it is no longer there: %v", err)
			}
			if err := os.Rename(away, state); err != nil {
				t.Fatal(err)
			}
			if n, err := charged(dir); err != nil || n != 3 {
				t.Errorf("with the file as it was: %d charged, %v", n, err)
			}
		})
	}
}
