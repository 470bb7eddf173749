package policy

import "math"

// Times of the breaker, in microseconds.
const (
	breakerMemory    = 120_000_000 // older samples say nothing about now
	breakerSight     = 86400e6     // two minutes of samples say nothing about a later time
	breakerRampStep  = 500_000     // the ramp after closing doubles this often
	breakerRampSteps = 20          // after that, a million a step is no bound
)

// MaxSamples is how many samples a breaker can keep.
const MaxSamples = 64

// fewestSamples is how many samples a line needs to mean anything.
const fewestSamples = 3

// Rule says when a breaker trips.
type Rule struct {
	Within  int64 // microseconds: trip if the stock will be gone within this time
	Samples int   // the line is fitted through this many of the last samples, at most MaxSamples; 0: off
	Open    bool  // stop lower classes while tripped, instead of gliding to the reset
}

// Breaker predicts when a stock will be gone. It is a flat record. The zero Breaker is closed and has no samples.
//
// It closes at the reset that it tripped for, when the stock has risen, or when too few samples count and the glide
// holds back no request. It does not close because the line got better: tripping has that effect, and the breaker
// would trip and close in turns.
type Breaker struct {
	Tripped bool
	From    int64 // when it tripped
	Room    int64 // what our ledger said was left at that time
	Until   int64 // the next reset known at the last Judge; while tripped, the reset it lasts for; 0: unknown
	Gone    int64 // when the line through the samples reaches zero; 0: not within a day

	latest  int64 // upper bound of Until while tripped
	pressed int64 // when the glide last held back a request
	open    bool  // Rule.Open at the last Judge
	ramping bool
	fresh   bool // the samples have changed since Gone was computed
	head    int32
	count   int32
	ramp    int64 // when the ramp began
	sent    int64 // grants to lower classes since then
	ring    [MaxSamples]sample
}

// sample is what remained of a stock at a time.
type sample struct{ t, left int64 }

// Samples returns how many samples the line uses: the ones of the last Judge, and later ones.
func (b *Breaker) Samples() int { return int(b.count) }

// Sample records that left remains at t. A rise means that the stock was reset or refilled, so older samples no
// longer count. But responses can overtake each other. So a rise by at most underway counts as noise. underway is
// the amount that is charged and not answered yet, including this response's own request.
func (b *Breaker) Sample(r Rule, t, left, underway int64) {
	if r.Samples <= 0 {
		return
	}
	left = max(left, 0)
	if b.count > 0 {
		last := b.at(b.count - 1)
		if t < last.t {
			return
		}
		if left > last.left+max(underway, 0) {
			b.count = 0
			b.close(t)
		}
	}
	b.keep(min(r.Samples, MaxSamples) - 1)
	b.ring[(b.head+b.count)%MaxSamples] = sample{t, left}
	b.count++
	b.fresh = true
}

// Judge advances the breaker to t. reset is the latest time at which the stock comes back, or 0 if it is unknown;
// then the breaker does not trip. room is what our ledger says is left.
func (b *Breaker) Judge(r Rule, t, reset, room int64) {
	if b.Until != 0 && b.Until <= t {
		b.over(b.Until)
	}
	b.keep(min(r.Samples, MaxSamples))
	b.age(t)
	if b.count < fewestSamples && !b.underPressure(t) {
		b.close(t)
	}
	b.open = r.Open
	b.follow(t, reset)
	b.forecast()
	if b.Tripped || b.Gone == 0 || b.Until == 0 {
		return
	}
	if b.Gone < b.Until && b.Gone-t <= r.Within {
		b.trip(t, max(room, 0))
	}
}

// follow updates the reset. A tripped breaker follows it, because the stock has to last that long, but to at most
// twice the time it tripped for. A reset that recedes forever would hold lower classes forever.
func (b *Breaker) follow(t, reset int64) {
	switch {
	case reset <= 0:
		b.close(t)
		b.Until = 0
	case reset <= t: // it has passed
		b.over(t)
	case b.Tripped:
		b.Until = min(reset, b.latest)
	default:
		b.Until = reset
	}
}

func (b *Breaker) trip(t, room int64) {
	b.Tripped, b.From, b.Room, b.latest = true, t, room, b.Until+(b.Until-t)
}

// close stops holding back lower classes, with a ramp from t on.
func (b *Breaker) close(t int64) {
	if b.Tripped {
		b.Tripped, b.ramping, b.ramp, b.sent = false, true, t, 0
	}
}

// over records that the stock came back at t. Otherwise samples from before would trip the breaker against the next
// reset, until the first response shows the rise.
func (b *Breaker) over(t int64) {
	b.age(t)
	b.close(t)
	b.Until = 0
	b.forget(t)
}

// age drops samples that are too old at t. If too few are left, the breaker closes as of the time when that
// happened, however late it is noticed.
func (b *Breaker) age(t int64) {
	if b.count >= fewestSamples {
		if third := b.at(b.count - fewestSamples).t; third < t-breakerMemory && !b.underPressure(t) {
			b.close(max(third, b.pressed) + breakerMemory + 1)
		}
	}
	b.forget(t - breakerMemory)
}

// Press records that the glide holds a request back until t. A slow glide leaves few samples because it is slow:
// while requests wait, few samples do not mean that the danger is over.
func (b *Breaker) Press(t int64) {
	if b.Tripped {
		b.pressed = t
	}
}

func (b *Breaker) underPressure(t int64) bool {
	return b.Tripped && !b.open && b.pressed >= b.From && t-b.pressed <= breakerMemory
}

// tooFewAt returns when too few samples will count if no more come.
func (b *Breaker) tooFewAt() int64 {
	if b.count < fewestSamples {
		return b.Until
	}
	return b.at(b.count-fewestSamples).t + breakerMemory + 1
}

// forget drops the samples from before t.
func (b *Breaker) forget(t int64) {
	n := b.count
	for n > 0 && b.at(b.count-n).t < t {
		n--
	}
	b.keep(int(n))
}

// keep drops all but the last n samples.
func (b *Breaker) keep(n int) {
	if drop := b.count - int32(max(n, 0)); drop > 0 {
		b.head, b.count, b.fresh = (b.head+drop)%MaxSamples, b.count-drop, true
	}
}

func (b *Breaker) at(i int32) sample { return b.ring[(b.head+i)%MaxSamples] }

// Allow reports whether the breaker lets a request of a lower class go at t, and otherwise when to ask again. Judge
// has been called for t. A gliding breaker lets every request go: a floor sets how much must be left behind.
func (b *Breaker) Allow(t int64) (ok bool, at int64) {
	if b.Tripped {
		return !b.open, min(b.Until, b.tooFewAt())
	}
	step := (t - b.ramp) / breakerRampStep
	if b.ramping = b.ramping && step < breakerRampSteps; !b.ramping {
		return true, 0
	}
	return b.sent < 1<<max(step, 0), b.ramp + (step+1)*breakerRampStep
}

// Idle reports whether the breaker holds back no request.
func (b *Breaker) Idle() bool { return !b.Tripped && !b.ramping }

// Sent records a grant to a lower class that Allow let through.
func (b *Breaker) Sent(t int64) {
	if b.ramping && t-b.ramp < breakerRampSteps*breakerRampStep {
		b.sent++
	}
}

// forecast computes Gone: the zero of the least-squares line through the samples, rounded down. It takes times and
// amounts relative to the last sample, which keeps numbers small, and then relative to their means, which keeps
// digits that sums of squares would lose.
//
// Rounding can turn a level line into a falling one, by at most 4 n^2 D m e (n samples over a time of D, m left on
// average, e = 2^-53). Since xx is at least D^2 / 2, it reaches zero no sooner than D / (8 n^2 e). That is 3 days
// for 1 us, beyond breakerSight.
func (b *Breaker) forecast() {
	if !b.fresh {
		return
	}
	b.fresh, b.Gone = false, 0
	if b.count < fewestSamples {
		return
	}
	n, last := float64(b.count), b.at(b.count-1)
	var mx, my float64
	for i := range b.count {
		s := b.at(i)
		mx += float64(s.t - last.t)
		my += float64(s.left - last.left)
	}
	mx /= n
	my /= n
	var xx, xy float64
	for i := range b.count {
		s := b.at(i)
		dx := float64(s.t-last.t) - mx
		dy := float64(s.left-last.left) - my
		xx += float64(dx * dx)
		xy += float64(dx * dy)
	}
	if xy >= 0 {
		return
	}
	ahead := mx - float64((float64(last.left)+my)*xx)/xy
	if ahead <= breakerSight {
		b.Gone = max(last.t+int64(math.Floor(ahead)), 1)
	}
}
