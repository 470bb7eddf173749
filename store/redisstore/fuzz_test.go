package redisstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// Whatever others wrote to the keys, what is read of them is in the bounds, or an error.
func FuzzReadKeys(f *testing.F) {
	f.Add("1|1700000000000000|4711|1x2y3z|100|1 2 3 4")
	f.Add("2|1|0||||")
	f.Add("||||||")
	f.Add("1|0|-1|x|99999999999|1 2 3")
	f.Add("7|1700000000000001 5 100 200 300|8|x|9|1 2 3 4 5")
	f.Fuzz(func(t *testing.T, text string) {
		fields := strings.Split(text, "|")
		survivors, err := readPosts(fields, 1_700_000_000_000_000)
		if err == nil && (len(survivors) > sharedlog.MaxPosts || len(survivors) > len(fields)) || err != nil && !errors.Is(err, sharedlog.ErrDamaged) {
			t.Errorf("%d survivors of %d fields, %v", len(survivors), len(fields), err)
		}
		if !slices.IsSortedFunc(survivors, func(a, b sharedlog.Survivor) int { return b.At.Compare(a.At) }) {
			t.Errorf("%v is not in order", survivors)
		}
		h, err := readHead(append(fields, make([]string, 8)...)[:8])
		switch {
		case err != nil:
			if h != (head{}) || !errors.Is(err, sharedlog.ErrDamaged) && !errors.Is(err, sharedlog.ErrFormat) {
				t.Errorf("%+v, %v", h, err)
			}
		case h.incarnation == 0:
			if h != (head{}) {
				t.Errorf("no log, but %+v", h)
			}
		default:
			at := sharedlog.Position{Incarnation: h.incarnation, Segment: h.segment, Offset: h.segment}
			if again, err := sharedlog.ParsePosition(at.String()); err != nil || again != at || h.size > sharedlog.MaxSnapshot || h.size < 0 {
				t.Errorf("%+v: %v", h, err)
			}
		}
	})
}
