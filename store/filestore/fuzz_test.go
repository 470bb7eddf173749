//go:build linux || darwin

package filestore_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// FuzzAttach opens a pool with a corrupt or truncated state file and journal. Either there is an error with a hint
// that leaves both files unchanged, or a working pool. No process crashes.
func FuzzAttach(f *testing.F) {
	dir, state, journal := pristine(f)
	whole, steps := read(f, state), read(f, journal)
	f.Add(uint32(8), []byte{99}, uint32(0), []byte{}, uint32(0))
	f.Add(uint32(88), []byte{1, 0, 0, 0, 0, 0, 0, 0x70}, uint32(0), []byte{}, uint32(0))
	f.Add(uint32(88), []byte{0xff, 0xff, 0xff, 0xff}, uint32(64), []byte("what is this?"), uint32(0))
	f.Add(uint32(64), make([]byte, 24), uint32(16), []byte{1, 2, 3}, uint32(0)) // another start of the machine
	f.Add(uint32(filestore.HeaderSize+70_000), []byte{4}, uint32(0), []byte{}, uint32(0))
	f.Add(uint32(0), []byte{}, uint32(0), []byte{}, uint32(len(whole)/2))
	f.Add(uint32(16), []byte{0, 0}, uint32(8), []byte{0xff}, uint32(1))
	f.Fuzz(func(t *testing.T, at uint32, into []byte, jat uint32, jinto []byte, cut uint32) {
		broken, torn := patched(whole, at, into), patched(steps, jat, jinto)
		if cut > 0 {
			broken = broken[:min(int(cut), len(broken))]
		}
		write(t, state, broken)
		write(t, journal, torn)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := tried(ctx, dir)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("it hangs")
		}
		if err != nil {
			var hinted interface{ Hint() string }
			if !errors.Is(err, store.ErrUnavailable) || !errors.As(err, &hinted) || hinted.Hint() == "" {
				t.Errorf("the error is %v", err)
			}
		}
		if err := os.Remove(state); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	})
}

// patched is b with something else from a place on.
func patched(b []byte, at uint32, into []byte) []byte {
	b = append([]byte{}, b...)
	copy(b[int(at)%len(b):], into)
	return b
}

// tried opens a pool, takes a ticket, looks, and closes it.
func tried(ctx context.Context, dir string) error {
	s, err := filestore.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := s.Pool(ctx, wide())
	if err != nil {
		return err
	}
	if err := p.Apply(ctx, []store.Op{ask("z", 0, time.Minute)}); err != nil {
		return err
	}
	_, err = p.Snapshot(ctx)
	return err
}
