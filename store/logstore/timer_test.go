package logstore

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

func TestPreciseTimer(t *testing.T) {
	t.Parallel()
	fired := make(chan time.Time)
	timer := preciseAfterFunc(time.Hour, func() { fired <- time.Now() })
	defer timer.Stop()
	for _, d := range []time.Duration{2 * time.Millisecond, 0, -time.Second} {
		began := time.Now()
		timer.Reset(d)
		if at := <-fired; at.Sub(began) < d {
			t.Errorf("set for %v, fired after %v", d, at.Sub(began))
		}
	}
}

// An entry is made as much earlier as entries take at least, less a quarter, and never before others would do so.
func TestHeadStart(t *testing.T) {
	t.Parallel()
	var s headStart
	late := func(d time.Duration, times int) {
		for range times {
			s.planned = 1000
			s.took(store.Time(1000).Add(d))
		}
	}
	for _, step := range []struct {
		late        time.Duration
		times       int
		least, most time.Duration
	}{
		{400 * time.Microsecond, 200, 290 * time.Microsecond, 300 * time.Microsecond},
		{80 * time.Microsecond, 1, 60 * time.Microsecond, 60 * time.Microsecond},
		{time.Hour, 1000, mostAhead / 2, mostAhead},
		{-time.Millisecond, 1, 0, 0},
	} {
		late(step.late, step.times)
		if got := s.time(); got < step.least || got > step.most {
			t.Errorf("late by %v: %v ahead", step.late, got)
		}
	}
	s.took(1 << 40) // of an entry that was made for something else
	if s.time() != 0 {
		t.Errorf("%v ahead", s.time())
	}
}
