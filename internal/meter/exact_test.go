package meter

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// compare tells whether a/b is below (-1), at (0) or above (1) c/d.
func compare(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(d))
	h2, l2 := bits.Mul64(uint64(c), uint64(b))
	switch {
	case h1 < h2 || h1 == h2 && l1 < l2:
		return -1
	case h1 == h2 && l1 == l2:
		return 0
	}
	return 1
}

// A rate is the stated one where it can be counted exactly. Else it is slower, by at most half a percent.
func TestRateIsNeverFasterThanStated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 1<<40).Draw(t, "size")
		window := rapid.Int64Range(1_000_000, 30*24*3600*1_000_000).Draw(t, "window")
		capacity := rapid.Int64Range(1, 1<<40).Draw(t, "capacity")
		n, w, err := Rate(size, window, capacity)
		if err != nil {
			return
		}
		if capacity > maxExact/w || n > maxExact/w {
			t.Fatalf("%d per %d with a capacity of %d is too large to count", n, w, capacity)
		}
		if compare(n, w, size, window) > 0 || compare(200*n, w, 199*size, window) < 0 {
			t.Fatalf("%d per %d is counted as %d per %d", size, window, n, w)
		}
		a, b := size, window
		for b != 0 {
			a, b = b, a%b
		}
		if c := window / a; capacity <= maxExact/c && size/a <= maxExact/c && (n != size/a || w != c) {
			t.Fatalf("%d per %d could be counted exactly, and is counted as %d per %d", size, window, n, w)
		}
	})
}
