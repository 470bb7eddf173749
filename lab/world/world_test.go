package world_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/lab/world"
)

// virtual runs a test in virtual time, with one process connected to one server and one entry in its log.
func virtual(t *testing.T, seed uint64, f world.Faults, test func(t *testing.T, w *world.World, s *world.Server, l sharedlog.Log, at sharedlog.Position)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := world.New(seed)
		s := w.Server()
		e := s.Connect()
		defer e.Close()
		l := e.Log("pool")
		loaded, err := l.Load(t.Context(), sharedlog.Position{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Append(t.Context(), loaded.At, []byte("one"))
		if err != nil {
			t.Fatal(err)
		}
		w.SetFaults(f)
		test(t, w, s, l, got.At)
	})
}

// read returns the entries after a position.
func read(t *testing.T, l sharedlog.Log, at sharedlog.Position) (all []string) {
	t.Helper()
	got, err := l.Read(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range got.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(entry.Body))
	}
	return all
}

func TestDelaysTakeTime(t *testing.T) {
	virtual(t, 1, world.Faults{Delay: 10 * time.Millisecond}, func(t *testing.T, _ *world.World, _ *world.Server, l sharedlog.Log, at sharedlog.Position) {
		began := time.Now()
		if _, err := l.Append(t.Context(), at, []byte("two")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 10*time.Millisecond || took > 20*time.Millisecond {
			t.Errorf("a round trip took %v", took)
		}
	})
}

func TestALostRequestDoesNothing(t *testing.T) {
	virtual(t, 1, world.Faults{LoseRequest: 1}, func(t *testing.T, w *world.World, _ *world.Server, l sharedlog.Log, at sharedlog.Position) {
		began := time.Now()
		if _, err := l.Append(t.Context(), at, []byte("two")); !errors.Is(err, sharedlog.ErrUnavailable) || time.Since(began) != world.Timeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		w.SetFaults(world.Faults{})
		if got := read(t, l, at); len(got) > 0 {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestALostReplyHidesWhatWasDone(t *testing.T) {
	virtual(t, 1, world.Faults{LoseReply: 1}, func(t *testing.T, w *world.World, _ *world.Server, l sharedlog.Log, at sharedlog.Position) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Append(ctx, at, []byte("two")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		w.SetFaults(world.Faults{})
		if got := read(t, l, at); len(got) != 1 {
			t.Errorf("the log has %q", got)
		}
	})
}

// A caller that leaves does not take its request back.
func TestACancelledRequestArrives(t *testing.T) {
	virtual(t, 1, world.Faults{Delay: 10 * time.Millisecond}, func(t *testing.T, _ *world.World, _ *world.Server, l sharedlog.Log, at sharedlog.Position) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.Append(ctx, at, []byte("two")); !errors.Is(err, sharedlog.ErrUnavailable) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if got := read(t, l, at); len(got) != 1 {
			t.Errorf("the log has %q", got)
		}
	})
}

// Requests wait while a server is stalled, and are carried out in the order in which they came.
func TestAStallKeepsTheOrder(t *testing.T) {
	virtual(t, 1, world.Faults{Delay: time.Millisecond}, func(t *testing.T, _ *world.World, s *world.Server, l sharedlog.Log, at sharedlog.Position) {
		s.Stall(time.Second)
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				if _, err := l.Append(t.Context(), at, fmt.Append(nil, i)); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < time.Second || took > time.Second+2*time.Millisecond {
					t.Errorf("answered after %v", took)
				}
			})
		}
		wg.Wait()
		for i, got := range read(t, l, at) {
			if got != fmt.Sprint(i) {
				t.Errorf("place %d has %q", i, got)
			}
		}
	})
}

func TestALostTail(t *testing.T) {
	virtual(t, 1, world.Faults{}, func(t *testing.T, _ *world.World, s *world.Server, l sharedlog.Log, at sharedlog.Position) {
		places := []sharedlog.Position{at}
		for _, entry := range []string{"two", "three", "four"} {
			time.Sleep(time.Second)
			got, err := l.Append(t.Context(), at, []byte(entry))
			if err != nil {
				t.Fatal(err)
			}
			at = got.At
			places = append(places, at)
		}
		if err := l.Compact(t.Context(), at, []byte("all")); err != nil { // undone as well
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		s.LoseTail(1500 * time.Millisecond)
		if got := read(t, l, places[0]); strings.Join(got, " ") != "two" {
			t.Errorf("left are %q", got)
		}
		if _, err := l.Read(t.Context(), at); !errors.Is(err, sharedlog.ErrLost) {
			t.Error(err)
		}
		if loaded, err := l.Load(t.Context(), sharedlog.Position{}); err != nil || len(loaded.Snapshot) > 0 || loaded.At != places[1] {
			t.Errorf("%v, %+v", err, loaded)
		}
	})
}

func TestAClockThatIsSet(t *testing.T) {
	virtual(t, 1, world.Faults{}, func(t *testing.T, _ *world.World, s *world.Server, l sharedlog.Log, at sharedlog.Position) {
		s.StepClock(-time.Hour)
		got, err := l.Append(t.Context(), at, []byte("two"))
		if err != nil || got.Stamp.Sub(at.Stamp) > -time.Hour+time.Second {
			t.Errorf("%v, %v after the entry before", err, got.Stamp.Sub(at.Stamp))
		}
	})
}

func TestAServerWithoutMemory(t *testing.T) {
	virtual(t, 1, world.Faults{}, func(t *testing.T, _ *world.World, s *world.Server, l sharedlog.Log, at sharedlog.Position) {
		s.SetFull(true)
		if _, err := l.Append(t.Context(), at, []byte("two")); !errors.Is(err, sharedlog.ErrFull) {
			t.Error(err)
		}
		if got := read(t, l, at); len(got) > 0 {
			t.Errorf("the log has %q", got)
		}
		s.SetFull(false)
		s.Evict("pool")
		if _, err := l.Append(t.Context(), at, []byte("two")); !errors.Is(err, sharedlog.ErrLost) || !errors.Is(err, sharedlog.ErrEvicted) {
			t.Error(err)
		}
		if _, err := l.Load(t.Context(), sharedlog.Position{}); !errors.Is(err, sharedlog.ErrEvicted) {
			t.Error(err)
		}
		if _, err := l.Revive(t.Context(), at, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestWakeUpsAreLateOrLost(t *testing.T) {
	virtual(t, 1, world.Faults{DelayWake: time.Second}, func(t *testing.T, w *world.World, _ *world.Server, l sharedlog.Log, _ sharedlog.Position) {
		woken, err := l.Watch(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		began, late := time.Now(), 0
		for range 20 {
			if err := l.Publish(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			<-woken
			if since := time.Since(began); since > 100*time.Millisecond {
				late++
			}
			began = time.Now()
		}
		if late == 0 {
			t.Error("no wake-up was late")
		}
		w.SetFaults(world.Faults{LoseWake: 1})
		if err := l.Publish(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		select {
		case <-woken:
			t.Error("a lost wake-up arrived")
		case <-time.After(time.Hour):
		}
	})
}

// Three processes that run at the same time meet the same faults, and make the same log, each time.
func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, seed uint64) (story string) {
		synctest.Test(t, func(t *testing.T) {
			w := world.New(seed)
			s := w.Server()
			w.SetFaults(world.Faults{
				Delay: time.Millisecond, LoseRequest: 0.05, LoseReply: 0.05, Flush: 0.01,
				Stall: world.Chance{Of: 0.02, Most: time.Second}, LoseTail: world.Chance{Of: 0.02, Most: time.Second}, StepClock: world.Chance{Of: 0.02, Most: time.Second},
			})
			stories := make([]string, 3)
			var wg sync.WaitGroup
			for i := range stories {
				e := s.Connect()
				defer e.Close()
				l := e.Log("pool")
				wg.Go(func() {
					var at sharedlog.Position
					for n := range 60 {
						got, err := l.Append(t.Context(), at, fmt.Append(nil, i, n))
						if err != nil {
							var loaded sharedlog.Loaded
							if loaded, err = l.Load(t.Context(), sharedlog.Position{}); err == nil {
								got = loaded.Entries
							}
						}
						stories[i] += fmt.Sprintf("%v %d %v\n", got.At, len(got.Data), err)
						if err == nil {
							at = got.At
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			wg.Wait()
			story = strings.Join(stories, "\n") + s.String()
		})
		return story
	}
	for seed := range uint64(5) {
		first := run(t, seed)
		if again := run(t, seed); again != first {
			t.Errorf("seed %d: another story:\n%s\n%s", seed, first, again)
		}
		if run(t, seed+100) == first {
			t.Errorf("seeds %d and %d are the same world", seed, seed+100)
		}
	}
}
