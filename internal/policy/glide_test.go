package policy

import (
	"testing"

	"pgregory.net/rapid"
)

// loop is a stock at its provider, used by lower classes that always want more than
// there is and by a trickle of the highest, with answers that take a while. Lower classes
// leave what the glide says.
type loop struct {
	b          Breaker
	rule       Rule
	size, left int64 // at the provider, which counts at once
	cost       int64
	reset      int64
	answers    []answer // on their way
	trips      int
	lower, top int64 // granted
	empty      int64 // when it first could not serve the highest class
}

type answer struct{ t, left int64 }

// floor is the line from what was left when the breaker tripped to nothing at the reset.
func (l *loop) floor(t int64) int64 {
	if !l.b.Tripped {
		return 0
	}
	return Floor{Amount: l.b.Room, Over: l.b.Until - l.b.From, Until: l.b.Until}.At(t)
}

func (l *loop) step(t int64) {
	for len(l.answers) > 0 && l.answers[0].t <= t {
		underway := int64(len(l.answers)) * l.cost
		l.b.Sample(l.rule, t, l.answers[0].left, underway)
		l.answers = l.answers[1:]
	}
	was := l.b.Tripped
	l.b.Judge(l.rule, t, l.reset, l.left)
	if l.b.Tripped && !was {
		l.trips++
	}
}

func (l *loop) take(t, latency int64) {
	l.left -= l.cost
	l.answers = append(l.answers, answer{t + latency, l.left})
}

func (l *loop) lowerAsks(t, latency int64) {
	if ok, _ := l.b.Allow(t); ok && l.left-l.cost >= l.floor(t) {
		l.b.Sent(t)
		l.take(t, latency)
		l.lower++
	}
}

func (l *loop) topAsks(t, latency int64) {
	if l.left >= l.cost {
		l.take(t, latency)
		l.top++
	} else if l.empty == 0 {
		l.empty = t
	}
}

// run lets lower classes ask every gap and the highest every topGap until the reset.
func (l *loop) run(gap, topGap, latency int64) {
	nextTop := noon
	for t := noon; t < l.reset; t += gap {
		l.step(t)
		if t >= nextTop {
			l.topAsks(t, latency)
			nextTop += topGap
		}
		l.lowerAsks(t, latency)
	}
}

// A stock that would be gone after 4 minutes lasts the hour, all of it is used, and the
// highest class is never refused.
func TestGlideLastsUntilTheReset(t *testing.T) {
	t.Parallel()
	l := loop{rule: glide, size: 5000, left: 5000, cost: 1, reset: noon + 3600*sec}
	l.run(50_000, 5*sec, 200_000)
	if l.empty != 0 {
		t.Errorf("the highest class was refused %d s before the reset", (l.reset-l.empty)/sec)
	}
	if l.trips != 1 {
		t.Errorf("tripped %d times", l.trips)
	}
	if l.top != 720 {
		t.Errorf("the highest class got %d of 720", l.top)
	}
	if l.left > 100 {
		t.Errorf("%d of 5000 are left at the reset", l.left)
	}
}

func TestGlideLastsForAnyOveruse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(600, 3600).Draw(t, "window") * sec
		cost := rapid.Int64Range(1, 1<<20).Draw(t, "cost")
		n := rapid.Int64Range(window/sec/2, 3*window/sec).Draw(t, "requests")
		// They ask two to five times as fast as the stock allows, the highest class at a tenth of it.
		gap := window / n / rapid.Int64Range(2, 5).Draw(t, "overuse")
		latency := rapid.Int64Range(1, 2*sec).Draw(t, "latency")
		l := loop{rule: glide, size: n * cost, left: n * cost, cost: cost, reset: noon + window}
		l.run(gap, 10*window/n, latency)
		if l.trips == 0 {
			t.Fatal("never tripped")
		}
		if l.empty != 0 && l.empty < l.reset-10*window/n {
			t.Fatalf("empty %d s before the reset", (l.reset-l.empty)/sec)
		}
		if used := l.size - l.left; float64(used) < 0.98*float64(l.size) {
			t.Fatalf("%d of %d used, with a cost of %d", used, l.size, cost)
		}
	})
}

// The same without a breaker, to show its effect.
func TestWithoutTheBreakerItIsGoneEarly(t *testing.T) {
	t.Parallel()
	l := loop{size: 5000, left: 5000, cost: 1, reset: noon + 3600*sec}
	l.run(50_000, 5*sec, 200_000)
	if l.empty == 0 || l.empty > noon+300*sec {
		t.Errorf("the highest class was refused first %d s after the start", (l.empty-noon)/sec)
	}
}
