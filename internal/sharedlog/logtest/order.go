package logtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

func loadCreatesOnce(s *suite) {
	const n = 8
	loaded := make([]sharedlog.Loaded, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		l := s.log()
		wg.Go(func() { loaded[i], errs[i] = l.Load(s.ctx, sharedlog.Position{}) })
	}
	wg.Wait()
	created := 0
	for i, got := range loaded {
		if errs[i] != nil {
			s.Fatal(errs[i])
		}
		if got.Created {
			created++
		}
		if got.At != loaded[0].At || got.At.Incarnation == 0 || got.From != got.At || len(got.Snapshot)+len(got.Data) > 0 || got.Origin != (sharedlog.Position{}) || got.Now <= 0 {
			s.Errorf("a new log: %+v", got)
		}
	}
	if created != 1 {
		s.Errorf("%d of %d processes created the log", created, n)
	}
}

// An append returns what others appended since the position, without itself, and its own time.
func appendAndRead(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	loaded := s.load(b)
	atA := s.add(a, start, "a1", "a2")
	got, err := b.Append(s.ctx, start, []byte("b1"))
	if err != nil || !got.Own || got.From != start || got.More {
		s.Fatalf("%v, %+v", err, got)
	}
	s.list(bodies(s.T, got), "a1", "a2")
	if got.Stamp < loaded.Now || got.Stamp > loaded.Now.Add(time.Hour) || got.At.Stamp != got.Stamp {
		s.Errorf("stamped %d, and it was %d before", got.Stamp, loaded.Now)
	}
	rest, end := s.rest(a, atA)
	s.list(rest, "b1")
	if end != got.At {
		s.Errorf("one process goes on at %v, the other at %v", end, got.At)
	}
	rest, end = s.rest(a, end)
	s.list(rest)
	if end != got.At {
		s.Errorf("reading nothing moved to %v", end)
	}
	if again := s.load(s.log()); again.At != got.At || again.Created {
		s.Errorf("a newcomer: %+v, want %v", again, got.At)
	} else {
		s.list(bodies(s.T, again.Entries), "a1", "a2", "b1")
	}
}

func readFromAnyPosition(s *suite) {
	l := s.log()
	at := s.load(l).At
	entries := []string{"", "one", strings.Repeat("x", 130), "\x00\xff\r\n", strings.Repeat("y", 20_000)}
	places := []sharedlog.Position{at}
	for _, entry := range entries {
		at = s.add(l, at, entry)
		places = append(places, at)
	}
	for i, from := range places {
		rest, end := s.rest(l, from)
		s.list(rest, entries[i:]...)
		if end != at {
			s.Errorf("from %v: goes on at %v, want %v", from, end, at)
		}
	}
}

// members starts processes.
func (s *suite) members(n int) []*member {
	s.Helper()
	all := make([]*member, n)
	for i := range all {
		m, err := newMember(s.ctx, s.log(), uint64(i+1))
		if err != nil {
			s.Fatal(err)
		}
		all[i] = m
	}
	return all
}

// work lets all members do something at the same time, and fails if one returns an error.
func (s *suite) work(all []*member, do func(m *member, r *rand.Rand) error) {
	s.Helper()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { errs[i] = do(m, rand.New(rand.NewPCG(uint64(i), 1))) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

// agree fails unless all members have the same list, with everything in it that was acknowledged, once.
func (s *suite) agree(all []*member) {
	s.Helper()
	// What one states again while it catches up, others have yet to read.
	for range 2 {
		for _, m := range all {
			if err := m.restate(s.ctx); err != nil {
				s.Fatal(err)
			}
		}
	}
	want := 0
	for _, m := range all {
		if !slices.Equal(m.list, all[0].list) {
			s.Errorf("process %d has another log than process %d:\n%.2000q\n%.2000q", m.process, all[0].process, m.list, all[0].list)
		}
		for _, id := range m.acked {
			if !m.known[id] {
				s.Errorf("%s was acknowledged and is lost", id)
			}
		}
		want += m.sent
	}
	if got := len(all[0].list); got != want {
		s.Errorf("%d entries, want %d", got, want)
	}
}

// Many append at once: all see one order.
func manyAppend(s *suite) {
	all := s.members(8)
	s.work(all, func(m *member, _ *rand.Rand) error {
		for range 100 {
			if err := m.add(s.ctx); err != nil {
				return err
			}
		}
		return nil
	})
	s.agree(all)
	rest, end := s.rest(all[0].log, s.load(all[0].log).From)
	if len(rest) != 800 || end != all[0].at {
		s.Errorf("the log has %d entries and ends at %v, want 800 and %v", len(rest), end, all[0].at)
	}
}

// The same while segments end, and newcomers begin with snapshots.
func manyAppendAndCompact(s *suite) {
	all := s.members(6)
	s.work(all, func(m *member, r *rand.Rand) error {
		for range 80 {
			if err := m.add(s.ctx); err != nil {
				return err
			}
			var err error
			switch r.IntN(12) {
			case 0:
				err = m.compact(s.ctx)
			case 1: // without a claim, as if that had run out
				err = m.mend(s.ctx, m.log.Compact(s.ctx, m.at, m.snapshot()))
			case 2:
				err = m.load(s.ctx)
			case 3:
				time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	newcomer, err := newMember(s.ctx, s.log(), 99)
	if err != nil {
		s.Fatal(err)
	}
	s.agree(append(all, newcomer))
	if newcomer.at.Segment == 0 {
		s.Error("no segment ended")
	}
}

// A position of a segment that has ended leads to its rest and into the next segment, by the same offset.
func readAcrossASegment(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	one := s.add(a, start, "one")
	two := s.add(a, one, "two")
	three := s.add(a, two, "three")
	if err := a.Compact(s.ctx, two, []byte("one two")); err != nil {
		s.Fatal(err)
	}
	for _, from := range []sharedlog.Position{start, one, two, three} {
		_, err := b.Append(s.ctx, from, []byte("never"))
		s.wants(err, sharedlog.ErrSegmentEnded, "appending to a segment that has ended")
	}
	moved := three.Moved(two.Offset)
	for i, from := range []sharedlog.Position{start, one, two, three} {
		rest, end := s.rest(b, from)
		s.list(rest, []string{"one", "two", "three"}[i:]...)
		if end != moved {
			s.Errorf("from %v: goes on at %v, want %v", from, end, moved)
		}
	}
	s.add(b, moved, "four")
	loaded := s.load(a)
	s.list(bodies(s.T, loaded.Entries), "three", "four")
	if string(loaded.Snapshot) != "one two" || loaded.From != two.Moved(two.Offset) {
		s.Errorf("snapshot %q at %v", loaded.Snapshot, loaded.From)
	}
	rest, end := s.rest(b, start)
	s.list(rest, "one", "two", "three", "four")

	// Two segments further, what lies between may be gone.
	if err := a.Compact(s.ctx, end, []byte("all")); err != nil {
		s.Fatal(err)
	}
	got, err := b.Read(s.ctx, start)
	if err == nil {
		_, err = b.Read(s.ctx, got.At)
	}
	if err != nil {
		s.wants(err, sharedlog.ErrBehind, "reading over two segments")
	}
	if s.virtual {
		time.Sleep(sharedlog.KeepEnded + time.Second)
		_, err := b.Read(s.ctx, moved)
		s.wants(err, sharedlog.ErrBehind, "reading a segment that ended long ago")
		rest, _ := s.rest(b, end)
		s.list(rest)
	}
}

func oneClaims(s *suite) {
	l := s.log()
	at := s.add(l, s.load(l).At, "x")
	claims := func() (n int) {
		won := make([]bool, 8)
		var wg sync.WaitGroup
		for i := range won {
			other := s.log()
			wg.Go(func() {
				var err error
				if won[i], err = other.Claim(s.ctx, at, time.Minute); err != nil {
					s.Error(err)
				}
			})
		}
		wg.Wait()
		for _, is := range won {
			if is {
				n++
			}
		}
		return n
	}
	if n := claims(); n != 1 {
		s.Errorf("%d claims at once, want 1", n)
	}
	if n := claims(); n != 0 {
		s.Errorf("%d claims later, want 0", n)
	}
	if err := l.Compact(s.ctx, at, []byte("x")); err != nil {
		s.Fatal(err)
	}
	at = s.add(l, at.Moved(at.Offset), "y")
	if n := claims(); n != 1 {
		s.Errorf("%d claims of the next segment, want 1", n)
	}
	if s.virtual {
		time.Sleep(time.Minute)
		if n := claims(); n != 1 {
			s.Errorf("%d claims when the first has run out, want 1", n)
		}
	}
}

func oneCompacts(s *suite) {
	l := s.log()
	start := s.load(l).At
	at := s.add(l, start, "x")
	if err := l.Compact(s.ctx, start, []byte("nothing")); err != nil {
		s.Errorf("at the beginning of a segment: %v", err)
	}
	if got := s.load(l); got.At != at || len(got.Snapshot) > 0 {
		s.Errorf("a snapshot at the beginning of a segment changed the log: %+v", got)
	}
	const n = 6
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		other := s.log()
		wg.Go(func() { errs[i] = other.Compact(s.ctx, at, fmt.Appendf(nil, "by %d", i)) })
	}
	wg.Wait()
	first := -1
	for i, err := range errs {
		if err == nil && first < 0 {
			first = i
			continue
		}
		s.wants(err, sharedlog.ErrSegmentEnded, "compacting as the second")
	}
	if got := s.load(l); first < 0 || string(got.Snapshot) != fmt.Sprintf("by %d", first) || got.At != at.Moved(at.Offset) {
		s.Errorf("%d was first, and the snapshot is %q at %v", first, got.Snapshot, got.At)
	}
	other := at
	other.Stamp++
	other.Segment = at.Offset
	other.Offset += 20
	s.add(l, at.Moved(at.Offset), "y", "z")
	s.wants(l.Compact(s.ctx, other, nil), sharedlog.ErrLost, "compacting at a position that the log does not have")
}

func bigSnapshot(s *suite) {
	l := s.log()
	at := s.load(l).At
	r := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, sharedlog.MaxRead - 1, sharedlog.MaxRead, sharedlog.MaxRead + 1, 5<<20 + 3} {
		at = s.add(l, at, "x")
		want := make([]byte, size)
		_, _ = r.Read(want)
		if err := l.Compact(s.ctx, at, want); err != nil {
			s.Fatalf("%d bytes: %v", size, err)
		}
		got := s.load(l)
		if !bytes.Equal(got.Snapshot, want) {
			s.Fatalf("%d bytes came back as %d", size, len(got.Snapshot))
		}
		at = got.At
	}
	s.wants(l.Compact(s.ctx, s.add(l, at, "y"), make([]byte, sharedlog.MaxSnapshot+1)), sharedlog.ErrTooBig, "a snapshot that is too big")
	_, err := l.Revive(s.ctx, at, make([]byte, sharedlog.MaxSnapshot+1))
	s.wants(err, sharedlog.ErrTooBig, "a snapshot that is too big")
}
