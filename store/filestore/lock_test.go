//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// opened opens a store with one pool, for as long as the test runs.
func opened(t testing.TB, dir string, spec store.Spec, opts ...filestore.Option) (*filestore.Store, store.Pool) {
	t.Helper()
	s, err := filestore.Open(dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p, err := s.Pool(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// wide has room for all.
func wide() store.Spec {
	return specOf(store.Limit{Kind: store.Rolling, Size: 1000, Window: time.Hour, Guard: store.GuardOff})
}

// locked takes the lock of a pool as another process would. The result gives it back.
func locked(t testing.TB, path string) (free func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := filestore.TryLock(f); err != nil {
		t.Fatal(err)
	}
	return func() { filestore.Unlock(f) }
}

// A caller that gave up waiting for the lock must not let others in while the next caller of its process works.
func TestWhoGivesUpOnTheLockTakesItFromNobody(t *testing.T) {
	t.Parallel()
	for range scaled(t, 20) {
		giveUpOnce(t)
	}
}

func giveUpOnce(t *testing.T) {
	t.Helper()
	var inside atomic.Bool
	entered, leave := make(chan struct{}), make(chan struct{})
	s, p := opened(t, t.TempDir(), wide(), filestore.WithFault(func(where string) {
		if where == "begun" && inside.Load() {
			entered <- struct{}{}
			<-leave
		}
	}))
	letGo := sync.OnceFunc(func() {
		inside.Store(false)
		close(leave)
	})
	defer letGo()
	free := locked(t, s.StatePath("pool"))
	for range 3 { // they give up
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		if err := p.Apply(ctx, []store.Op{ask("a", 0, time.Minute)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("with the lock taken: %v", err)
		}
		cancel()
	}
	inside.Store(true)
	done := make(chan error, 1)
	go func() { done <- p.Apply(context.Background(), []store.Op{ask("b", 0, time.Minute)}) }()
	free()
	<-entered
	f, err := os.OpenFile(s.StatePath("pool"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Those who have given up may be about to let go: they are given the time for it.
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		if filestore.TryLock(f) == nil {
			t.Fatal("another process can enter while a step is being made")
		}
	}
	letGo()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// When nobody wants it any more, it is free.
	eventually(t, patience, "free", func() bool { return filestore.TryLock(f) == nil })
	_ = f.Close()
}

// A caller that gives up in a crowd does not affect the others.
func TestACancelledCallerFailsNobodyElse(t *testing.T) {
	t.Parallel()
	s, p := opened(t, t.TempDir(), wide())
	free := locked(t, s.StatePath("pool"))
	ctx, cancel := context.WithCancel(context.Background())
	gone, others := make(chan error, 1), make(chan error, 20)
	go func() { gone <- p.Apply(ctx, []store.Op{ask("gone", 0, time.Minute)}) }()
	for range cap(others) {
		go func() { others <- p.Apply(context.Background(), []store.Op{ask("other", 0, time.Minute)}) }()
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	freed := make(chan struct{})
	time.AfterFunc(40*time.Millisecond, func() {
		free()
		close(freed)
	})
	<-gone
	<-freed
	for range cap(others) {
		if err := <-others; err != nil {
			t.Errorf("failed with another's context: %v", err)
		}
	}
}

// When an undone step is tried again, no request gets the ticket of another.
func TestAStepThatIsUndoneKeepsNoNumber(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	_, p := opened(t, t.TempDir(), wide(), filestore.WithFault(func(where string) {
		if where == "done" && full.Swap(false) {
			panic(flat.ErrFull)
		}
	}))
	ctx := context.Background()
	full.Store(true)
	first := []store.Op{ask("first", 0, time.Minute)}
	err := p.Apply(ctx, first)
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("without room: %v", err)
	}
	second := []store.Op{ask("second", 0, time.Minute)}
	if err := p.Apply(ctx, second); err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(ctx, first); err != nil {
		t.Fatal(err)
	}
	if a, b := first[0].Result, second[0].Result; a.State != store.Granted || b.State != store.Granted || a.ID == b.ID {
		t.Errorf("both got a ticket: %v %v and %v %v", a.State, a.ID, b.State, b.ID)
	}
	snap, err := p.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if snap.Limits[0].Used != 2 {
		t.Errorf("%d charged", snap.Limits[0].Used)
	}
}

// The half-done state of a killed process is not read, however damaged it is.
func TestARestoredStateOwesNothingToTheTornOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fresh bool // a process that comes new, or one that has seen it whole
		from  int64
	}{
		{"new, all of it", true, 0},
		{"new, behind the heads", true, 64 << 10},
		{"attached, all of it", false, 0},
		{"attached, behind the heads", false, 64 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, p := opened(t, dir, wide())
			if err := p.Apply(context.Background(), []store.Op{ask("a", 0, time.Minute), ask("b", 0, time.Minute)}); err != nil {
				t.Fatal(err)
			}
			for _, fill := range []byte{0, 0xff, 0x5a} {
				if err := s.CutOff("pool", c.from, func(b []byte) {
					for i := range b {
						b[i] = fill ^ byte(i*i>>3)
					}
				}); err != nil {
					t.Fatal(err)
				}
				q := p
				if c.fresh {
					_, q = opened(t, dir, wide())
				}
				snap, err := q.Snapshot(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if snap.Limits[0].Used != 2 || snap.InFlight != 2 {
					t.Errorf("%d charged, %d in flight", snap.Limits[0].Used, snap.InFlight)
				}
				same(t, s)
			}
		})
	}
}

// The process that undoes a step may not be the one that grew the state.
func TestWhatOthersAddedIsUndoneToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, p := opened(t, dir, wide())
	_, other := opened(t, dir, wide()) // as another process: it has the file open for itself
	ctx := context.Background()
	for range 10 {
		ops := make([]store.Op, 100)
		for i := range ops {
			ops[i] = ask("grower", 0, time.Minute)
			ops[i].Amounts = []store.Amount{{Unit: "requests", N: 1}}
		}
		if err := other.Apply(ctx, ops); err != nil {
			t.Fatal(err)
		}
	}
	want, err := other.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.StatePath("pool"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the state has grown to %d bytes", info.Size())
	if err := s.Restore("pool"); err != nil { // s knows the file as it was at first
		t.Fatal(err)
	}
	same(t, s)
	got, err := p.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.InFlight != want.InFlight || got.Limits[0].Used != want.Limits[0].Used {
		t.Errorf("made anew: %d in flight and %d used, was %d and %d", got.InFlight, got.Limits[0].Used, want.InFlight, want.Limits[0].Used)
	}
}
