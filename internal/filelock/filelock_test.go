package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/filelock"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	for _, step := range []struct {
		what string
		do   func() error
		want error
	}{
		{"a shares", func() error { return filelock.Try(a, false) }, nil},
		{"b shares too", func() error { return filelock.Try(b, false) }, nil},
		{"b alone", func() error { return filelock.Try(b, true) }, filelock.ErrLocked},
		{"a gives it back", func() error { filelock.Unlock(a); return nil }, nil},
		{"b alone now", func() error { return filelock.Try(b, true) }, nil},
		{"a shares", func() error { return filelock.Try(a, false) }, filelock.ErrLocked},
		{"b dies", b.Close, nil},
		{"a alone", func() error { return filelock.Try(a, true) }, nil},
	} {
		if err := step.do(); !errors.Is(err, step.want) {
			t.Errorf("%s: %v, want %v", step.what, err, step.want)
		}
	}
}

func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := open(t, path), open(t, path)
	if err := filelock.Wait(t.Context(), a, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := filelock.Wait(t.Context(), b, 0); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("without patience: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := filelock.Wait(ended, b, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("by one who has gone: %v", err)
	}
	got := make(chan error)
	go func() { got <- filelock.Wait(t.Context(), b, time.Hour) }()
	filelock.Unlock(a)
	if err := <-got; err != nil {
		t.Error(err)
	}
}
