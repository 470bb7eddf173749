// Package pause decides when a pool is held as a whole: the pause after a refusal
// and how it escalates, the one probe that goes out when it ends, and the ramp that
// follows. Pure decisions: time is an argument.
//
// A refusal can ask for a pause that is longer than the backoff's cap. The gate believes
// it, and checks it: one request for everybody goes out at the cap's interval. Its success ends
// the pause. A person's pause and a quota that is known to be gone are not checked.
package pause

import "math/bits"

// Phase is what a gate does at the moment.
type Phase uint8

// The phases, in the order in which they follow each other.
const (
	Open    Phase = iota
	Paused        // nobody goes until Until
	Probing       // one goes, the others wait for what becomes of it
	Ramping       // a number that doubles every half second goes
)

func (p Phase) String() string {
	return [...]string{"open", "paused", "probing", "ramping"}[p]
}

// Times of the state machine, in microseconds.
const (
	second     = 1_000_000
	silence    = 2 * second       // a probe that got no refusal by then has passed
	rampStep   = second / 2       // the ramp doubles this often
	rampSteps  = 20               // then a million a step is no bound any more
	maxBlanks  = 3                // probes in a row that proved nothing
	maxHint    = 24 * 3600e6      // longest pause that a hint can cause
	maxOutage  = 31 * 24 * 3600e6 // longest pause for a quota that is gone; a longer hint is a mistake
	baseOfHint = second           // a hint counts for at least this, doubled like the pause
	stragglers = 600 * second     // how long answers from before a pause may come
	abandoned  = 3600 * second    // nobody has come back for so long
)

// Backoff is the formula of pauses: Start, times Factor for each consecutive
// refusal, at most Cap.
type Backoff struct{ Start, Factor, Cap int64 }

// after returns the pause after the n-th consecutive refusal, n from 1.
func (b Backoff) after(n int64) int64 {
	d := b.Start
	for ; n > 1 && d < b.Cap; n-- {
		d *= max(b.Factor, 1)
		if b.Factor <= 1 {
			break
		}
	}
	return min(d, b.Cap)
}

// Gate is the state of one scope of a pool. A flat record. The zero Gate is
// open.
type State struct {
	Phase     Phase
	Until     int64 // end of the pause
	Since     int64 // the latest pause began
	Throttles int64 // consecutive refusals
	Overloads int64
	probe     int32 // ticket of the probe that is out
	blanks    int32 // probes in a row that proved nothing
	probeAt   int64
	nextProbe int64 // no probe goes before; while paused, none at all if the pause ends first
	every     int64 // time between probes of a long pause
	rampFrom  int64 // 0: from the first grant on
	sent      int64 // grants since rampFrom
}

// Idle reports that the gate is as good as a new one: answers to what was granted
// before its pause have come by now.
func (g *State) Idle(t int64) bool {
	return g.Phase == Open && g.Throttles == 0 && g.Overloads == 0 && t-max(g.Since, g.Until) >= stragglers
}

// Abandoned reports that the pause was over long ago and nothing that came since has
// settled the matter: no success, no refusal, and no probe is out. Allow has been asked
// for t.
func (g *State) Abandoned(t int64) bool {
	return g.Phase != Paused && g.probe == 0 && t-max(g.Since, g.Until) >= abandoned
}

// Verdict is what Allow says.
type Verdict struct {
	OK    bool
	Phase Phase // that holds
	At    int64 // when the phase is over
	Next  int64 // when to ask again, at or before At
}

// until is a verdict that holds until at.
func until(phase Phase, at int64) Verdict { return Verdict{Phase: phase, At: at, Next: at} }

// pass brings the gate to t: what time alone has done by then does not depend on who looked
// in between.
func (g *State) pass(t int64) {
	if g.Phase == Paused && t >= g.Until {
		g.Phase, g.probe, g.blanks, g.nextProbe = Probing, 0, 0, 0
	}
	if g.Phase == Probing && g.probe != 0 && t >= g.probeAt+silence {
		g.ramp(g.probeAt + silence)
	}
	if g.Phase == Ramping && g.rampFrom != 0 && (t-g.rampFrom)/rampStep >= rampSteps {
		g.Phase = Open
	}
}

// Allow reports whether a request may go at t as far as this gate is concerned.
func (g *State) Allow(t int64) Verdict {
	g.pass(t)
	switch g.Phase {
	case Paused:
		return Verdict{OK: t >= g.nextProbe, Phase: Paused, At: g.Until, Next: min(g.nextProbe, g.Until)}
	case Probing:
		if g.probe != 0 {
			return until(Probing, g.probeAt+silence)
		}
		v := until(Probing, g.nextProbe)
		v.OK = t >= g.nextProbe
		return v
	case Ramping:
		if g.rampFrom == 0 {
			return Verdict{OK: true, Phase: Ramping}
		}
		step := (t - g.rampFrom) / rampStep
		v := until(Ramping, g.rampFrom+(step+1)*rampStep)
		v.OK = g.sent < 1<<step
		return v
	}
	return Verdict{OK: true}
}

// NextProbe is when a probe may go before the pause is over; 0 if none may.
func (g *State) NextProbe() int64 {
	if g.Phase != Paused || g.nextProbe >= g.Until {
		return 0
	}
	return g.nextProbe
}

// Behind is about how long after the first one goes that goes behind n others when a gate opens:
// the ramp doubles.
func Behind(n int64) int64 { return rampStep * int64(bits.Len64(uint64(max(n, 0)))) }

// Sent notes a grant that Allow let through.
func (g *State) Sent(t int64, ticket int32) {
	switch g.Phase {
	case Paused:
		g.probe, g.probeAt, g.nextProbe = ticket, t, t+max(g.every, second)
	case Probing:
		g.probe, g.probeAt = ticket, t
	case Ramping:
		if g.rampFrom == 0 {
			g.rampFrom = t
		}
		g.sent++
	}
}

// LimitsBind ends a ramp: limits hold the callers back now.
func (g *State) LimitsBind() {
	if g.Phase == Ramping {
		g.Phase = Open
	}
}

// StartRamp lets a pool whose limits nobody knows begin carefully.
func (g *State) StartRamp() { g.Phase, g.rampFrom, g.sent = Ramping, 0, 0 }

// LimitsKnown ends the ramp that StartRamp began: an answer has stated limits. A ramp after a pause goes on, because the
// provider has refused requests since.
func (g *State) LimitsKnown() {
	if g.Phase == Ramping && g.Since == 0 {
		g.Phase = Open
	}
}

func (g *State) ramp(t int64) {
	g.Phase, g.rampFrom, g.sent, g.probe = Ramping, t, 0, 0
}

// Throttled takes in a refusal of a request granted at granted; hint is the
// provider's own, 0 if it gave none. It reports whether the refusal counts:
// only those granted after the latest pause began do, so a burst counts once.
func (g *State) Throttled(t, granted, hint int64, b Backoff) bool {
	g.pass(t)
	hint = plausible(hint)
	if granted <= g.Since {
		if g.Phase == Paused && hint > 0 {
			g.prolong(t+min(hint, maxHint), b.Cap)
		}
		return false
	}
	g.Throttles++
	end := t + pauseFor(hint, b, g.Throttles)
	if hint == 0 { // a probe of a long pause learned nothing new of its end
		end = max(end, g.end(t))
	}
	g.pause(t, end, min(end, t+b.Cap))
	g.every = b.Cap
	return true
}

// prolong moves the end of a pause. Its probes stay as they are due from when it began: who
// repeats a hint must not put them off for ever.
func (g *State) prolong(end, every int64) {
	if end > g.Until {
		g.Until, g.every = end, every
		g.nextProbe = max(g.nextProbe, min(end, g.Since+every))
	}
}

// Overloaded is Throttled for a provider that is over its capacity as a whole: it
// has a scale of its own. Probes of a long pause go as often as after a refusal. An
// overload that a probe meets says nothing of the pause that it probes.
func (g *State) Overloaded(t, granted, hint int64, b Backoff, every int64) bool {
	g.pass(t)
	if granted <= g.Since {
		return false
	}
	g.Overloads++
	end := max(t+pauseFor(plausible(hint), b, g.Overloads), g.end(t))
	g.pause(t, end, min(end, t+every))
	g.every = every
	return true
}

// plausible drops a hint that cannot be meant: the plain formula counts then.
func plausible(hint int64) int64 {
	if hint > maxOutage {
		return 0
	}
	return hint
}

func pauseFor(hint int64, b Backoff, n int64) int64 {
	if hint <= 0 {
		return b.after(n)
	}
	least := Backoff{Start: baseOfHint, Factor: 2, Cap: maxHint}.after(n)
	return min(max(hint, least), maxHint)
}

// Exhausted pauses until a quota comes back. No probe goes before. It reports false for a
// wait that cannot be meant, and does nothing then.
func (g *State) Exhausted(t, granted, wait int64) bool {
	if plausible(wait) <= 0 {
		return false
	}
	g.pass(t)
	if granted > g.Since || g.Phase == Paused {
		g.hold(t, wait)
	}
	return true
}

// Pause holds everyone by hand, for at least as long as they are held already. No probe goes
// before.
func (g *State) Pause(t, wait int64) {
	g.pass(t)
	g.hold(t, min(wait, maxOutage))
}

// hold pauses for a time that is certain. What is left of a longer pause stays, and is probed as before.
func (g *State) hold(t, wait int64) {
	quiet := t + wait
	if g.Phase == Paused {
		quiet = max(quiet, g.nextProbe)
	}
	g.pause(t, max(t+wait, g.end(t)), quiet)
}

// end is when the pause ends that is in force at t, else t.
func (g *State) end(t int64) int64 {
	if g.Phase == Paused {
		return g.Until
	}
	return t
}

// pause holds everybody from t until end. From quiet on, probes go before that.
func (g *State) pause(t, end, quiet int64) {
	g.Phase, g.Since, g.Until, g.nextProbe, g.probe = Paused, t, end, quiet, 0
}

// Resume ends a pause by hand, through a ramp.
func (g *State) Resume(t int64) {
	g.pass(t)
	if g.Phase == Paused || g.Phase == Probing {
		g.Until = min(g.Until, t)
		g.ramp(t)
	}
	g.Throttles, g.Overloads = 0, 0
}

// Succeeded takes in a success of a request granted at granted. One from before the
// latest pause proves nothing.
func (g *State) Succeeded(t, granted int64, ticket int32) {
	g.pass(t)
	if granted <= g.Since {
		return
	}
	g.Throttles, g.Overloads = 0, 0
	if (g.Phase == Probing || g.Phase == Paused) && g.probe == ticket {
		g.Until = min(g.Until, t)
		g.ramp(t)
	}
}

// Lost takes in that a ticket ended with no answer. If it was the probe it proved
// nothing: the next may go in two seconds, or now if it was never sent. While a long pause lasts
// the next one goes at its time.
func (g *State) Lost(t int64, ticket int32, unsent bool) {
	g.pass(t)
	if g.Phase != Probing && g.Phase != Paused || g.probe != ticket {
		return
	}
	g.probe = 0
	if g.Phase == Paused {
		if unsent {
			g.nextProbe = t
		}
		return
	}
	if unsent {
		return
	}
	g.nextProbe = t + silence
	if g.blanks++; g.blanks >= maxBlanks {
		g.ramp(t)
	}
}
