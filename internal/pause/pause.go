// Package pause decides when a pool is held as a whole. After a refusal the pool pauses; repeated refusals make
// pauses longer. When a pause ends, one probe goes out, and a ramp follows. All decisions are pure: time is an
// argument.
//
// A refusal can ask for a pause that is longer than the backoff's cap. The gate obeys, but checks it: one probe for
// the whole pool goes out every cap interval. If it succeeds, the pause ends. Pauses by hand and pauses for an
// exhausted quota are not checked.
package pause

// Phase is the current state of a gate.
type Phase uint8

// The phases, in the order in which they follow each other.
const (
	Open    Phase = iota
	Paused        // no request goes before Until
	Probing       // one request goes, the others wait for its outcome
	Ramping       // requests go one by one, faster and faster
)

func (p Phase) String() string {
	return [...]string{"open", "paused", "probing", "ramping"}[p]
}

// Times of the state machine, in microseconds.
const (
	second     = 1_000_000
	silence    = 2 * second       // a probe without a refusal by then has succeeded
	maxBlanks  = 3                // consecutive probes without a result
	maxHint    = 24 * 3600e6      // longest pause that a hint can cause
	maxOutage  = 31 * 24 * 3600e6 // longest pause for an exhausted quota; a longer hint is a mistake
	baseOfHint = second           // minimum effect of a hint, doubled like the pause
	stragglers = 600 * second     // how long responses from before a pause may arrive
	abandoned  = 3600 * second    // no request came for so long
)

// Backoff is the formula for pauses: Start, times Factor for each further consecutive refusal, at most Cap.
type Backoff struct{ Start, Factor, Cap int64 }

// after returns the pause after the n-th consecutive refusal, counted from 1.
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

// State is the state of one scope of a pool. It is a flat record. The zero State is open.
type State struct {
	Phase     Phase
	Until     int64 // end of the pause
	Since     int64 // when the latest pause began
	Throttles int64 // consecutive refusals
	Overloads int64
	probe     int32 // ticket of the probe that is out; 0: none
	blanks    int32 // consecutive probes without a result
	probeAt   int64
	nextProbe int64 // no probe goes before this time; if a pause ends earlier, it has no probes
	every     int64 // time between probes of a long pause
	up        ramp
}

// Idle reports whether the state is as good as a new one. By then all responses to requests from before the pause
// have come.
func (g *State) Idle(t int64) bool {
	return g.Phase == Open && g.Throttles == 0 && g.Overloads == 0 && t-max(g.Since, g.Until) >= stragglers
}

// Abandoned reports whether the pause ended long ago without any outcome since: no success, no refusal, and no probe
// is out. Allow has been called for t.
func (g *State) Abandoned(t int64) bool {
	return g.Phase != Paused && g.probe == 0 && t-max(g.Since, g.Until, g.up.last) >= abandoned
}

// Verdict is the result of Allow.
type Verdict struct {
	OK    bool
	Phase Phase // the phase that holds the request
	At    int64 // when the phase is over
	Next  int64 // when to ask again, at or before At
}

// until returns a verdict that holds until at.
func until(phase Phase, at int64) Verdict { return Verdict{Phase: phase, At: at, Next: at} }

// pass advances the state to t. The result does not depend on calls in between.
func (g *State) pass(t int64) {
	if g.Phase == Paused && t >= g.Until {
		g.Phase, g.probe, g.blanks, g.nextProbe = Probing, 0, 0, 0
	}
	if g.Phase == Probing && g.probe != 0 && t >= g.probeAt+silence {
		g.ramp(g.probeAt+silence, g.probeAt)
	}
	if g.Phase == Ramping {
		g.up.pass(t)
		if g.up.over(t) {
			g.Phase, g.up.unknown = Open, false
		}
	}
}

// Allow reports whether this state lets a request go at t.
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
		v := until(Ramping, g.up.next())
		v.OK = t >= v.Next
		return v
	}
	return Verdict{OK: true}
}

// NextProbe returns when a probe may go before the pause ends, or 0 if none may.
func (g *State) NextProbe() int64 {
	if g.Phase != Paused || g.nextProbe >= g.Until {
		return 0
	}
	return g.nextProbe
}

// Sent records a grant that Allow let through.
func (g *State) Sent(t int64, ticket int32) {
	switch g.Phase {
	case Paused:
		g.probe, g.probeAt, g.nextProbe = ticket, t, t+max(g.every, second)
	case Probing:
		g.probe, g.probeAt = ticket, t
	case Ramping:
		g.up.grant(t)
	}
}

// LimitsBind ends a ramp where limits are known, because they hold requests back now.
func (g *State) LimitsBind() {
	if g.Phase == Ramping && !g.up.unknown {
		g.Phase = Open
	}
}

// StartRamp makes requests of unknown limits start slowly.
func (g *State) StartRamp(t int64) {
	g.Phase, g.Until = Ramping, t
	g.up.unknown = true
	g.up.begin(t, 0)
}

// Unknown reports whether no limit is known for the requests.
func (g *State) Unknown() bool { return g.up.unknown }

// Untouched reports whether the state is that of a new record.
func (g *State) Untouched() bool { return g.Phase == Open && g.Since == 0 && g.Until == 0 }

// Follow makes a new state continue the ramp of another, which covers the same requests.
func (g *State) Follow(of *State) { g.up = of.up }

// LimitsKnown ends the ramp of StartRamp, because a response has stated limits. A ramp after a pause continues,
// because the provider has refused requests since.
func (g *State) LimitsKnown() {
	g.up.unknown, g.up.most, g.up.even = false, 0, false
	if g.Phase == Ramping && g.Since == 0 {
		g.Phase = Open
	}
}

// Settled reports whether requests go as if there had been no pause. That is so before, and when its ramp has lasted
// so long that known limits would have ended it. Allow has been called for t.
func (g *State) Settled(t int64) bool {
	return g.Phase == Open || g.Phase == Ramping && g.up.from != 0 && t-g.up.from >= rampSteps*rampStep
}

// ramp starts the ramp after a pause at t. probe is when the probe went that ended it, or 0.
func (g *State) ramp(t, probe int64) {
	g.Phase, g.probe = Ramping, 0
	g.up.begin(t, probe)
}

// Throttled records a refusal of a request granted at granted. hint is the provider's own, or 0. It reports whether
// the refusal counts. Only requests granted after the latest pause began count, so a burst counts once.
func (g *State) Throttled(t, granted, hint int64, b Backoff) bool {
	g.pass(t)
	if g.Phase == Ramping && granted > g.up.last {
		g.up.refuse(g.up.last) // it is only reported now, or its caller collected the grant later
	} else {
		g.up.refuse(granted)
	}
	hint = plausible(hint)
	if granted <= g.Since {
		if g.Phase == Paused && hint > 0 {
			g.prolong(t+min(hint, maxHint), b.Cap)
		}
		return false
	}
	g.Throttles++
	end := t + pauseFor(hint, b, g.Throttles)
	if hint == 0 { // a probe of a long pause says nothing new about its end
		end = max(end, g.end(t))
	}
	g.pause(t, end, min(end, t+b.Cap))
	g.every = b.Cap
	return true
}

// prolong moves the end of a pause. Probes stay scheduled from its beginning: repeated hints must not postpone them
// forever.
func (g *State) prolong(end, every int64) {
	if end > g.Until {
		g.Until, g.every = end, every
		g.nextProbe = max(g.nextProbe, min(end, g.Since+every))
	}
}

// Overloaded is Throttled for a provider that is overloaded as a whole. It has its own backoff. Probes of a long
// pause go as often as after a refusal. If a probe meets an overload, that says nothing about the pause it probes.
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

// plausible drops a hint that is too long to be meant. The plain formula applies then.
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

// Exhausted pauses until a quota comes back, without probes. It returns false for an implausible wait, and does
// nothing then.
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

// Pause holds all requests by hand, at least as long as they are held already. No probe goes before the end.
func (g *State) Pause(t, wait int64) {
	g.pass(t)
	g.hold(t, min(wait, maxOutage))
}

// hold pauses for a certain time. The rest of a longer pause stays, and is probed as before.
func (g *State) hold(t, wait int64) {
	quiet := t + wait
	if g.Phase == Paused {
		quiet = max(quiet, g.nextProbe)
	}
	g.pause(t, max(t+wait, g.end(t)), quiet)
}

// end returns the end of the pause in force at t, or t if there is none.
func (g *State) end(t int64) int64 {
	if g.Phase == Paused {
		return g.Until
	}
	return t
}

// pause holds all requests from t until end. Probes may go from quiet on.
func (g *State) pause(t, end, quiet int64) {
	g.Phase, g.Since, g.Until, g.nextProbe, g.probe = Paused, t, end, quiet, 0
}

// Resume ends a pause by hand, with a ramp.
func (g *State) Resume(t int64) {
	g.pass(t)
	if g.Phase == Paused || g.Phase == Probing {
		g.Until = min(g.Until, t)
		g.ramp(t, 0)
	}
	g.Throttles, g.Overloads = 0, 0
}

// Succeeded records the success of a request granted at granted. A request from before the latest pause proves
// nothing.
func (g *State) Succeeded(t, granted int64, ticket int32) {
	g.pass(t)
	if granted <= g.Since {
		return
	}
	g.Throttles, g.Overloads = 0, 0
	if (g.Phase == Probing || g.Phase == Paused) && g.probe == ticket {
		g.Until = min(g.Until, t)
		g.ramp(t, g.probeAt)
		return
	}
	if g.Phase == Ramping && granted >= g.up.from {
		g.up.acked++
		g.up.ackedAt = t
	}
}

// Lost records that a ticket ended without a response. If it was the probe, it proved nothing: the next may go in
// two seconds, or now if it was never sent. During a long pause, the next goes at its scheduled time.
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
		g.ramp(t, 0)
	}
}
