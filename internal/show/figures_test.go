package show

import (
	"testing"
	"time"
)

// Singular counts and past moments read naturally.
func TestSentencesOfFigures(t *testing.T) {
	now := time.Now()
	past, soon := now.Add(-time.Second), now.Add(30*time.Second)
	for _, c := range [][2]string{
		{"gone " + In(&past, now), "gone now"}, {"gone " + In(&soon, now), "gone in 30s"}, {In(nil, now), ""},
		{For(&soon, now) + " left", "30s left"}, {For(&past, now) + " left", "0s left"},
		{Some(1, "caller", "callers"), "1 caller"}, {Some(0, "caller", "callers"), "0 callers"}, {Some(2, "caller", "callers"), "2 callers"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
