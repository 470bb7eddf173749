// Package gate decides when a pool is held as a whole: the pause after a refusal
// and how it escalates, the one probe that goes out when it ends, and the ramp that
// follows. Pure decisions: time is an argument.
package gate

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
	maxOutage  = 31 * 24 * 3600e6 // longest pause for a quota that is gone
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
type Gate struct {
	Phase     Phase
	Until     int64 // end of the pause
	Since     int64 // the latest pause began
	Throttles int64 // consecutive refusals
	Overloads int64
	probe     int32 // ticket of the probe that is out
	blanks    int32 // probes in a row that proved nothing
	probeAt   int64
	nextProbe int64
	rampFrom  int64 // 0: from the first grant on
	sent      int64 // grants since rampFrom
}

// Idle reports that the gate is as good as a new one: answers to what was granted
// before its pause have come by now.
func (g *Gate) Idle(t int64) bool {
	return g.Phase == Open && g.Throttles == 0 && g.Overloads == 0 && t-max(g.Since, g.Until) >= stragglers
}

// Abandoned reports that the pause was over long ago and nothing that came since has
// settled the matter: no success, no refusal, and no probe is out. Allow has been asked
// for t.
func (g *Gate) Abandoned(t int64) bool {
	return g.Phase != Paused && g.probe == 0 && t-max(g.Since, g.Until) >= abandoned
}

// Verdict is what Allow says.
type Verdict struct {
	OK    bool
	Phase Phase // that holds
	At    int64 // when to ask again
}

// pass brings the gate to t: what time alone has done by then does not depend on who looked
// in between.
func (g *Gate) pass(t int64) {
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
func (g *Gate) Allow(t int64) Verdict {
	g.pass(t)
	switch g.Phase {
	case Paused:
		return Verdict{Phase: Paused, At: g.Until}
	case Probing:
		if g.probe != 0 {
			return Verdict{Phase: Probing, At: g.probeAt + silence}
		}
		return Verdict{OK: t >= g.nextProbe, Phase: Probing, At: g.nextProbe}
	case Ramping:
		if g.rampFrom == 0 {
			return Verdict{OK: true, Phase: Ramping}
		}
		step := (t - g.rampFrom) / rampStep
		return Verdict{OK: g.sent < 1<<step, Phase: Ramping, At: g.rampFrom + (step+1)*rampStep}
	}
	return Verdict{OK: true}
}

// Behind is about how long after the first one goes that goes behind n others when a gate opens:
// the ramp doubles.
func Behind(n int64) int64 { return rampStep * int64(bits.Len64(uint64(max(n, 0)))) }

// Sent notes a grant that Allow let through.
func (g *Gate) Sent(t int64, ticket int32) {
	switch g.Phase {
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
func (g *Gate) LimitsBind() {
	if g.Phase == Ramping {
		g.Phase = Open
	}
}

// StartRamp lets a pool whose limits nobody knows begin carefully.
func (g *Gate) StartRamp() { g.Phase, g.rampFrom, g.sent = Ramping, 0, 0 }

func (g *Gate) ramp(t int64) {
	g.Phase, g.rampFrom, g.sent, g.probe = Ramping, t, 0, 0
}

// Throttled takes in a refusal of a request granted at granted; hint is the
// provider's own, 0 if it gave none. It reports whether the refusal counts:
// only those granted after the latest pause began do, so a burst counts once.
func (g *Gate) Throttled(t, granted, hint int64, b Backoff) bool {
	g.pass(t)
	if granted <= g.Since {
		if g.Phase == Paused && hint > 0 {
			g.Until = max(g.Until, t+min(hint, maxHint))
		}
		return false
	}
	g.Throttles++
	g.pause(t, pauseFor(hint, b, g.Throttles))
	return true
}

// Overloaded is Throttled for a provider that is over its capacity as a whole: it
// has a scale of its own.
func (g *Gate) Overloaded(t, granted, hint int64, b Backoff) bool {
	g.pass(t)
	if granted <= g.Since {
		return false
	}
	g.Overloads++
	g.pause(t, pauseFor(hint, b, g.Overloads))
	return true
}

func pauseFor(hint int64, b Backoff, n int64) int64 {
	if hint <= 0 {
		return b.after(n)
	}
	least := Backoff{Start: baseOfHint, Factor: 2, Cap: maxHint}.after(n)
	return min(max(hint, least), maxHint)
}

// Exhausted pauses until a quota comes back.
func (g *Gate) Exhausted(t, granted, wait int64) {
	g.pass(t)
	if granted > g.Since || g.Phase == Paused {
		g.pause(t, max(min(wait, maxOutage), g.Until-t))
	}
}

// Pause holds everyone by hand, for at least as long as they are held already.
func (g *Gate) Pause(t, wait int64) {
	g.pass(t)
	wait = min(wait, maxOutage)
	if g.Phase == Paused {
		wait = max(wait, g.Until-t)
	}
	g.pause(t, wait)
}

func (g *Gate) pause(t, wait int64) {
	g.Phase, g.Since, g.Until, g.probe = Paused, t, t+wait, 0
}

// Resume ends a pause by hand, through a ramp.
func (g *Gate) Resume(t int64) {
	g.pass(t)
	if g.Phase == Paused || g.Phase == Probing {
		g.Until = min(g.Until, t)
		g.ramp(t)
	}
	g.Throttles, g.Overloads = 0, 0
}

// Succeeded takes in a success of a request granted at granted. One from before the
// latest pause proves nothing.
func (g *Gate) Succeeded(t, granted int64, ticket int32) {
	g.pass(t)
	if granted <= g.Since {
		return
	}
	g.Throttles, g.Overloads = 0, 0
	if g.Phase == Probing && g.probe == ticket {
		g.ramp(t)
	}
}

// Lost takes in that a ticket ended with no answer. If it was the probe it proved
// nothing: the next may go in two seconds, or now if it was never sent.
func (g *Gate) Lost(t int64, ticket int32, unsent bool) {
	g.pass(t)
	if g.Phase != Probing || g.probe != ticket {
		return
	}
	g.probe = 0
	if unsent {
		return
	}
	g.nextProbe = t + silence
	if g.blanks++; g.blanks >= maxBlanks {
		g.ramp(t)
	}
}
