package estimate

import "testing"

// A waiting call hears once that its estimate fell to half, also if that happened before it asked, and not when it
// forgot. A model with enough responses is not watched.
func TestAWaitingCallHearsOfALowerEstimate(t *testing.T) {
	var b Book
	heard := map[string]int{}
	watch := func(name, model string, n int64) *Watch {
		return b.Watch("a", model, n, func() { heard[name]++ })
	}
	watch("first", "m", 900)
	b.Forget(watch("gone", "m", 900))
	watch("low", "m", 100)
	b.Learn("other", "m", 10, 3, 60)
	b.Learn("other", "m", 10, 3, 60)
	watch("behind", "m", 900)
	if heard["first"] != 1 || heard["gone"] != 0 || heard["low"] != 0 || heard["behind"] != 1 || len(b.watches) != 1 {
		t.Errorf("%v, %d watches", heard, len(b.watches))
	}
	for range soon {
		b.Learn("a", "m", 10, 3, 60)
	}
	if watch("late", "m", 900) != nil {
		t.Error("a known model is watched")
	}
}

// The estimate of a model without output, such as one for embeddings, cannot fall.
func TestNoOutputIsNotWatched(t *testing.T) {
	var b Book
	b.Learn("a", "m", 10, 3, 0)
	if n := b.Output("a", "m", 0); n != 0 || b.Watch("a", "m", n, func() { t.Error("it fell") }) != nil {
		t.Errorf("an estimate of %d is watched", n)
	}
}
