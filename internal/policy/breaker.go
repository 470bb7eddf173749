package policy

import "math"

// Times of the breaker, in microseconds.
const (
	breakerMemory    = 120_000_000 // older samples say nothing about now
	breakerSight     = 86400e6     // two minutes of samples say nothing about what comes later than that
	breakerRampStep  = 500_000     // the ramp after closing doubles this often
	breakerRampSteps = 20          // then a million a step is no bound any more
)

// MaxSamples is how many samples a breaker can keep.
const MaxSamples = 64

// fewestSamples is how many it takes for a line to mean anything.
const fewestSamples = 3

// Rule says when a breaker trips.
type Rule struct {
	Within  int64 // microseconds: trip if the stock will be gone by then
	Samples int   // the line is fitted through the last so many, at most MaxSamples; 0: off
	Open    bool  // stop lower classes while it is tripped, instead of gliding to the reset
}

// Breaker foresees when one stock will be gone. A flat record; the zero Breaker is
// closed and has seen nothing.
//
// It closes at the reset that it tripped for, when the stock has risen, or when too few
// samples count and the glide holds nobody back; not because the line got better, which is what tripping is for: it
// would trip and close in turns.
type Breaker struct {
	Tripped bool
	From    int64 // when it tripped
	Room    int64 // what our ledger said was left then
	Until   int64 // the next reset as known at the last Judge; while tripped, the one it lasts for; 0: unknown
	Gone    int64 // when the stock will be gone by the line through the samples; 0: not within a day

	latest  int64 // while tripped: Until moves no further than this
	pressed int64 // when the glide last held somebody back
	open    bool  // the rule's, at the last Judge
	ramping bool
	fresh   bool // the samples have changed since Gone was found
	head    int32
	count   int32
	ramp    int64 // when the ramp began
	sent    int64 // grants to lower classes since then
	ring    [MaxSamples]sample
}

// sample is what remained of a stock at a moment.
type sample struct{ t, left int64 }

// Samples returns how many samples the line is fitted through: those that counted at the
// last Judge, and what came since.
func (b *Breaker) Samples() int { return int(b.count) }

// Sample takes in that left remains at t. A rise means that the stock was reset or
// refilled: what was seen before says nothing any more. A rise by no more than underway,
// which is what is charged and not answered yet, with this answer's own request, can be answers
// that passed each other on the way: it is kept as noise.
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

// Judge brings the breaker to t. reset is the latest moment at which the stock comes back,
// 0 if nobody knows: then nothing can be said to come too early, and it does not trip. room is what our
// ledger says is left.
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

// follow takes in where the reset is now said to be. A breaker that is tripped goes
// with it, since the stock has to last that long, but to no more than twice the time it
// tripped for: a reset that recedes for ever would hold lower classes for ever.
func (b *Breaker) follow(t, reset int64) {
	switch {
	case reset <= 0:
		b.close(t)
		b.Until = 0
	case reset <= t: // it turns out to have been
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

// close ends what the breaker does to lower classes, through a ramp from t on.
func (b *Breaker) close(t int64) {
	if b.Tripped {
		b.Tripped, b.ramping, b.ramp, b.sent = false, true, t, 0
	}
}

// over takes in that the stock came back at t. Without it, samples from before would
// trip the breaker against the next reset until the first answer shows the rise.
func (b *Breaker) over(t int64) {
	b.age(t)
	b.close(t)
	b.Until = 0
	b.forget(t)
}

// age forgets the samples that are too old at t. A breaker that has too few left closes
// at the moment when that was so, however late it is noticed.
func (b *Breaker) age(t int64) {
	if b.count >= fewestSamples {
		if third := b.at(b.count - fewestSamples).t; third < t-breakerMemory && !b.underPressure(t) {
			b.close(max(third, b.pressed) + breakerMemory + 1)
		}
	}
	b.forget(t - breakerMemory)
}

// Press notes that the glide holds somebody back until t. A slow glide leaves few samples, because
// it is slow: that is no sign that the danger is over while somebody waits.
func (b *Breaker) Press(t int64) {
	if b.Tripped {
		b.pressed = t
	}
}

func (b *Breaker) underPressure(t int64) bool {
	return b.Tripped && !b.open && b.pressed >= b.From && t-b.pressed <= breakerMemory
}

// tooFewAt returns when too few samples will count if none comes.
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

// Allow reports whether a request of a lower class may go at t as far as the breaker is
// concerned, and if not, when to ask again. Judge has been called for t. A breaker that glides
// lets everyone go: how much has to be left behind is a floor.
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

// Idle reports that the breaker holds nobody back.
func (b *Breaker) Idle() bool { return !b.Tripped && !b.ramping }

// Sent notes a grant to a lower class that Allow let through.
func (b *Breaker) Sent(t int64) {
	if b.ramping && t-b.ramp < breakerRampSteps*breakerRampStep {
		b.sent++
	}
}

// forecast finds Gone: where the least-squares line through the samples is zero, rounded
// down. Times and amounts are taken from the last sample, which leaves small
// numbers, and then from their means, which keeps digits that sums of squares would lose.
//
// A line that is level can come out as falling by what rounding adds, at most 4 n^2 D m e (n
// samples over a time of D, m left on average, e = 2^-53). Since xx is at least D^2 / 2, it
// reaches zero no sooner than D / (8 n^2 e), 3 days for 1 us, which is out of sight.
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
