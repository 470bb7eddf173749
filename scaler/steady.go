package scaler

import "time"

// How the number of replicas may move. docs/keda.md promises these.
const (
	// Quiet is how long it stays at zero at least, unless a pause was why: a light at its threshold comes and
	// goes, and pods should not.
	Quiet = 15 * time.Second
	// Settle is how long a change in the careful direction must have lasted before it counts.
	Settle = 30 * time.Second
	// RampStep is how long the number after a stop stays the same before it may double, from 1 on. It is the
	// interval at which the cluster looks at it anyway.
	RampStep = 15 * time.Second
	// RampSteps is after how many of them nothing is held back any more.
	RampSteps = 10
)

// State is what is remembered of a trigger. The zero State has seen nothing.
type State struct {
	Seen    time.Time // when it was last looked at
	Level   int64     // the steady number, without the ramp
	Since   time.Time // since when it should move in the careful direction; zero: it should not
	Off     string    // why it is at zero, as in Demand; empty: it is not
	OffAt   time.Time
	Resumed time.Time // when the ramp began; zero: there is none
}

// Next makes a demand steady: it returns the state from now on and the number of replicas.
//
// To zero it goes at once, and back at once if a pause was why, else after Quiet; then as a ramp. In between,
// with Queue it rises at once and falls when it has been lower for Settle; in other modes it is the other way
// round, because there too many replicas are the mistake that hurts. It is a pure function.
func (s State) Next(d Demand, m Mode, now time.Time) (State, int64) {
	if now.Before(s.Seen) {
		now = s.Seen // a clock set back must not make a ramp start before its time
	}
	first := s.Seen.IsZero()
	s.Seen = now
	if d.Off != "" {
		if s.Off == "" {
			s.OffAt = now
		}
		s.Off, s.Level, s.Since, s.Resumed = d.Off, 0, time.Time{}, time.Time{}
		return s, 0
	}
	switch {
	case s.Off != "":
		if s.Off != Paused && now.Sub(s.OffAt) < Quiet {
			return s, 0
		}
		s = State{Seen: now, Level: d.Replicas, Resumed: now}
	case first:
		s.Level = d.Replicas
		if d.Ramping {
			s.Resumed = now // the pause ended before anybody looked
		}
	default:
		s.settle(d.Replicas, m, now)
	}
	if d.Probing {
		s.Resumed = now
	}
	return s, s.ramped(now)
}

// settle moves the level, unless it has to wait and see.
func (s *State) settle(want int64, m Mode, now time.Time) {
	prompt := want < s.Level
	if m == Queue {
		prompt = want > s.Level
	}
	switch {
	case want == s.Level:
		s.Since = time.Time{}
	case !prompt && s.Since.IsZero():
		s.Since = now
	case prompt || now.Sub(s.Since) >= Settle:
		s.Level, s.Since = want, time.Time{}
	}
}

// ramped is the level as far as the ramp lets it.
func (s *State) ramped(now time.Time) int64 {
	if s.Resumed.IsZero() {
		return s.Level
	}
	steps := now.Sub(s.Resumed) / RampStep
	if steps >= RampSteps {
		s.Resumed = time.Time{}
		return s.Level
	}
	return min(s.Level, 1<<steps)
}
