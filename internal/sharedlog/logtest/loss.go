package logtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// What is appended to a log that is gone leaves nothing behind.
func lostLeavesNothing(s *suite) {
	l := s.log()
	start := s.load(l).At
	at := s.add(l, start, "one", "two")
	s.lose()
	for _, from := range []sharedlog.Position{start, at, at} {
		_, err := l.Append(s.ctx, from, []byte("never"))
		s.wants(err, sharedlog.ErrLost, "appending")
		_, err = l.Read(s.ctx, from)
		s.wants(err, sharedlog.ErrLost, "reading")
	}
	s.wants(l.Compact(s.ctx, at, []byte("snapshot")), sharedlog.ErrLost, "compacting")
	got := s.load(s.log())
	if !got.Created || len(got.Data)+len(got.Snapshot) > 0 || got.At.Incarnation == at.Incarnation {
		s.Errorf("a newcomer finds %+v", got)
	}
}

// soon calls do, again if it took so long that posts do not count any more, and fails with what it says is wrong.
func (s *suite) soon(do func() (wrong string)) {
	s.Helper()
	for {
		began := time.Now()
		wrong := do()
		if wrong == "" {
			return
		}
		if time.Since(began) < sharedlog.KeepPost*9/10 {
			s.Fatal(wrong)
		}
	}
}

// Survivors learn of each other, in one order, and a newcomer waits for them.
func survivors(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	at := s.add(a, start, "one", "two")
	want := []sharedlog.Survivor{{Process: 5, At: at, New: true}, {Process: 9, At: at}, {Process: 7, At: start}}
	s.soon(func() string {
		s.lose()
		got, err := b.Post(s.ctx, 7, start)
		for _, process := range []uint64{9, 5} {
			if err == nil {
				got, err = a.Post(s.ctx, process, at)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			return fmt.Sprintf("%v, %v, want %v", err, got, want)
		}
		if got, err := a.Post(s.ctx, 5, at); err != nil || slices.ContainsFunc(got, func(other sharedlog.Survivor) bool { return other.New }) {
			return fmt.Sprintf("posting again: %v, %v", err, got)
		}
		if _, err := a.Load(s.ctx, at); !errors.Is(err, sharedlog.ErrLost) {
			return fmt.Sprintf("loading for one who knows the log: %v", err)
		}
		if _, err := s.log().Load(s.ctx, sharedlog.Position{}); !errors.Is(err, sharedlog.ErrLost) {
			return fmt.Sprintf("loading while survivors are about to heal: %v", err)
		}
		return ""
	})
	if _, err := a.Revive(s.ctx, at, []byte("one two")); err != nil {
		s.Fatal(err)
	}
	if loaded := s.load(b); loaded.Created || string(loaded.Snapshot) != "one two" || loaded.Origin != at {
		s.Errorf("%+v", loaded)
	}
	if got, err := b.Post(s.ctx, 7, start); err != nil || len(got) != 1 {
		s.Errorf("posts outlive the healing: %v, %v", got, err)
	}
	s.lose()
	if _, err := a.Post(s.ctx, 7, start); err != nil {
		s.Fatal(err)
	}
	s.until("a newcomer starts anew, because the survivors were silent", func() bool {
		got, err := b.Load(s.ctx, sharedlog.Position{})
		return err == nil && got.Created
	})
}

func oneRevives(s *suite) {
	l := s.log()
	at := s.add(l, s.load(l).At, "one")
	s.lose()
	const n = 6
	errs := make([]error, n)
	began := make([]sharedlog.Position, n)
	var wg sync.WaitGroup
	for i := range n {
		other := s.log()
		wg.Go(func() { began[i], errs[i] = other.Revive(s.ctx, at, []byte{byte(i)}) })
	}
	wg.Wait()
	first := -1
	for i, err := range errs {
		if err == nil && first < 0 {
			first = i
			continue
		}
		s.wants(err, sharedlog.ErrIncarnationOver, "reviving as the second")
	}
	if first < 0 {
		s.Fatal("nobody revived the log")
	}
	got := s.load(l)
	if got.At != began[first] || len(got.Snapshot) != 1 || got.Snapshot[0] != byte(first) || got.Origin != at || got.At.Incarnation <= at.Incarnation || got.At.Offset != 0 {
		s.Errorf("%d began at %v, and a newcomer finds %+v", first, began[first], got)
	}
	s.add(s.log(), got.At, "two")
}

// A new incarnation may also replace one that is still there, as after its end was lost. Its processes notice.
func reviveOverALog(s *suite) {
	a, b := s.log(), s.log()
	at := s.add(a, s.load(a).At, "one")
	began, err := a.Revive(s.ctx, at, []byte("one"))
	if err != nil {
		s.Fatal(err)
	}
	_, err = b.Append(s.ctx, at, []byte("never"))
	s.wants(err, sharedlog.ErrIncarnationOver, "appending")
	_, err = b.Read(s.ctx, at)
	s.wants(err, sharedlog.ErrIncarnationOver, "reading")
	s.wants(b.Compact(s.ctx, at, []byte("never")), sharedlog.ErrIncarnationOver, "compacting")
	_, err = b.Revive(s.ctx, at, []byte("never"))
	s.wants(err, sharedlog.ErrIncarnationOver, "reviving")
	if rest, _ := s.rest(b, began); len(rest) > 0 || string(s.load(b).Snapshot) != "one" {
		s.Errorf("the new incarnation has %q", rest)
	}
}

// A process that slept while the log was lost and began anew appends nothing, even if everything else looks the same.
func awayWhileReplaced(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	at := s.add(a, start, "same size")
	s.lose()
	fresh := s.load(b)
	then := s.add(b, fresh.At, "Same Size")
	for _, from := range []sharedlog.Position{start, at} {
		_, err := a.Append(s.ctx, from, []byte("never"))
		s.wants(err, sharedlog.ErrIncarnationOver, "appending")
		_, err = a.Read(s.ctx, from)
		s.wants(err, sharedlog.ErrIncarnationOver, "reading")
	}
	rest, end := s.rest(b, fresh.At)
	s.list(rest, "Same Size")
	if end != then {
		s.Errorf("the log ends at %v, want %v", end, then)
	}
}

func (s *suite) loseTail(at sharedlog.Position, n int64) {
	s.Helper()
	if s.rig.LoseTail == nil {
		s.Skip("the end of this log cannot be lost here")
	}
	if err := s.rig.LoseTail(s.name, at, n); err != nil {
		s.Fatal(err)
	}
	time.Sleep(time.Millisecond) // a failover takes time: no entry after it has the stamp of one before
}

// A log that is shorter than what was read is lost. Those who had read less go on, until it is healed.
func lostTail(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	one := s.add(a, start, "one")
	two := s.add(a, one, "two")
	s.loseTail(two, two.Offset-one.Offset)
	_, err := a.Read(s.ctx, two)
	s.wants(err, sharedlog.ErrLost, "reading")
	rest, end := s.rest(b, start)
	s.list(rest, "one")
	if end != one {
		s.Errorf("what is left ends at %v, want %v", end, one)
	}
	_, err = a.Append(s.ctx, two, []byte("three"))
	s.wants(err, sharedlog.ErrLost, "appending")
	if _, err := a.Revive(s.ctx, two, []byte("one two")); err != nil {
		s.Fatal(err)
	}
	_, err = b.Append(s.ctx, one, []byte("never"))
	s.wants(err, sharedlog.ErrIncarnationOver, "appending to what is left")
}

// The same if others have appended as much as was lost.
func lostTailGrownAgain(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	one := s.add(a, start, "one")
	two := s.add(a, one, "two")
	s.loseTail(two, two.Offset-one.Offset)
	s.add(b, one, "TWO", "more")
	_, err := a.Read(s.ctx, two)
	s.wants(err, sharedlog.ErrLost, "reading")
	_, err = a.Append(s.ctx, two, []byte("three"))
	s.wants(err, sharedlog.ErrLost, "appending")
	s.wants(a.Compact(s.ctx, two, []byte("one two")), sharedlog.ErrLost, "compacting")
}

// The log is lost again and again under load. Nothing that was acknowledged is lost as long as its process lives.
func healUnderLoad(s *suite) {
	if s.rig.Lose == nil {
		s.Skip("this engine loses nothing")
	}
	all := s.members(5)
	done := make(chan struct{})
	lost := make(chan error, 1)
	go func() {
		for range 4 {
			time.Sleep(150 * time.Millisecond)
			if err := s.rig.Lose(s.name); err != nil {
				lost <- err
				return
			}
		}
		close(done)
	}()
	s.work(all, func(m *member, r *rand.Rand) error {
		for {
			select {
			case <-done:
				return nil
			case err := <-lost:
				return err
			default:
			}
			err := m.add(s.ctx)
			if err == nil && r.IntN(20) == 0 {
				err = m.compact(s.ctx)
			}
			if err == nil {
				err = pause(s.ctx, time.Duration(r.IntN(2000))*time.Microsecond)
			}
			if err != nil {
				return err
			}
		}
	})
	s.agree(all)
	healed := 0
	for _, m := range all {
		healed += m.healed
	}
	if healed == 0 {
		s.Error("nobody healed the log")
	}
}
