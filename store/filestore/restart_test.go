//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// machine is a clock that begins anew with every start of the machine.
type machine struct {
	*storetest.Clock
	boot byte
	wall store.Time // when it was started
}

func (m machine) Boot() [16]byte   { return [16]byte{m.boot} }
func (m machine) Wall() store.Time { return m.wall + m.Now() }

// restarted is a machine that was started at a time of day.
func restarted(boot byte, wall store.Time) machine {
	return machine{storetest.NewClock(1_000_000), boot, wall}
}

func used(t *testing.T, p store.Pool) (int64, store.Time) {
	t.Helper()
	snap, err := p.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Limits[0].Used, snap.Now
}

func TestChargesOutliveTheMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		away time.Duration // by the time of day
		left int64
		lost bool // the last steps were not on the disk yet
	}{
		{"soon", 10 * time.Second, 3, false},
		{"after the window", 2 * time.Hour, 0, false},
		{"the time of day was set back", -5 * time.Hour, 3, false},
		{"without the last steps", 10 * time.Second, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, ctx := t.TempDir(), context.Background()
			before := restarted(1, storetest.Start)
			s, err := filestore.Open(dir, filestore.WithClock(before))
			if err != nil {
				t.Fatal(err)
			}
			p, err := s.Pool(ctx, wide())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Apply(ctx, []store.Op{ask("a", 0, time.Second), ask("b", 0, time.Second)}); err != nil {
				t.Fatal(err)
			}
			state, journal := s.StatePath("pool"), s.JournalPath("pool")
			steps := read(t, journal)
			if err := p.Apply(ctx, []store.Op{ask("c", 0, time.Second)}); err != nil {
				t.Fatal(err)
			}
			_, last := used(t, p)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			// What was in the records counts for nothing: the journal does.
			whole := read(t, state)
			for i := range whole[filestore.HeaderSize:] {
				whole[filestore.HeaderSize+i] ^= 0x77
			}
			write(t, state, whole)
			if c.lost {
				write(t, journal, steps)
			}

			after := restarted(2, storetest.Start.Add(c.away))
			s, p = opened(t, dir, wide(), filestore.WithClock(after))
			left, now := used(t, p)
			if left != c.left {
				t.Errorf("%d charged, want %d", left, c.left)
			}
			if now < last {
				t.Errorf("the pool's time went from %d back to %d", last, now)
			}
			// It is as good as any: it can be cut off, and the next one goes on.
			if err := p.Apply(ctx, []store.Op{ask("d", 0, time.Second)}); err != nil {
				t.Fatal(err)
			}
			same(t, s)
			_, q := opened(t, dir, wide(), filestore.WithClock(after))
			if left, _ := used(t, q); left != c.left+1 {
				t.Errorf("%d charged for the next one, want %d", left, c.left+1)
			}
		})
	}
}

// A directory that another machine uses is left alone.
func TestAStateInUseByAnotherMachineIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opened(t, dir, wide(), filestore.WithClock(restarted(1, storetest.Start)))
	s, err := filestore.Open(dir, filestore.WithClock(restarted(2, storetest.Start)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Pool(context.Background(), wide()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}
