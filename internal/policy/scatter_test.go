package policy

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestScatterHalvesTheWidestGap(t *testing.T) {
	t.Parallel()
	var s Scatter
	for k, want := range []int64{0, 32, 16, 48, 8, 40, 24, 56, 4} {
		if got := s.Next(noon, 64*sec) - noon; got != want*sec {
			t.Errorf("launch %d starts after %d us, want %d s", k, got, want)
		}
	}
	if s.Next(noon, 0) != noon || s.K != 9 {
		t.Error("a window of 0 does not mean now")
	}
	if s.Next(noon+64*sec, 64*sec) != noon+64*sec || s.K != 1 {
		t.Error("no new window after the old one")
	}
}

func TestScatterAPlaceInThePastComesAWindowLater(t *testing.T) {
	t.Parallel()
	var s Scatter
	s.Next(noon, 64*sec)
	for _, want := range []int64{96, 80, 112, 72, 104, 88, 120, 68} { // 32, 16, 48, 8, ... have been
		if got := s.Next(noon+60*sec, 64*sec) - noon; got != want*sec {
			t.Errorf("it starts after %d us, want %d s", got, want)
		}
	}
	if s.Until != noon+120*sec {
		t.Errorf("over after %d us", s.Until-noon)
	}
}

func TestScatterMixesWindows(t *testing.T) {
	t.Parallel()
	var s Scatter
	s.Next(noon, 10*sec)
	for _, c := range []struct{ t, window, want int64 }{
		{1, 3600, 1800}, // k = 1
		{2, 10, 2},      // k = 2: 2.5
		{100, 10, 107},  // k = 3: 7.5, ten windows later
		{101, 3600, 450},
	} {
		if got := s.Next(noon+c.t*sec, c.window*sec) - noon; got/sec != c.want {
			t.Errorf("asked at %d s for %d s: starts after %d us, want %d s", c.t, c.window, got, c.want)
		}
	}
	if s.Until != noon+3600*sec {
		t.Errorf("over after %d us", s.Until-noon)
	}
}

// For any launches at any times, each starts within its own window from its request, and the result is reproducible.
func TestScatterBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s, again Scatter
		now := noon
		length := rapid.SampledFrom([]int64{1, 7, 1000, 5 * sec, 300 * sec, 3600 * sec, MaxScatter, MaxScatter + 1})
		for range rapid.IntRange(1, 100).Draw(t, "launches") {
			w := length.Draw(t, "window")
			now += rapid.Int64Range(0, w).Draw(t, "later") / 4
			at := s.Next(now, w)
			if at < now || at >= now+w {
				t.Fatalf("starts %d us after it was asked for, of %d", at-now, w)
			}
			if at > s.Until || now >= s.Until {
				t.Fatal("the window is over before its launches have begun")
			}
			if again.Next(now, w) != at || again != s {
				t.Fatal("not the same again")
			}
		}
	})
}

// A crowd, at the opening or in an open window: no two launches start together. Each of 1, 2, 4, ... equal parts of
// the window gets as many as any other, or one more.
func TestScatterIsEven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Scatter
		window := rapid.Int64Range(scatterEnd, 3600*sec).Draw(t, "window")
		early := rapid.IntRange(0, 40).Draw(t, "early")
		for range early {
			s.Next(noon, window)
		}
		now := noon
		if early > 0 {
			now += rapid.Int64Range(0, window-1).Draw(t, "later")
		}
		n := rapid.IntRange(1, 300).Draw(t, "crowd")
		var places []int64 // in the window, from its start
		for range n {
			places = append(places, (s.Next(now, window)-noon)%window)
		}
		for p := range 8 {
			parts := make([]int, 1<<p)
			for _, at := range places {
				parts[(at<<p+1<<p-1)/window]++ // a place is rounded down by less than one
			}
			least, most := n>>p, (n+1<<p-1)>>p
			if slices.Min(parts) < least || slices.Max(parts) > most {
				t.Fatalf("%d launches in %d parts: %v", n, 1<<p, parts)
			}
		}
		apart := window >> bits.Len(uint(early+n-1)) // n - 1 is the last number
		slices.Sort(places)
		for i := range places[1:] {
			if gap := places[i+1] - places[i]; gap < apart {
				t.Fatalf("two of %d are %d us apart, want %d", n, gap, apart)
			}
		}
	})
}

func TestScatterWraps(t *testing.T) {
	t.Parallel()
	var s Scatter
	for range scatterEnd {
		s.Next(noon, MaxScatter)
	}
	if s.K != 0 {
		t.Fatalf("the next number is %d", s.K)
	}
	if at := s.Next(noon+1, MaxScatter); at != noon+MaxScatter {
		t.Errorf("starts %d us after the opening", at-noon)
	}
}
