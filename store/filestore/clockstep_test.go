//go:build linux || darwin

package filestore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// steppedClock is the system's clock with another time of day, which a file sets for all processes.
type steppedClock struct {
	filestore.Clock
	wall string
}

func (c steppedClock) Wall() store.Time {
	text, err := os.ReadFile(c.wall)
	if err != nil {
		giveUp("the time of day: %v", err)
	}
	return store.Time(time.Now().UnixMicro() + int64(binary.LittleEndian.Uint64(text)))
}

// clock returns the option for a worker with a time of day of its own.
func (k *task) clock() []filestore.Option {
	if k.Wall == "" {
		return nil
	}
	system, err := filestore.SystemClock()
	if err != nil {
		giveUp("clock: %v", err)
	}
	return []filestore.Option{filestore.WithClock(steppedClock{system, k.Wall})}
}

// Processes are killed and begin anew, and the time of day is set each time, by 0.1 s to an hour, forward and back. It says
// nothing about how much time has passed.
func TestArrivalsStayWithinTheLimitWhileTheTimeOfDayIsSet(t *testing.T) {
	t.Parallel()
	s := newArrivals(500 * time.Millisecond)
	s.task.Wall = filepath.Join(t.TempDir(), "wall")
	var ahead atomic.Int64
	set := func(to time.Duration) {
		ahead.Store(int64(to))
		var text [8]byte
		binary.LittleEndian.PutUint64(text[:], uint64(to.Microseconds()))
		if err := os.WriteFile(s.task.Wall+".new", text[:], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(s.task.Wall+".new", s.task.Wall); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	look := s.look
	s.look = func(t *testing.T) rest { // after each kill
		t.Helper()
		step := time.Duration(float64(100*time.Millisecond) * math.Pow(36_000, rand.Float64()))
		if rand.IntN(2) == 0 {
			step = -step
		}
		set(time.Duration(ahead.Load()) + step)
		return look(t)
	}
	checkRolling(t, begins(s.run(t)), arrivalSize, arrivalWindow)
}

// A pool is unused when its own time says so. The time of day once removed a pool that was in use a moment ago.
func TestAStepOfTheTimeOfDayRemovesNoPool(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	clock := restarted(1, storetest.Start)
	once := func() (left int64) {
		s, err := filestore.Open(dir, filestore.WithClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Pool(ctx, wide())
		if err != nil {
			t.Fatal(err)
		}
		left, _ = used(t, p)
		if err := errors.Join(p.Apply(ctx, []store.Op{ask("a", 0, time.Hour)}), s.Close()); err != nil {
			t.Fatal(err)
		}
		return left
	}
	once()
	if err := os.Remove(filepath.Join(dir, "pools", ".collected")); err != nil {
		t.Fatal(err)
	}
	clock.wall = clock.wall.Add(2 * store.MaxWindow)
	if left := once(); left != 1 {
		t.Errorf("%d charged, want 1", left)
	}
}
