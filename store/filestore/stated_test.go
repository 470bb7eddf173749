//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// Three processes made a limit smaller and then larger again: it stayed small until one of them was alone.
func TestSizesOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	storetest.FleetSizes(t, func(t *testing.T) storetest.Fleet {
		dir, c := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
		return storetest.Fleet{Advance: c.Advance, Start: func() storetest.Process {
			s, err := filestore.Open(dir, filestore.WithClock(c))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() }) // Windows removes no files that are open
			return storetest.Process{Store: s, Beat: func() {}, Kill: s.Kill}
		}}
	})
}

// sizer is the task of a process that states a size, and waits to be killed.
type sizer struct {
	Dir  string
	Size int64
}

var _ = role("sizer", func(k sizer) {
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	if _, err := s.Pool(context.Background(), ofSize(k.Size)); err != nil {
		giveUp("pool: %v", err)
	}
	say("stated")
	select {}
})

func ofSize(n int64) store.Spec {
	return specOf(store.Limit{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: n, Window: time.Minute, Guard: store.GuardOff})
}

func sizeNow(t *testing.T, p store.Pool) int64 {
	t.Helper()
	if err := p.Apply(context.Background(), []store.Op{{Kind: store.OpPoll, ID: store.ID{N: 1}}}); err != nil {
		t.Fatal(err)
	}
	s, err := p.Snapshot(context.Background())
	if err != nil || len(s.Limits) != 1 {
		t.Fatalf("%+v %v", s.Limits, err)
	}
	return s.Limits[0].Size
}

// The system tells that a process was killed: what it stated no longer counts, and its file goes.
func TestAKilledProcessStatesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, p := opened(t, dir, ofSize(9))
	k := start(t, "sizer", sizer{dir, 4})
	k.expect("stated")
	if n := sizeNow(t, p); n != 4 {
		t.Fatalf("the size is %d", n)
	}
	k.kill()
	for until := time.Now().Add(time.Minute); sizeNow(t, p) != 9; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the size stays small after a minute")
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.StatePath("pool")), "stated-*"))
	if err != nil || len(files) != 1 {
		t.Errorf("left are %v, %v", files, err)
	}
}

// A process of a version that does not write down what it states keeps limits as they are, as long as it is there.
func TestLimitsDoNotGrowBesideAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
	_, p := opened(t, dir, ofSize(9), filestore.WithClock(c))
	old, was := opened(t, dir, ofSize(4), filestore.WithClock(c))
	old.Forget("pool")
	ops := []store.Op{ask("a", 0, time.Minute)}
	ops[0].Tie = store.TieGone
	if err := was.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
		t.Fatal(ops[0].Result, err)
	}
	third, _ := opened(t, dir, ofSize(9), filestore.WithClock(c))
	for range 3 {
		c.Advance(2 * time.Second)
		if n := sizeNow(t, p); n != 4 {
			t.Fatalf("the size is %d", n)
		}
	}
	if err := third.Close(); err != nil { // nobody is left whose statement is known: one is there all the same
		t.Fatal(err)
	}
	if err := was.Apply(context.Background(), []store.Op{{Kind: store.OpClose, ID: ops[0].ID}}); err != nil {
		t.Fatal(err)
	}
	c.Advance(2 * time.Second)
	if n := sizeNow(t, p); n != 4 {
		t.Errorf("the size is %d", n)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(2 * time.Second)
	if n := sizeNow(t, p); n != 9 {
		t.Errorf("the size is %d when it has left", n)
	}
}

// What another process states cannot be read: limits do not grow.
func TestADamagedStatementCountsAsASmallOne(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "another form": "sluice stated 2\nabc", "no spec": "sluice stated 1\nabc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, c := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
			_, p := opened(t, dir, ofSize(9), filestore.WithClock(c))
			other, _ := opened(t, dir, ofSize(4), filestore.WithClock(c))
			if err := os.WriteFile(other.StatedPath("pool"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c.Advance(2 * time.Second)
			if n := sizeNow(t, p); n != 4 {
				t.Errorf("the size is %d", n)
			}
			other.Kill()
			c.Advance(2 * time.Second)
			if n := sizeNow(t, p); n != 9 {
				t.Errorf("the size is %d when it is dead", n)
			}
		})
	}
}

// A reload that is refused leaves what the process stated before.
func TestWhatWasRefusedIsNotStated(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
	mine, _ := opened(t, dir, ofSize(4), filestore.WithClock(c))
	_, p := opened(t, dir, ofSize(9), filestore.WithClock(c))
	again := ofSize(9)
	again.Restate, again.Limits[0].Window = true, time.Hour
	if _, err := mine.Pool(context.Background(), again); err == nil {
		t.Fatal("another window was taken on under another process")
	}
	c.Advance(2 * time.Second)
	if n := sizeNow(t, p); n != 4 {
		t.Errorf("the size is %d", n)
	}
}

// A process that only waits is let in when the one has left that made its limit small.
func TestWhoWaitsHasTheLargerLimit(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), clock{storetest.NewClock(storetest.Start)}
	_, p := opened(t, dir, ofSize(2), filestore.WithClock(c))
	small, _ := opened(t, dir, ofSize(1), filestore.WithClock(c))
	ops := []store.Op{ask("a", 0, time.Hour), ask("a", -1, time.Hour)}
	if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted || ops[1].Result.State != store.Waiting {
		t.Fatal(ops[0].Result, ops[1].Result, err)
	}
	w := watch(p)
	if err := small.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(10 * time.Second)
	select {
	case <-w.decided(ops[1].ID):
	default:
		t.Error("it waits on")
	}
}
