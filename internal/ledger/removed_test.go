package ledger

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// If the state directory is removed while in use, budgets start again, and all processes lock the same new file.
func TestProcessesLockTheSameFileAfterTheDirectoryWasRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "budgets")
	ctx, now := context.Background(), time.Now()
	day := Pot{Budget: "fleet", Period: Day.At(now), Size: 100}
	old, fresh, looks := NewDir(dir, false), NewDir(dir, false), NewDir(dir, true)
	defer func() {
		for _, d := range []*Dir{old, fresh, looks} {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	pay := func(d *Dir, amount int64) {
		t.Helper()
		if _, err := d.Take(ctx, Order{Amount: amount, TTL: time.Hour, Now: now, Lines: []Account{{Pot: day}}}); err != nil {
			t.Fatal(err)
		}
	}
	used := func(d *Dir) (n int64) {
		t.Helper()
		list, err := d.Read(ctx, []Pot{day})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range list {
			n += b.Used
		}
		return n
	}
	pay(old, 1)
	if got := used(looks); got != 1 {
		t.Fatalf("%d in the books, want 1", got)
	}
	for range 2 {
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		if got := used(looks); got != 0 {
			t.Errorf("%d in books that were removed", got)
		}
		pay(fresh, 2)
		pay(old, 4)
		mine, err := old.lock.Stat()
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.Stat(filepath.Join(dir, lock))
		if err != nil {
			t.Fatal(err)
		}
		if !os.SameFile(mine, theirs) {
			t.Error("a process still locks a file that was removed")
		}
		for _, d := range []*Dir{old, fresh, looks} {
			if got := used(d); got != 6 {
				t.Errorf("%d in the books, want 6", got)
			}
		}
		old, fresh = fresh, old
	}
}
