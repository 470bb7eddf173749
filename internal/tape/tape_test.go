package tape

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Name() string        { return "recorder" }
func (r *recorder) Fatalf(format string, args ...any) {
	r.text = fmt.Sprintf(format, args...)
	panic(r)
}

func failing(t *testing.T, trace func(*Tape)) (text string) {
	t.Helper()
	r := &recorder{}
	defer func() {
		if recover() != r {
			t.Fatal("the trace did not fail")
		}
		text = r.text
	}()
	Check(r, 1000, trace)
	return ""
}

func TestCheckShowsASmallTrace(t *testing.T) {
	text := failing(t, func(p *Tape) {
		sum := int64(0)
		p.Steps(0, 40, func() {
			if sum > 100 {
				p.Fatalf("the sum is %d", sum)
			}
		}, []Step{
			{"add", 3, func() { sum += p.Int("more", 1, 60) }},
			{"rest", 1, func() {}},
		})
	})
	if !strings.Contains(text, "the sum is 101") || strings.Contains(text, "rest") {
		t.Error(text)
	}
}

func TestSameSeedMakesTheSameTrace(t *testing.T) {
	play := func() (all []int64) {
		Check(t, 5, func(p *Tape) {
			all = append(all, p.Int("a", -3, 1<<40), int64(p.Below(7)), Of(p, "of", int64(1), 2, 3))
			if p.Bool("more") {
				all = append(all, p.Int("b", 0, 1<<62))
			}
		})
		return all
	}
	if a, b := play(), play(); !slices.Equal(a, b) {
		t.Errorf("%v\n%v", a, b)
	}
}

func TestNumbersStayInTheirRangeAndReachItsEnds(t *testing.T) {
	seen := map[int64]bool{}
	Check(t, 500, func(p *Tape) {
		v := p.Int("v", -2, 3)
		if v < -2 || v > 3 {
			t.Fatal(v)
		}
		seen[v] = true
	})
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}
