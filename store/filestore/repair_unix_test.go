//go:build linux || darwin

// Windows does not let a mapped file be overwritten, and lets only administrators make links.

package filestore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// A process that has the damaged files open switches to the new ones.
func TestWhoUsesDamagedFilesGoesOnAfterTheRepair(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(state []byte) []byte
	}{
		{"scrambled header", func(b []byte) []byte { return append(bytes.Repeat([]byte{7}, 200), b[200:]...) }},
		{"empty, without its journal", func([]byte) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, p := opened(t, dir, perMinute())
			ops := []store.Op{ask("a", 0, time.Hour)}
			if err := p.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			state, journal := s.StatePath("pool"), s.JournalPath("pool")
			if c.damage(read(t, state)) == nil { // the process would mend it
				write(t, journal, nil)
			}
			write(t, state, c.damage(read(t, state)))
			if err := p.Apply(t.Context(), ops); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("with damaged files: %v", err)
			}
			other, err := filestore.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if r, err := other.Repair(t.Context(), "pool", true); err != nil || r.Aside == "" {
				t.Fatalf("repaired: %+v, %v", r, err)
			}
			repaired(t, p)
		})
	}
}

// A link in the place of a file is damage too: the gate does not write where it points.
func TestLinksAreNamedAndRepaired(t *testing.T) {
	t.Parallel()
	for name, ofJournal := range map[string]bool{"to the state": false, "to the journal": true} {
		t.Run(name, func(t *testing.T) {
			namedAndRepaired(t, ofJournal, func(t *testing.T, path string) {
				away := filepath.Join(t.TempDir(), "away")
				if err := errors.Join(os.Rename(path, away), os.Symlink(away, path)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
