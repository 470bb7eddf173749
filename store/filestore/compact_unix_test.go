//go:build linux || darwin

// Windows shortens no file that is mapped.

package filestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// 60,000 names make a large file. When they are idle it becomes small and keeps all charges that still count: for a
// process that has it open all the time, and for one that comes later.
func TestAFileThatWasLargeBecomesSmall(t *testing.T) {
	t.Parallel()
	dir, clk := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
	open := func() (*filestore.Store, store.Pool) {
		s, err := filestore.Open(dir, filestore.WithClock(clk))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		p, err := s.Pool(context.Background(), crowdSpec())
		if err != nil {
			t.Fatal(err)
		}
		return s, p
	}
	used := func(p store.Pool) int64 {
		s, err := p.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range s.Limits {
			if l.Limit == "limit 0" {
				return l.Used
			}
		}
		t.Fatal("no daily limit")
		return 0
	}
	s, p := open()
	held := ask("worker", 0, 6*time.Hour)
	if err := p.Apply(context.Background(), []store.Op{held}); err != nil {
		t.Fatal(err)
	}
	nameMany(t, p, 60_000)
	before, large := used(p), diskUse(t, dir)
	if large < 10<<20 {
		t.Fatalf("%d bytes: the test shows nothing", large)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	clk.Advance(2 * time.Hour)
	_, first := open()
	small := diskUse(t, dir)
	t.Logf("%d KiB, then %d KiB", large>>10, small>>10)
	if small > large/4 {
		t.Errorf("%d bytes of %d are left", small, large)
	}
	if got := used(first); got != before {
		t.Errorf("%d are charged, %d were", got, before)
	}

	// Two that have it open, one of which makes it small.
	other, second := open()
	nameMany(t, second, 60_000)
	if err := first.Apply(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	before, large = used(first), diskUse(t, dir)
	clk.Advance(2 * time.Hour)
	if err := other.Compact("pool"); err != nil {
		t.Fatal(err)
	}
	if small = diskUse(t, dir); small > large/4 {
		t.Errorf("%d bytes of %d are left", small, large)
	}
	nameMany(t, first, 2000) // it grows again, by the other process
	nameMany(t, second, 1000)
	for _, p := range []store.Pool{first, second} {
		if got := used(p); got != before+3000 {
			t.Errorf("%d are charged, want %d", got, before+3000)
		}
	}
}
