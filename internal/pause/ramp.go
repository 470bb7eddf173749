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
// Time in which no request came proves nothing: only requests that came close after each other speed it up, and the bound
// counts from the latest idle time on. It goes on counting through pauses, as a provider's window does.
type ramp struct {
	unknown bool  // no limit is known: time does not end the ramp, and refusals teach its bound
	from    int64 // first grant; 0: none yet
	last    int64 // latest grant; 0: the next follows at once
	sent    int64 // grants
	acked   int64 // of them succeeded
	ackedAt int64 // when the latest success came
	busy    int64 // of them followed the one before as soon as they could, more or less
	steps   int64 // half seconds since from
	old     [silentSteps]int64
	refused int64 // of them were refused
	began   int64 // first grant after the latest idle time: the bound counts from here on
	slow    bool  // requests came before that
	before  int64 // grants of this ramp before that
	kept    int64 // accepted grants since began, of earlier ramps
	most    int64 // so many may go within span; 0: not known
	span    int64
	even    bool  // and evenly
	full    int64 // grants that this bound delayed since it changed
	doubts  int64 // refusals that confirmed the bound
	early   int64 // consecutive refusals that came long before the bound said so
	every   int64 // marks hold the time of each grant since began whose number is a multiple of it
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
	maxMarks    = 512
	growAfter   = 8  // the bound grows when it has delayed so many grants
	maxDoubts   = 64 // it grows this much later at most, and by less
	idle        = second
	minute      = 60 * second
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

// counted returns how many grants the bound counts.
func (r *ramp) counted() int64 { return r.kept + r.sent - r.before }

// nth returns when the grant went that the bound counts as number n, from 0. It may return a time a little later.
func (r *ramp) nth(n int64) int64 {
	i := (n + r.every - 1) / r.every
	if i*r.every >= r.counted() {
		return r.last
	}
	return r.marks[i%maxMarks]
}

// bound returns when the bound lets the next request go.
func (r *ramp) bound() (at int64) {
	if n := r.counted() - r.most; r.most > 0 && n >= 0 {
		at = r.nth(n) + r.span
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
	if r.rested(t) {
		r.slow = r.sent+r.kept > 0
		r.began, r.before, r.kept, r.every = t, r.sent, 0, 1
	}
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

// rested reports whether no request came for a while before t, as long as there is no bound.
func (r *ramp) rested(t int64) bool {
	switch {
	case !r.unknown || r.most > 0:
		return false
	case r.ackedAt < r.last: // it may have waited for an answer, or for silence to prove something
		return t-r.paced() > silence+idle
	}
	return t-max(r.paced(), r.ackedAt) > idle
}

// mark counts a grant at t.
func (r *ramp) mark(t int64) {
	if n := r.counted(); r.unknown {
		if r.most == 0 && n == maxMarks*r.every {
			r.thin(n)
		}
		if n%r.every == 0 {
			r.marks[n/r.every%maxMarks] = t
		}
	}
	r.sent++
}

// thin drops every second mark of n counted grants.
func (r *ramp) thin(n int64) {
	last := (n - 1) / r.every / 2
	old := r.marks
	for i := max(last-maxMarks/2+1, 0); i <= last; i++ {
		r.marks[i%maxMarks] = old[2*i%maxMarks]
	}
	r.every *= 2
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
	r.from, r.last, r.sent, r.acked, r.busy, r.steps, r.refused, r.full, r.before, r.ackedAt = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
	for i := range r.old {
		r.old[i] = 0
	}
	if r.kept == 0 {
		r.every = 1
	}
	for r.most > (maxMarks-1)*r.every {
		r.thin(r.kept)
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
	if r.before+r.refused >= r.sent { // the first after an idle time was refused
		r.before, r.began = 0, r.from
	}
	got := r.sent - r.refused - r.before
	if !r.unknown || r.refused == 0 || got < 1 || t <= r.from {
		return
	}
	span := t - r.from
	switch {
	case r.most == 0:
		r.most, r.span = got, wide(t-r.began)
	case got >= r.most:
		// As many as before were accepted, but not in this time. In between requests may have been few, so the latest of
		// them count too.
		latest := t - r.nth(r.kept+got-r.most)
		span = min(span/got*r.most, latest+latest/4)
		r.span = max(span, r.span+r.span/16)
		r.doubts, r.early = min(16*max(r.doubts, 1), maxDoubts), 0
	case !r.longer(got, span, t):
		// Far fewer than before: use comes back bit by bit. A window that was reset in between accepts half at least.
		r.even, r.most, r.span = r.even || 2*got < r.most, got, span
	}
	if r.kept += got; r.even {
		r.kept = 0
	}
}

// longer makes the time of the bound longer after the refusal of the request behind got others, in a ramp that lasts for
// span until t. It returns false if that does not explain it.
func (r *ramp) longer(got, span, t int64) bool {
	if r.even || 2*got >= r.most {
		return false
	}
	r.early++
	switch {
	case r.doubts > 0 && r.early == 1: // the bound has held before
		r.span += r.span / 8
	case !r.slow || r.most*(span/got) < 2*minute || t-r.began > minute+minute/8:
		return false
	case r.early == 1: // what comes back so slowly are requests from before the idle time
		r.span = wide(t - r.began)
	default:
		r.span = wide(max(t-r.began, minute))
	}
	return true
}

// wide returns a time with room for requests that take longer to arrive than those before them.
func wide(span int64) int64 { return span + span/50 + second/20 }
