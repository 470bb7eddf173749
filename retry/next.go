package retry

import "time"

// Reason says what determined a [Decision].
type Reason uint8

// The reasons. The first four set a wait, the last two end the retries.
const (
	Backoff  Reason = iota // full jitter
	Hint                   // the server said when to retry
	Priority               // the window of the caller's class
	Queue                  // the pool is paused or ramping: no wait, the queue decides
	Attempts               // the maximum number of sends is reached
	Deadline               // the wait would not end before the deadline
)

func (r Reason) String() string {
	names := [...]string{"backoff", "hint", "priority", "queue", "attempts", "deadline"}
	if int(r) >= len(names) {
		return "invalid"
	}
	return names[r]
}

// Failure describes a send that failed.
type Failure struct {
	Sent    int           // sends so far, this one included
	Elapsed time.Duration // since before the first send
	// Class is the caller's class. Leave it empty if it was neither given nor configured, even though such a caller
	// queues in the lowest class.
	Class string
	// Hint is how long the server asked to wait. It counts only if Hinted is set, because a hint of zero is valid too.
	Hint   time.Duration
	Hinted bool
	// Held is set while the pool is paused or ramping.
	Held bool
}

// Decision is what to do after a failure, and why.
type Decision struct {
	// Wait is how long to wait before the next send. If Reason is Deadline, it is the wait that did not fit.
	Wait time.Duration
	// Give is set if the caller must give up: there is no next send.
	Give   bool
	Reason Reason
	// Low and High are the range that Wait was drawn from.
	Low, High time.Duration
	// Left is the time until the deadline, never negative.
	Left time.Duration
}

// Next decides what to do after a failure. random returns numbers in [0, 1); it is called at most once.
//
// A wait that would reach the deadline is refused now: after it the request would fail anyway, only later.
func (p Policy) Next(f Failure, random func() float64) Decision {
	p = p.filled()
	d := Decision{Left: max(0, p.Deadline-max(0, f.Elapsed))}
	if f.Sent >= p.Attempts {
		d.Give, d.Reason = true, Attempts
		return d
	}
	d.Low, d.High, d.Reason = p.span(f)
	d.Wait = d.Low
	if d.High > d.Low {
		d.Wait = uniform(d.Low, d.High, random())
	}
	if d.Wait >= d.Left {
		d.Give, d.Reason = true, Deadline
	}
	return d
}

// span returns the range to draw the next wait from.
func (p Policy) span(f Failure) (low, high time.Duration, why Reason) {
	n := max(0, f.Sent-1)
	if f.Held {
		return 0, 0, Queue
	}
	if f.Hinted {
		hint := min(max(0, f.Hint), MaxHint)
		return hint, hint + hintJitter, Hint
	}
	if w, known := p.Windows[f.Class]; known && f.Class != "" {
		low = min(max(0, w.Min), max(0, w.Max))
		return low, doubled(low, n+1, w.Max), Priority
	}
	return 0, doubled(p.Base, n, p.Cap), Backoff
}

// doubled returns min(most, d*2^times) without overflow, whatever times is.
func doubled(d time.Duration, times int, most time.Duration) time.Duration {
	if d <= 0 || most <= 0 {
		return 0
	}
	for ; times > 0 && d < most; times-- {
		if d > most/2 {
			return most
		}
		d *= 2
	}
	return min(d, most)
}

// uniform maps r in [0, 1) to [low, high]. The result stays in that range even if r does not.
func uniform(low, high time.Duration, r float64) time.Duration {
	if !(r > 0) { // also NaN
		return low
	}
	if r >= 1 {
		return high
	}
	return min(high, low+time.Duration(r*float64(high-low)))
}
