//go:build linux || darwin || windows

package filestore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// pristine makes a store in which three tickets are charged, and which nobody has open.
func pristine(t testing.TB) (dir, state, journal string) {
	t.Helper()
	dir = t.TempDir()
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Pool(context.Background(), wide())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(context.Background(), []store.Op{ask("a", 0, time.Hour), ask("b", 0, time.Hour), ask("c", 0, time.Hour)}); err != nil {
		t.Fatal(err)
	}
	state, journal = s.StatePath("pool"), s.JournalPath("pool")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, state, journal
}

// charged opens the store and returns what is charged.
func charged(dir string) (int64, error) {
	s, err := filestore.Open(dir)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	p, err := s.Pool(context.Background(), wide())
	if err != nil {
		return 0, err
	}
	snap, err := p.Snapshot(context.Background())
	if err != nil {
		return 0, err
	}
	return snap.Limits[0].Used, nil
}

// unusable checks an error: it says what is wrong, and what to do.
func unusable(t testing.TB, err error, says string) {
	t.Helper()
	var hinted interface{ Hint() string }
	switch {
	case !errors.Is(err, store.ErrUnavailable):
		t.Fatalf("the error is %v", err)
	case !errors.As(err, &hinted) || hinted.Hint() == "":
		t.Errorf("no hint goes with: %v", err)
	case !strings.Contains(err.Error(), says):
		t.Errorf("the error says %q, nothing of %q", err, says)
	case repeats(err.Error()):
		t.Errorf("the error names a path twice: %v", err)
	default:
		t.Logf("error: %v", err)
		t.Logf("hint: %s", hinted.Hint())
	}
}

// repeats reports whether a message names a path twice.
func repeats(message string) bool {
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(message) {
		word = strings.TrimRight(word, ":")
		if filepath.IsAbs(word) && seen[word] {
			return true
		}
		seen[word] = true
	}
	return false
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedFileIsAnErrorAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	put := func(at int, b ...byte) func([]byte) []byte {
		return func(s []byte) []byte { return append(append(bytes.Clone(s[:at]), b...), s[at+len(b):]...) }
	}
	noise := bytes.Repeat([]byte("what is this? "), 20_000)
	// Where fields of the header are; see header.go.
	const atVersion, atCheck, atLayout, atInstance, atBoot, atCommit = 8, 12, 16, 24, 64, 88
	for _, c := range []struct {
		name, says string
		damage     func(state []byte) []byte
	}{
		{"empty", "shorter", func([]byte) []byte { return nil }},
		{"one byte", "shorter", func(s []byte) []byte { return s[:1] }},
		{"header only", "shorter", func(s []byte) []byte { return s[:filestore.HeaderSize] }},
		{"half of it", "shorter", func(s []byte) []byte { return s[:filestore.HeaderSize+(len(s)-filestore.HeaderSize)/4] }},
		{"a text", "not a state file", func([]byte) []byte { return noise }},
		{"another magic", "not a state file", put(0, 'X')},
		{"a newer version", "newer version", put(atVersion, 99)},
		{"an older version", "another version", func(s []byte) []byte {
			s = put(atVersion, 0, 0, 0, 0)(s)
			binary.LittleEndian.PutUint32(s[atCheck:], crc32.Checksum(s[atLayout:atBoot], crc32.MakeTable(crc32.Castagnoli)))
			return s
		}},
		{"another layout", "another version", func(s []byte) []byte {
			s = put(atLayout, ^s[atLayout])(s)
			version := binary.LittleEndian.Uint32(s[atVersion:])
			binary.LittleEndian.PutUint32(s[atCheck:], crc32.Update(version, crc32.MakeTable(crc32.Castagnoli), s[atLayout:atBoot]))
			return s
		}},
		{"a scrambled layout", "damaged", func(s []byte) []byte { return put(atLayout, ^s[atLayout])(s) }},
		{"a scrambled instance", "damaged", func(s []byte) []byte { return put(atInstance, ^s[atInstance])(s) }},
		{"a journal that is not there", "damaged", put(atCommit, 0, 0, 0, 0, 0, 0, 0, 0x70)},
		{"steps that are not there", "damaged", func(s []byte) []byte {
			return put(atCommit, 0xff, 0xff, 0xff, 0xff)(s)
		}},
		{"one bit of the records", "changed by something else", func(s []byte) []byte {
			s[filestore.HeaderSize+70_000] ^= 4
			return s
		}},
		{"a page of the records", "changed by something else", func(s []byte) []byte {
			copy(s[filestore.HeaderSize+20_000:], noise[:4096])
			return s
		}},
		{"scrambled throughout", "not a state file", func(s []byte) []byte {
			s = bytes.Clone(s)
			r := rand.NewChaCha8([32]byte{1})
			_, _ = r.Read(s)
			return s
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, state, _ := pristine(t)
			whole := read(t, state)
			broken := c.damage(bytes.Clone(whole))
			write(t, state, broken)
			for range 2 { // it does not mend itself by being looked at
				_, err := charged(dir)
				unusable(t, err, c.says)
			}
			if list := listed(t, dir); len(list.Pools) != 0 || len(list.Skipped) != 1 || !strings.Contains(list.Skipped[0], c.says) {
				t.Errorf("listed as %+v", list)
			}
			if got := read(t, state); !bytes.Equal(got, broken) {
				t.Error("the file was written to")
			}
			write(t, state, whole)
			if n, err := charged(dir); err != nil || n != 3 {
				t.Errorf("with the file as it was: %d charged, %v", n, err)
			}
		})
	}
}

// listed is what there is in a directory.
func listed(t *testing.T, dir string) store.Listing {
	t.Helper()
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Pools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestADamagedJournalIsAnError(t *testing.T) {
	t.Parallel()
	scramble := func(at, n int) func([]byte) []byte {
		return func(j []byte) []byte {
			for i := range n {
				j[at+i] ^= 0x5a
			}
			return j
		}
	}
	for _, c := range []struct {
		name   string
		cut    bool                        // a step was cut off, so that the journal is needed
		damage func(journal []byte) []byte // nil: it is removed
	}{
		{"missing", false, nil},
		{"missing after a crash", true, nil},
		{"empty", false, func([]byte) []byte { return nil }},
		{"half of it", true, func(j []byte) []byte { return j[:len(j)/2] }},
		{"scrambled head", false, scramble(8, 8)},
		{"scrambled copy", true, scramble(filestore.HeaderSize+1000, 100)},
		{"scrambled steps", true, func(j []byte) []byte { return scramble(len(j)-filestore.LogSize+10, 4)(j) }},
		{"no steps", true, func(j []byte) []byte {
			clear(j[len(j)-filestore.LogSize:])
			return j
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, state, journal := pristine(t)
			if c.cut {
				s, _ := opened(t, dir, wide())
				if err := s.CutOff("pool", 0, func(b []byte) { clear(b[:100]) }); err != nil {
					t.Fatal(err)
				}
				// As if killed: no step of its own mends it when it is closed.
				whole := read(t, state)
				_ = s.Close()
				write(t, state, whole)
			}
			whole := read(t, journal)
			if c.damage == nil {
				if err := os.Remove(journal); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, journal, c.damage(bytes.Clone(whole)))
			}
			for range 2 {
				_, err := charged(dir)
				unusable(t, err, "damaged")
			}
			write(t, journal, whole)
			if n, err := charged(dir); err != nil || n != 3 {
				t.Errorf("with the journal as it was: %d charged, %v", n, err)
			}
		})
	}
}

// scrambled is the task of a process that uses a store whose records are garbage.
type scrambled struct{ Dir string }

var _ = role("scrambled", func(k scrambled) {
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	ctx := context.Background()
	p, err := s.Pool(ctx, wide())
	for range 20 {
		if err == nil {
			ops := []store.Op{ask("d", 0, time.Minute), ask("e", time.Minute, time.Minute)}
			if err = p.Apply(ctx, ops); err == nil {
				err = p.Apply(ctx, []store.Op{{Kind: store.OpClose, ID: ops[0].ID}, {Kind: store.OpClose, ID: ops[1].ID}})
			}
		}
		if err == nil {
			_, err = p.Snapshot(ctx)
		}
	}
	switch {
	case err == nil:
		say("ok")
	case errors.Is(err, store.ErrUnavailable):
		say("error %v", err)
	default:
		giveUp("another error: %v", err)
	}
})

// Garbage in the records cannot always be detected. But it must never crash a process or keep it busy forever.
func TestGarbageInTheRecordsCrashesNobody(t *testing.T) {
	t.Parallel()
	dir, state, journal := pristine(t)
	whole, steps := read(t, state), read(t, journal)
	rng := rand.New(rand.NewPCG(5, 5))
	outcomes := map[string]int{}
	for range scaled(t, 20) {
		broken := bytes.Clone(whole)
		size := 1 << rng.IntN(17)
		at := filestore.HeaderSize + rng.IntN(len(broken)-filestore.HeaderSize-size)
		for i := range size {
			broken[at+i] = byte(rng.Uint32())
		}
		write(t, state, broken)
		write(t, journal, steps)
		c := start(t, "scrambled", scrambled{dir})
		select {
		case said, ok := <-c.lines:
			if !ok {
				<-c.done
				t.Fatalf("%d bytes of garbage at %d: %v\n%s", size, at, c.cmd.ProcessState, c.errs)
			}
			said, _, _ = strings.Cut(said, " ")
			outcomes[said]++
		case <-time.After(20 * time.Second):
			c.dump()
			<-c.done
			t.Fatalf("%d bytes of garbage at %d: a process does not come to an end\n%s", size, at, c.errs)
		}
		c.kill()
	}
	t.Log(outcomes)
}
