package pause

// A ramp lets requests go one by one, the faster the more of them the provider has accepted. Three things bound it:
//
//   - The pace. Each accepted request shortens the gap to the next, so the rate grows, and grants never come in bursts.
//   - Answers. As many requests may be without a result as were accepted, and one more. A request counts as accepted
//     when it succeeds, or when no refusal has come for two seconds.
//   - What was accepted before. Where limits are not known, a refusal shows how many requests the provider accepts, and
//     in which time it accepts another. From then on no more go in such a time. While that bound keeps holding requests
//     without another refusal, the time gets shorter.
//
// Time in which no request came proves nothing: only requests that came close after each other speed it up.
type ramp struct {
	unknown bool  // no limit is known: time does not end the ramp, and refusals teach its bound
	from    int64 // first grant; 0: none yet
	last    int64 // latest grant; 0: the next follows at once
	sent    int64 // grants
	acked   int64 // of them succeeded
	busy    int64 // of them followed the one before as soon as they could, more or less
	steps   int64 // half seconds since from
	old     [silentSteps]int64
	refused int64 // of them were refused
	most    int64 // so many may go within span; 0: not known
	span    int64
	even    bool  // and evenly
	full    int64 // grants that this bound delayed since it changed
	doubts  int64 // refusals that confirmed the bound
	every   int64 // marks hold the time of each grant whose number is a multiple of it
	marks   [maxMarks]int64
}

const (
	rampStep    = second / 2 // unit of the ramp's times
	rampSteps   = 20         // a ramp with known limits ends after so many steps
	silentSteps = 4          // the last of old counts the grants that are two seconds old
	firstGap    = second * 4 / 10
	evenGap     = second / 20 // the gap stays here for a while: at usual latencies one or two requests are under way
	evenFrom    = firstGap / evenGap
	evenTo      = 100
	enough      = 5000 // a thousand a second were accepted: there is no limit worth a ramp
	maxMarks    = 32
	growAfter   = 8  // the bound grows when it has delayed so many grants
	maxDoubts   = 64 // it grows this much later at most, and by less
)

// gap returns the time between two grants after n accepted requests.
func gap(n int64) int64 {
	switch {
	case n < 1:
		return firstGap
	case n < evenFrom:
		return firstGap / n
	case n < evenTo:
		return evenGap
	}
	return evenTo * evenGap / n
}

// Behind estimates how long after the first request the one behind n others goes when a gate opens.
func Behind(n int64) int64 {
	d := int64(0)
	for i := int64(0); i < min(n, evenFrom); i++ {
		d += gap(i)
	}
	return d + max(n-evenFrom, 0)*evenGap
}

// accepted returns how many grants count as accepted.
func (r *ramp) accepted() int64 { return min(max(r.acked, r.old[silentSteps-1]), r.sent) }

// pace returns the number of accepted requests that speed the ramp up.
func (r *ramp) pace() int64 { return min(r.busy, r.accepted()) }

// pass advances the ramp to t.
func (r *ramp) pass(t int64) {
	if r.from == 0 {
		return
	}
	steps := (t - r.from) / rampStep
	for k := min(steps-r.steps, silentSteps); k > 0; k-- {
		for i := silentSteps - 1; i > 0; i-- {
			r.old[i] = r.old[i-1]
		}
		r.old[0] = r.sent
	}
	r.steps = max(steps, r.steps)
}

// over reports whether the ramp has ended by t.
func (r *ramp) over(t int64) bool {
	if r.unknown {
		return r.most == 0 && r.pace() >= enough
	}
	return r.from != 0 && t-r.from >= rampSteps*rampStep
}

// next returns when the next request may go. That is in the past if it may go now.
func (r *ramp) next() int64 {
	at := r.paced()
	if r.sent-r.accepted() > r.pace() { // until an answer comes, or silence proves something
		at = max(at, r.from+(r.steps+1)*rampStep)
	}
	return max(at, r.bound())
}

// paced returns when the pace lets the next request go.
func (r *ramp) paced() int64 {
	if r.last == 0 {
		return 0
	}
	return r.last + gap(r.pace())
}

// bound returns when the bound lets the next request go.
func (r *ramp) bound() (at int64) {
	if r.most > 0 && r.sent >= r.most {
		at = r.marks[(r.sent-r.most+r.every-1)/r.every%maxMarks] + r.span
	}
	if r.even && r.last != 0 {
		at = max(at, r.last+r.span/r.most)
	}
	return at
}

// grant records a grant at t.
func (r *ramp) grant(t int64) {
	if r.from == 0 {
		r.from = t
	}
	r.pass(t)
	bound := r.bound()
	switch {
	case bound > r.paced():
		if t-bound < rampStep {
			r.full++
		}
	case r.last == 0 || t-r.last <= 2*gap(r.pace()):
		r.busy++
	}
	if r.most > 0 && r.full >= max(growAfter, 4*r.most)*max(r.doubts, 1) {
		r.full, r.span = 0, r.span-r.span/(10*max(r.doubts, 1))
	}
	r.mark(t)
	r.last = t
}

// mark counts a grant at t.
func (r *ramp) mark(t int64) {
	if r.most > 0 && r.sent%r.every == 0 {
		r.marks[r.sent/r.every%maxMarks] = t
	}
	r.sent++
}

// refuse records the refusal of a request granted at granted.
func (r *ramp) refuse(granted int64) {
	if r.from != 0 && granted >= r.from && granted <= r.last {
		r.refused++
	}
}

// begin starts the ramp at t, after a pause whose probe went at probe. With probe 0 there was none.
func (r *ramp) begin(t, probe int64) {
	if probe != 0 {
		r.learn(probe)
	} else {
		r.learn(t)
	}
	r.from, r.last, r.sent, r.acked, r.busy, r.steps, r.refused, r.full = 0, 0, 0, 0, 0, 0, 0, 0
	for i := range r.old {
		r.old[i] = 0
	}
	r.every = 1
	for r.most > (maxMarks-1)*r.every {
		r.every *= 2
	}
	if probe != 0 { // the first request of the ramp, and accepted
		r.mark(probe)
		r.from, r.acked, r.busy = t, 1, 1
		if r.unknown {
			r.from, r.last = probe, probe
		}
	}
}

// learn sets the bound if a refusal has shown one. The provider accepts requests again at t.
func (r *ramp) learn(t int64) {
	got := r.sent - r.refused
	if !r.unknown || r.refused == 0 || got < 1 || t <= r.from {
		return
	}
	span := t - r.from
	if r.most == 0 || got < r.most {
		// Far fewer than before: use comes back bit by bit. A window that was reset in between accepts half at least.
		r.even, r.most, r.span = r.even || 2*got < r.most, got, span
		return
	}
	// As many as before were accepted, but not in this time. In between requests may have been few, so the latest of
	// them count too.
	latest := t - r.marks[(got-r.most+r.every-1)/r.every%maxMarks]
	span = min(span/got*r.most, latest+latest/4)
	r.span = max(span, r.span+r.span/16)
	r.doubts = min(16*max(r.doubts, 1), maxDoubts)
}
