package sluicehttp

import (
	"testing"
	"time"
)

func TestABurstOfAnswersIsLookedAt(t *testing.T) {
	var l looks
	now := time.Now()
	count := func(answers int, apart time.Duration) (n int) {
		for range answers {
			if l.due("model", now) {
				n++
			}
			now = now.Add(apart)
		}
		return n
	}
	if n := count(100, 0); n != lookBurst {
		t.Errorf("%d of 100 answers that came together were looked at, want %d", n, lookBurst)
	}
	if n := count(10_000, time.Millisecond); n < 499 || n > 502 {
		t.Errorf("%d of 10,000 answers in ten seconds were looked at, want 500", n)
	}
	now = now.Add(time.Minute)
	if n := count(40, 0); n != 40 {
		t.Errorf("%d of 40 answers after a quiet minute were looked at", n)
	}
	now = now.Add(-time.Hour) // the clock is set back
	if n := count(1, 0); n != 1 {
		t.Error("after the clock was set back no answer is looked at")
	}
}
