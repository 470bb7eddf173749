//go:build linux || darwin || windows

package filestore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// perMinute is a pool on which what was sent before still counts.
func perMinute() store.Spec {
	spec := wide()
	spec.Limits = []store.Limit{{Name: "w", Kind: store.Rolling, Unit: "requests", Size: 5, Window: time.Minute}}
	return spec
}

// repaired checks that a pool has begun anew and that nothing goes: not now, and not for a window.
func repaired(t *testing.T, p store.Pool) {
	t.Helper()
	ops := []store.Op{ask("a", 0, time.Hour)}
	if err := p.Apply(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if r := ops[0].Result; r.State != store.Refused {
		t.Errorf("a request after the repair: %+v", r)
	}
	snap, err := p.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l := snap.Limits[0]; l.Used < l.Size {
		t.Errorf("%d of %d count as spent", l.Used, l.Size)
	}
}

func aside(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "pools", "pool.damaged-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Whatever is damaged, requests fail with the name of the file and the repair command. The repair moves the files
// unchanged, and requests that may have been sent before count.
func TestDamagedFilesAreNamedAndRepaired(t *testing.T) {
	t.Parallel()
	change := func(change func([]byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { write(t, path, change(bytes.Clone(read(t, path)))) }
	}
	scramble := func(at int) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := range 8 {
				b[at+i] ^= 0x5a
			}
			return b
		}
	}
	for _, c := range []struct {
		name    string
		journal bool
		damage  func(t *testing.T, path string)
	}{
		{"scrambled magic", false, change(scramble(0))},
		{"scrambled version", false, change(scramble(8))},
		{"scrambled header", false, change(scramble(24))},
		{"scrambled commit", false, change(scramble(88))},
		{"scrambled records", false, change(scramble(filestore.HeaderSize + 20_000))},
		{"empty", false, change(func([]byte) []byte { return nil })},
		{"cut in the header", false, change(func(b []byte) []byte { return b[:100] })},
		{"cut in the records", false, change(func(b []byte) []byte { return b[:filestore.HeaderSize+100] })},
		{"no journal", true, func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"an empty journal", true, change(func([]byte) []byte { return nil })},
		{"half a journal", true, change(func(b []byte) []byte { return b[:len(b)/2] })},
		{"scrambled journal", true, change(scramble(8))},
	} {
		t.Run(c.name, func(t *testing.T) { namedAndRepaired(t, c.journal, c.damage) })
	}
}

func namedAndRepaired(t *testing.T, ofJournal bool, damage func(t *testing.T, path string)) {
	t.Parallel()
	dir, state, journal := pristine(t)
	path := state
	if ofJournal {
		path = journal
	}
	damage(t, path)
	_, err := charged(dir)
	unusable(t, err, "")
	var hinted interface{ Hint() string }
	if !errors.As(err, &hinted) || !strings.HasSuffix(hinted.Hint(), "sluice repair pool") || !strings.Contains(err.Error(), filepath.Dir(state)) {
		t.Errorf("the error is %v, the hint %q", err, hinted.Hint())
	}
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Repair(t.Context(), "pool", false)
	if err != nil || r.Damage == "" || r.Aside != "" || len(aside(t, dir)) != 0 {
		t.Fatalf("looked at: %+v, %v", r, err)
	}
	broken, _ := os.ReadFile(path)
	if r, err = s.Repair(t.Context(), "pool", true); err != nil || r.Damage == "" || len(aside(t, dir)) != 1 || r.Aside != aside(t, dir)[0] {
		t.Fatalf("repaired: %+v, %v", r, err)
	}
	if kept, _ := os.ReadFile(filepath.Join(r.Aside, filepath.Base(path))); !bytes.Equal(kept, broken) {
		t.Error("what was moved aside was written to")
	}
	p, err := s.Pool(t.Context(), perMinute())
	if err != nil {
		t.Fatal(err)
	}
	repaired(t, p)
	if r, err := s.Repair(t.Context(), "pool", true); err != nil || r.Damage != "" || r.Aside != "" {
		t.Errorf("the pool that is new: %+v, %v", r, err)
	}
}

// Usable files are not moved, and repairable ones are repaired: a step that was cut off, a journal that is not
// needed.
func TestSoundFilesAreNotMoved(t *testing.T) {
	t.Parallel()
	dir, _, journal := pristine(t)
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sound := func(what string) {
		t.Helper()
		if r, err := s.Repair(t.Context(), "pool", true); err != nil || r.Damage != "" || len(aside(t, dir)) != 0 {
			t.Fatalf("%s: %+v, %v", what, r, err)
		}
		if n, err := charged(dir); err != nil || n != 3 {
			t.Fatalf("%s: %d charged, %v", what, n, err)
		}
	}
	sound("as it was left")
	b := read(t, journal)
	b[filestore.HeaderSize+1000] ^= 1
	write(t, journal, b)
	sound("a copy that is damaged")
	used, _ := opened(t, dir, wide())
	sound("in use")
	if err := used.CutOff("pool", 0, func(b []byte) { clear(b[:100]) }); err != nil {
		t.Fatal(err)
	}
	sound("with a step cut off")
	if r, err := s.Repair(t.Context(), "another", true); err != nil || r.Damage != "" {
		t.Errorf("a pool that there is not: %+v, %v", r, err)
	}
}

// Of several concurrent repairs, only one moves the files. The others find a sound pool.
func TestOneOfManyRepairsMoves(t *testing.T) {
	t.Parallel()
	dir, state, _ := pristine(t)
	write(t, state, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := filestore.Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if _, err := s.Repair(context.Background(), "pool", true); err != nil {
				t.Error(err)
			}
			if p, err := s.Pool(context.Background(), perMinute()); err != nil {
				t.Error(err)
			} else {
				repaired(t, p)
			}
		})
	}
	wg.Wait()
	if n := len(aside(t, dir)); n != 1 {
		t.Errorf("%d directories were moved aside", n)
	}
}
