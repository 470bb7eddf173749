//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store/filestore"
)

// A look at a large pool took more than twice its size from the heap, each time.
func TestALookTakesNoCopyOfTheStateFromTheHeap(t *testing.T) { //nolint:paralleltest // it measures what the process allocates
	dir := t.TempDir()
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := s.Pool(context.Background(), crowdSpec())
	if err != nil {
		t.Fatal(err)
	}
	nameMany(t, p, 10_000)
	info, err := os.Stat(filepath.Join(dir, "pools", "pool", "state"))
	if err != nil {
		t.Fatal(err)
	}
	const looks = 4
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range looks {
		snap, err := p.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Limits) < 1000 || snap.Counters.Sent == 0 {
			t.Fatalf("%d limits and %d sends", len(snap.Limits), snap.Counters.Sent)
		}
	}
	t.Logf("%v for one look at %d bytes", time.Since(began)/looks, info.Size())
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / looks; got > uint64(info.Size()) {
		t.Errorf("a look allocates %d bytes, of a state of %d", got, info.Size())
	}
}
