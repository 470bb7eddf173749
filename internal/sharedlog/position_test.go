package sharedlog_test

import (
	"testing"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

func TestPositionsComeBackAsText(t *testing.T) {
	t.Parallel()
	for _, want := range []sharedlog.Position{{}, start, {Incarnation: 1<<64 - 1, Segment: 1 << 62, Offset: 1 << 62, Stamp: 1<<56 - 1}} {
		if got, err := sharedlog.ParsePosition(want.String()); err != nil || got != want {
			t.Errorf("%q: %v, %v", want.String(), got, err)
		}
	}
	for _, bad := range []string{"", "1 2 3", "1 2 3 4 5", "-1 0 0 0", "1 -1 0 0", "1 5 4 0", "1 0 0 x", "1  0 0", "1 0 9223372036854775807 0", "1 0 0 72057594037927936"} {
		if p, err := sharedlog.ParsePosition(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add("")
	f.Add(start.String())
	f.Add("1 5 4 0")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := sharedlog.ParsePosition(s)
		if err != nil {
			return
		}
		if q, err := sharedlog.ParsePosition(p.String()); err != nil || q != p || p.Index() < sharedlog.HeaderSize {
			t.Errorf("%q: %v, then %v, %v", s, p, q, err)
		}
	})
}

func TestWhoKnowsMostComesFirst(t *testing.T) {
	t.Parallel()
	at := func(incarnation uint64, segment, offset int64) sharedlog.Position {
		return sharedlog.Position{Incarnation: incarnation, Segment: segment, Offset: offset}
	}
	all := []sharedlog.Survivor{{Process: 5, At: at(1, 0, 900)}, {Process: 4, At: at(2, 0, 100)}, {Process: 3, At: at(2, 100, 100)}, {Process: 2, At: at(2, 0, 99)}}
	sharedlog.SortSurvivors(all)
	for i, want := range []uint64{3, 4, 2, 5} {
		if all[i].Process != want {
			t.Errorf("place %d: %v", i, all)
		}
	}
}
