package policy

import (
	"testing"

	"pgregory.net/rapid"
)

func TestLineAsInTheDocumentation(t *testing.T) {
	// A fifth of a thousand an hour.
	l := Floor{Amount: 200, Over: 3600e6, Until: noon + 3600e6}
	for at, want := range map[int64]int64{
		noon - 1: 200, noon: 200, noon + 1800e6: 100, noon + 3600e6: 0, noon + 7200e6: 0,
		noon + 9e6: 200, noon + 9e6 + 1: 199, // 199.5 are 200
		noon + 3591e6: 1, noon + 3591e6 + 1: 0,
	} {
		if got := l.At(at); got != want {
			t.Errorf("%d after noon: %d, want %d", at-noon, got, want)
		}
	}
	for left, want := range map[int64]int64{200: 0, 1000: 0, 199: 9e6 + 1, 100: 1791e6 + 1, 0: 3591e6 + 1} {
		if got := l.When(noon, left); got != noon+want {
			t.Errorf("%d may be left %d after noon, want %d", left, got-noon, want)
		}
	}
	if got := l.When(noon+3000e6, 199); got != noon+3000e6 {
		t.Errorf("what is allowed already is allowed at %d", got-noon)
	}
	if got := l.When(noon, -1); got != Never {
		t.Errorf("nothing allows less than nothing: %d", got)
	}
	static := Floor{Amount: 200}
	if static.At(noon) != 200 || static.When(noon, 200) != noon || static.When(noon, 199) != Never {
		t.Error("a static line sinks")
	}
}

// When returns the first time at which At allows it.
func TestLineWhenIsTheFirstMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Floor{
			Amount: rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1_000_000), rapid.Int64Range(0, 1<<40)).Draw(t, "amount"),
			Over:   rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(1, 1000), rapid.Int64Range(1, 100*86400e6)).Draw(t, "over"),
			Until:  noon,
		}
		at := noon - rapid.Int64Range(-10, 2*l.Over+10).Draw(t, "before")
		left := rapid.Int64Range(-2, l.Amount+2).Draw(t, "left")
		when := l.When(at, left)
		if when < at {
			t.Fatalf("%+v: from %d on it is allowed at %d", l, at, when)
		}
		if when == Never {
			if l.Over > 0 && left >= 0 || l.At(at) <= left {
				t.Fatalf("%+v: never, though it sinks", l)
			}
			return
		}
		if l.At(when) > left {
			t.Fatalf("%+v: %d has to be left at %d, which allows %d", l, l.At(when), when, left)
		}
		if when > at && l.At(when-1) <= left {
			t.Fatalf("%+v: a microsecond before %d it is %d, which allows %d", l, when, l.At(when-1), left)
		}
		if when > max(l.Until, at) {
			t.Fatalf("%+v: %d after its end", l, when-l.Until)
		}
	})
}

func TestLineNeverRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Floor{Amount: rapid.Int64Range(0, 1<<40).Draw(t, "amount"), Over: rapid.Int64Range(0, 100*86400e6).Draw(t, "over"), Until: noon}
		a := noon - rapid.Int64Range(-10, 2*l.Over+10).Draw(t, "a")
		b := a + rapid.Int64Range(0, l.Over+10).Draw(t, "b")
		if from, to := l.At(a), l.At(b); from < to || from > l.Amount || to < 0 {
			t.Fatalf("%+v: %d at %d, then %d", l, from, a, to)
		}
	})
}

func TestPartRoundsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, part := rapid.Int64Range(0, 1<<40).Draw(t, "amount"), rapid.Int64Range(0, 1000).Draw(t, "part")
		if got, want := Part(amount, part), amount*part/1000; got != want {
			t.Fatalf("%d thousandths of %d: %d, want %d", part, amount, got, want)
		}
	})
}
