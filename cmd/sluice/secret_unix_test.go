//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Regression: with a symbolic link in place of the secret, the link's target was written or read.
func TestASecretBehindALinkIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), filepath.Join(t.TempDir(), "away")
	s := &session{dir: dir, store: "file:" + dir}
	kept := s.via()
	if s.via() != kept {
		t.Error("the secret is not kept")
	}
	path := filepath.Join(dir, "gate.secret")
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, path); err != nil {
		t.Fatal(err)
	}
	if s.via() == kept {
		t.Error("it was read through a link")
	}
	if err := os.Remove(away); err != nil {
		t.Fatal(err)
	}
	s.via()
	if _, err := os.Lstat(away); err == nil {
		t.Error("it was written through a link")
	}
}
