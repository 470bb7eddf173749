package scaler

import "time"

// Rules for how the number of replicas may change. docs/keda.md promises them.
const (
	// Quiet is the shortest time at zero, unless a pause was the reason: a light at its threshold comes and goes, and
	// pods should not.
	Quiet = 15 * time.Second
	// Settle is how long a change in the slow direction must last before it counts.
	Settle = 30 * time.Second
	// RampStep is how long the number after a stop stays the same before it may double, starting at 1. It is the
	// interval at which the cluster reads it anyway.
	RampStep = 15 * time.Second
	// RampSteps is the number of steps after which the ramp ends.
	RampSteps = 10
)

// State is the memory of a trigger. The zero State has seen nothing.
type State struct {
	Seen    time.Time // time of the last call of Next
	Level   int64     // the smoothed number, without the ramp
	Since   time.Time // since when the demand differs in the slow direction; zero if it does not
	Off     string    // why it is at zero, as in Demand; empty if it is not
	OffAt   time.Time
	Resumed time.Time // when the ramp began; zero if there is none
}

// Next smooths a demand: it returns the new state and the number of replicas.
//
// The number goes to zero at once. It comes back at once if a pause was the reason, otherwise after Quiet, and then
// ramps up. Between, with Queue it rises at once and falls after it has been lower for Settle. In the other modes it
// falls at once and rises after Settle, because there too many replicas do harm. It is a pure function.
func (s State) Next(d Demand, m Mode, now time.Time) (State, int64) {
	if now.Before(s.Seen) {
		now = s.Seen // a clock that was set back must not start a ramp early
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
			s.Resumed = now // the pause ended before the first call
		}
	default:
		s.settle(d.Replicas, m, now)
	}
	if d.Probing {
		s.Resumed = now
	}
	return s, s.ramped(now)
}

// settle moves the level, at once or after Settle.
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

// ramped returns the level, limited by the ramp.
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
