package logtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

func bounds(s *suite) {
	l := s.log()
	at := s.load(l).At
	big := strings.Repeat("x", sharedlog.MaxEntry)
	end := s.add(l, at, "", big)
	rest, _ := s.rest(l, at)
	s.list(rest, "", big)
	_, err := l.Append(s.ctx, end, []byte(big+"x"))
	s.wants(err, sharedlog.ErrTooBig, "an entry that is too big")
	if rest, _ := s.rest(l, end); len(rest) > 0 {
		s.Error("it was appended")
	}
	long := s.connect().Log(strings.Repeat("p", sharedlog.MaxPool+1))
	_, err = long.Load(s.ctx, sharedlog.Position{})
	s.wants(err, sharedlog.ErrTooBig, "a name that is too long")
}

// Who is far behind gets what lies between in parts, and its own entry at the end of them.
func farBehind(s *suite) {
	a, b := s.log(), s.log()
	start := s.load(a).At
	at := start
	var want []string
	for i := range 9 {
		entry := strings.Repeat(string(rune('a'+i)), sharedlog.MaxEntry/2-i)
		want = append(want, entry)
		at = s.add(a, at, entry)
	}
	got, err := b.Append(s.ctx, start, []byte("own"))
	if err != nil || got.Own || !got.More || len(got.Data) > sharedlog.MaxRead {
		s.Fatalf("%v, %d bytes, at %v", err, len(got.Data), got.At)
	}
	rest, end := s.rest(b, got.At)
	s.list(slices.Concat(bodies(s.T, got), rest), append(want, "own")...)
	if end.Stamp < at.Stamp {
		s.Errorf("the own entry is stamped %d, after %d", end.Stamp, at.Stamp)
	}
	loaded := s.load(b)
	if !loaded.More || len(loaded.Data) > sharedlog.MaxRead {
		s.Errorf("loaded %d bytes, more: %v", len(loaded.Data), loaded.More)
	}
	rest, _ = s.rest(b, loaded.At)
	s.list(slices.Concat(bodies(s.T, loaded.Entries), rest), append(want, "own")...)

	// Across the end of the segment too.
	if err := a.Compact(s.ctx, at, []byte("s")); err != nil {
		s.Fatal(err)
	}
	rest, moved := s.rest(b, start)
	s.list(rest, append(want, "own")...)
	if moved != end.Moved(at.Offset) {
		s.Errorf("goes on at %v, want %v", moved, end.Moved(at.Offset))
	}
}

// A segment grows to its bound. Compacting makes room.
func fullSegment(s *suite) {
	l := s.log()
	at := s.load(l).At
	entry := make([]byte, sharedlog.MaxEntry)
	for {
		got, err := l.Append(s.ctx, at, entry)
		if err != nil {
			s.wants(err, sharedlog.ErrFull, "appending to a full segment")
			break
		}
		at = got.At
		if size := at.Offset - at.Segment; size > sharedlog.MaxSegment+sharedlog.MaxFrame {
			s.Fatalf("a segment of %d bytes", size)
		}
	}
	if size := at.Offset - at.Segment; size < sharedlog.MaxSegment-sharedlog.MaxFrame {
		s.Errorf("full with %d bytes", size)
	}
	if err := l.Compact(s.ctx, at, []byte("s")); err != nil {
		s.Fatal(err)
	}
	s.add(l, at.Moved(at.Offset), "x")
}

// A call whose context has ended returns ErrUnavailable and the context's error, and one that had ended before does nothing.
func contexts(s *suite) {
	l := s.log()
	at := s.load(l).At
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	late, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{ctx, context.Canceled}, {late, context.DeadlineExceeded}} {
		for what, do := range calls(l, at) {
			err := do(c.ctx)
			s.wants(err, sharedlog.ErrUnavailable, what)
			if !errors.Is(err, c.want) {
				s.Errorf("%s: %v does not match %v", what, err, c.want)
			}
		}
	}
	rest, _ := s.rest(l, at)
	s.list(rest)

	// Ending later: whatever became of the call, the log stays in order.
	var sent int
	for i := range 50 {
		ctx, cancel := context.WithTimeout(s.ctx, time.Duration(i*20)*time.Microsecond)
		_, err := l.Append(ctx, at, []byte("x"))
		cancel()
		if err != nil {
			s.wants(err, sharedlog.ErrUnavailable, "a deadline in the midst")
		}
		sent++
	}
	rest, end := s.rest(l, at)
	if len(rest) > sent {
		s.Errorf("%d entries of %d", len(rest), sent)
	}
	s.add(l, end, "y")
}

// calls are all methods but Watch.
func calls(l sharedlog.Log, at sharedlog.Position) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Load":    func(ctx context.Context) error { _, err := l.Load(ctx, sharedlog.Position{}); return err },
		"Append":  func(ctx context.Context) error { _, err := l.Append(ctx, at, []byte("never")); return err },
		"Read":    func(ctx context.Context) error { _, err := l.Read(ctx, at); return err },
		"Claim":   func(ctx context.Context) error { _, err := l.Claim(ctx, at, time.Second); return err },
		"Compact": func(ctx context.Context) error { return l.Compact(ctx, at, []byte("never")) },
		"Keep":    func(ctx context.Context) error { return l.Keep(ctx, at, time.Hour) },
		"Post":    func(ctx context.Context) error { _, err := l.Post(ctx, 1, at); return err },
		"Revive":  func(ctx context.Context) error { _, err := l.Revive(ctx, at, []byte("never")); return err },
		"Publish": func(ctx context.Context) error { return l.Publish(ctx, 1) },
		"Watch":   func(ctx context.Context) error { _, err := l.Watch(ctx, 1); return err },
	}
}

func closed(s *suite) {
	e := s.connect()
	l := e.Log(s.name)
	at := s.load(l).At
	woken, err := l.Watch(s.ctx, 1)
	if err != nil {
		s.Fatal(err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			s.Fatal(err)
		}
	}
	for what, do := range calls(l, at) {
		s.wants(do(s.ctx), sharedlog.ErrClosed, what)
	}
	for range woken { //nolint:revive // until it is closed
	}
}
