package main

import (
	"testing"
	"time"
)

// A report that was heard long before awaitReady reads it does not make the clocks seem off. Building another worker
// takes a minute on a busy machine.
func TestStampsAreJudgedWhenTheyAreHeard(t *testing.T) {
	const second = stamp(time.Second)
	ready := func(said, heard stamp) error {
		w := &process{began: 10 * second, ready: make(chan arrival, 1)}
		w.ready <- arrival{said, heard}
		return w.awaitReady(t.Context())
	}
	for name, c := range map[string]struct {
		said, heard stamp
		right       bool
	}{
		"at once":              {10 * second, 10 * second, true},
		"slow to start":        {70 * second, 70 * second, true},
		"slow to be heard":     {11 * second, 90 * second, true},
		"ahead":                {12 * second, 11 * second, false},
		"behind":               {9 * second, 11 * second, false},
		"days ahead":           {12*second + stamp(ahead), 11 * second, false},
		"days taken off twice": {12*second - stamp(ahead), 11 * second, false},
	} {
		if err := ready(c.said, c.heard); (err == nil) != c.right {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunDelay(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "12": 0, "x y z": 0, "120000 3500 9\n": 3500} {
		if got := parseRunDelay(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
