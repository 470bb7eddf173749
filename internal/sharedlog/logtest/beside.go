package logtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

func wake(s *suite) {
	a, b := s.log(), s.log()
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	watch := func(l sharedlog.Log, process uint64) <-chan struct{} {
		woken, err := l.Watch(ctx, process)
		if err != nil {
			s.Fatal(err)
		}
		return woken
	}
	one, two, same := watch(a, 1), watch(b, 2), watch(b, 1)
	drain := func(c <-chan struct{}) {
		select {
		case <-c:
		default:
		}
	}
	expect := func(name string, c <-chan struct{}) {
		s.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			s.Fatalf("%s was not woken", name)
		}
	}
	for range 3 {
		drain(one)
		drain(same)
		if err := b.Publish(s.ctx, 1); err != nil {
			s.Fatal(err)
		}
		expect("process 1", one)
		expect("process 1 elsewhere", same)
	}
	drain(two)
	if err := a.Publish(s.ctx, 1, 2, 3); err != nil {
		s.Fatal(err)
	}
	expect("process 2", two)
	expect("process 1", one)
	select {
	case <-two:
		s.Error("process 2 was woken twice by one wake-up")
	case <-time.After(20 * time.Millisecond):
	}
	if err := a.Publish(s.ctx); err != nil {
		s.Errorf("waking nobody: %v", err)
	}
	stop()
	for range two { //nolint:revive // until it is closed
	}
	again := watch2(s, b, 2)
	if err := a.Publish(s.ctx, 2); err != nil {
		s.Fatal(err)
	}
	expect("process 2, which watches again,", again)
}

func watch2(s *suite, l sharedlog.Log, process uint64) <-chan struct{} {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	s.Cleanup(cancel)
	woken, err := l.Watch(ctx, process)
	if err != nil {
		s.Fatal(err)
	}
	return woken
}

// Pools of any name are kept apart.
func names(s *suite) {
	e := s.connect()
	list := []string{"", "a", "A", "a:b", "a:", "{a}", "}", "{}", "a}b", "a}c", "%7D", "a%7Db", "ä ö\x00\xff*?[x]\\", strings.Repeat("l", sharedlog.MaxPool), strings.Repeat("}", sharedlog.MaxPool)}
	for _, name := range list {
		l := e.Log(s.name[:min(len(s.name), sharedlog.MaxPool-len(name))] + name)
		if len(name) == sharedlog.MaxPool {
			l = e.Log(name)
		}
		s.add(l, s.load(l).At, name)
		got := s.load(l)
		s.list(bodies(s.T, got.Entries), name)
		woken := watch2(s, l, 1)
		if err := l.Publish(s.ctx, 1); err != nil {
			s.Fatal(err)
		}
		select {
		case <-woken:
		case <-time.After(30 * time.Second):
			s.Errorf("pool %q: no wake-up", name)
		}
	}
}

// A log that nobody keeps any more is deleted, with its snapshot, also after its segment ended.
func unused(s *suite) {
	l := s.log()
	start := s.load(l).At
	keep := func(at sharedlog.Position, d time.Duration) {
		s.Helper()
		if err := l.Keep(s.ctx, at, d); err != nil {
			s.Fatal(err)
		}
	}
	keep(start, time.Hour)
	at := s.add(l, start, "one")
	if s.virtual {
		time.Sleep(time.Hour - time.Second)
		keep(at, time.Hour)
		time.Sleep(time.Hour - time.Second)
	}
	if err := l.Compact(s.ctx, at, []byte("one")); err != nil {
		s.Fatal(err)
	}
	next := s.add(l, at.Moved(at.Offset), "two")
	if s.virtual {
		time.Sleep(time.Second)
	} else {
		keep(at, time.Millisecond) // from a segment that has ended
	}
	s.until("the log is deleted", func() bool { _, err := l.Read(s.ctx, next); return err != nil })
	s.until("all of it is", func() bool { return errors.Is(l.Keep(s.ctx, next, time.Hour), sharedlog.ErrLost) })
	if got := s.load(l); !got.Created || len(got.Snapshot) > 0 {
		s.Errorf("left was %+v", got)
	}
	s.wants(l.Keep(s.ctx, next, time.Hour), sharedlog.ErrIncarnationOver, "keeping a log that is over")
}

// namesOfPools tests the list of pools, and the secrets that all processes share.
func namesOfPools(s *suite) {
	e := s.connect()
	odd := s.name + " {a}%7D*[x]"
	for _, name := range []string{s.name, odd} {
		if _, err := e.Log(name).Load(s.ctx, sharedlog.Position{}); err != nil {
			s.Fatal(err)
		}
	}
	all, whole, err := s.connect().Pools(s.ctx)
	if err != nil || !whole || !slices.IsSorted(all) || !slices.Contains(all, s.name) || !slices.Contains(all, odd) {
		s.Errorf("%q, whole: %v, %v", all, whole, err)
	}
	name := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, s.name)
	first, second := slices.Repeat([]byte{1}, store.SecretSize), slices.Repeat([]byte{2}, store.SecretSize)
	for _, fresh := range [][]byte{first, second} {
		if got, err := s.connect().Secret(s.ctx, name, fresh); err != nil || !slices.Equal(got, first) {
			s.Errorf("%x, %v", got, err)
		}
	}
}
