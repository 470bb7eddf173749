package policy

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const (
	sec  = int64(1_000_000)
	noon = 1_800_000_000 * sec // a time of the size that real ones have
)

var glide = Rule{Within: 120 * sec, Samples: 10}

// feed takes in what remains, one sample every step from noon on, and returns the time of
// the last.
func feed(b *Breaker, r Rule, step int64, lefts ...int64) int64 {
	t := noon - step
	for _, left := range lefts {
		t += step
		b.Sample(r, t, left, 1)
	}
	return t
}

func TestBreakerTripsOnlyForWhatComesSoonAndBeforeTheReset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		lefts []int64 // one a second: the last is at noon + len-1
		after int64   // judged so long after the last
		reset int64   // after the last
		trips bool
		gone  int64 // after the last, rounded down
	}{
		{"gone in 50 s, reset in 1000", []int64{540, 530, 520, 510, 500}, 0, 1000 * sec, true, 50 * sec},
		{"the reset comes first", []int64{540, 530, 520, 510, 500}, 0, 50 * sec, false, 50 * sec},
		{"and a microsecond later it does not", []int64{540, 530, 520, 510, 500}, 0, 50*sec + 1, true, 50 * sec},
		{"gone in 120 s", []int64{1220, 1210, 1200}, 0, 1000 * sec, true, 120 * sec},
		{"gone in 121 s", []int64{1230, 1220, 1210}, 0, 1000 * sec, false, 121 * sec},
		{"which is soon a second later", []int64{1230, 1220, 1210}, sec, 1000 * sec, true, 121 * sec},
		{"too few", []int64{20, 10}, 0, 1000 * sec, false, 0},
		{"constant", []int64{10, 10, 10, 10}, 0, 1000 * sec, false, 0},
		{"empty", []int64{0, 0, 0, 0}, 0, 1000 * sec, false, 0},
		{"up and down", []int64{10, 11, 10}, 0, 1000 * sec, false, 0},
		{"by noise alone", []int64{10, 10, 9, 10, 11}, 0, 1000 * sec, false, 0},
		{"noisy, but down", []int64{40, 41, 30, 31, 20, 21}, 0, 1000 * sec, true, 4_299_363},
		{"just gone", []int64{20, 10, 0}, 0, 1000 * sec, true, 0},
		{"gone by the line", []int64{20, 0, 0, 0}, 0, 1000 * sec, true, -666_667},
		{"stale", []int64{540, 530, 520, 510, 500}, 118*sec + 1, 1000 * sec, false, 0},
		{"just not stale", []int64{540, 530, 520, 510, 500}, 118 * sec, 1000 * sec, true, 50 * sec},
		{"large", []int64{1<<40 + 2<<34, 1<<40 + 1<<34, 1 << 40}, 0, 1000 * sec, true, 64 * sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b Breaker
			last := feed(&b, glide, sec, c.lefts...)
			b.Judge(glide, last+c.after, last+c.reset, 77)
			if b.Tripped != c.trips {
				t.Errorf("tripped: %v", b.Tripped)
			}
			if b.Tripped && (b.From != last+c.after || b.Room != 77 || b.Until != last+c.reset) {
				t.Errorf("tripped at %d with %d until %d", b.From-last, b.Room, b.Until-last)
			}
			if want := last + c.gone; c.gone != 0 && b.Gone != want || c.gone == 0 && !c.trips && b.Gone != 0 {
				t.Errorf("gone %d us after the last sample, want %d", b.Gone-last, c.gone)
			}
		})
	}
}

// The figures in docs/algorithms.md.
func TestBreakerAsInTheDocumentation(t *testing.T) {
	t.Parallel()
	var b Breaker
	last := feed(&b, glide, 5*sec, 2480, 2400, 2290, 2210, 2110)
	reset := last + 2380*sec
	b.Judge(glide, last, reset, 2100)
	if !b.Tripped || b.Gone-last != 113_548_387 {
		t.Fatalf("tripped %v, gone %d us after the last sample", b.Tripped, b.Gone-last)
	}
	line := Floor{Amount: b.Room, Over: b.Until - b.From, Until: b.Until}
	if floor := line.At(last + 1190*sec); floor != 1050 {
		t.Errorf("half way to the reset %d have to be left", floor)
	}
	b = Breaker{}
	feed(&b, glide, 5*sec, 2480, 2400, 2290, 2210, 2110)
	if b.Judge(glide, last, last+110*sec, 2100); b.Tripped {
		t.Error("tripped though the reset is just ahead")
	}
}

func TestBreakerWithoutAResetNeverTripsAndCloses(t *testing.T) {
	t.Parallel()
	var b Breaker
	last := feed(&b, glide, sec, 30, 20, 10)
	b.Judge(glide, last, 0, 10)
	if b.Tripped || b.Gone != last+sec {
		t.Fatalf("tripped %v, gone at %d", b.Tripped, b.Gone-last)
	}
	b.Judge(glide, last, last+100*sec, 10)
	if !b.Tripped {
		t.Fatal("not tripped though the reset is known")
	}
	b.Judge(glide, last+1, 0, 10)
	if b.Tripped {
		t.Error("tripped though the reset is not known any more")
	}
}

func TestBreakerThatIsOffDoesNothing(t *testing.T) {
	t.Parallel()
	var b Breaker
	off := Rule{Within: 120 * sec}
	last := feed(&b, off, sec, 30, 20, 10)
	b.Judge(off, last, last+100*sec, 10)
	if b != (Breaker{Until: last + 100*sec}) {
		t.Errorf("%+v", b)
	}
	last = feed(&b, glide, sec, 30, 20, 10)
	b.Judge(glide, last, last+100*sec, 10)
	b.Judge(off, last, last+100*sec, 10)
	if b.Tripped || b.Samples() != 0 || b.Gone != 0 {
		t.Error("still tripped after it was turned off")
	}
}

func TestBreakerKeepsTheLastSamplesOnly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 10, MaxSamples, 1000} {
		var b Breaker
		r := Rule{Within: 120 * sec, Samples: n}
		for i := range int64(200) {
			b.Sample(r, noon+i*1000, 1000-i, 1)
		}
		if want := min(n, MaxSamples); b.Samples() != want {
			t.Errorf("%d kept, want %d", b.Samples(), want)
		}
		if last := b.at(b.count - 1); last.left != 801 {
			t.Errorf("the last sample is %d", last.left)
		}
	}
}

func TestBreakerIgnoresWhatIsOlderThanTheLast(t *testing.T) {
	t.Parallel()
	var b Breaker
	b.Sample(glide, noon, 10, 1)
	b.Sample(glide, noon-1, 5, 1)
	b.Sample(glide, noon, 9, 1)
	if b.Samples() != 2 {
		t.Errorf("%d samples", b.Samples())
	}
}

func TestBreakerARiseDropsWhatWasBefore(t *testing.T) {
	t.Parallel()
	var b Breaker
	last := feed(&b, glide, sec, 30, 20, 10)
	b.Judge(glide, last, last+1000*sec, 10)
	b.Sample(glide, last+sec, 13, 3)
	if b.Samples() != 4 || !b.Tripped {
		t.Fatal("answers that passed each other were taken for a refill")
	}
	b.Sample(glide, last+2*sec, 17, 3)
	if b.Samples() != 1 || b.Tripped {
		t.Fatalf("%d samples, tripped %v after a refill", b.Samples(), b.Tripped)
	}
	b.Judge(glide, last+2*sec, last+1000*sec, 17)
	if ok, _ := b.Allow(last + 2*sec); !ok || b.Tripped {
		t.Error("the ramp does not begin with one")
	}
	b.Sent(last + 2*sec)
	if ok, at := b.Allow(last + 2*sec + 1); ok || at != last+2*sec+sec/2 {
		t.Errorf("a second goes at once, or waits until %d", at-last)
	}
}

// Samples from before a reset must not count against the next one.
func TestBreakerDoesNotTripOnSamplesFromBeforeTheReset(t *testing.T) {
	t.Parallel()
	var b Breaker
	last := feed(&b, glide, sec, 520, 510, 500) // gone 50 s later
	reset := last + 30*sec
	b.Judge(glide, last, reset, 500)
	if b.Tripped {
		t.Fatal("tripped though the reset comes first")
	}
	b.Judge(glide, reset, reset+3600*sec, 5000)
	if b.Tripped || b.Samples() != 0 || b.Gone != 0 {
		t.Error("tripped against the next reset, by samples from before this one")
	}
}

func TestBreakerClosesAtTheResetItTrippedForThroughARamp(t *testing.T) {
	t.Parallel()
	var b Breaker
	open := Rule{Within: 120 * sec, Samples: 10, Open: true}
	last := feed(&b, open, sec, 30, 20, 10)
	reset := last + 100*sec
	b.Judge(open, last, reset, 10)
	if ok, at := b.Allow(last); ok || at != reset {
		t.Fatalf("allowed %v until %d", ok, at-last)
	}
	b.Judge(open, reset-1, reset, 10)
	if !b.Tripped {
		t.Fatal("closed before the reset")
	}
	late := reset + 3*sec/4
	b.Judge(open, late, reset+3600*sec, 5000)
	if b.Tripped {
		t.Fatal("still tripped after the reset")
	}
	for n, want := range []bool{true, true, false} { // the ramp began at the reset: two by now
		ok, at := b.Allow(late)
		if ok != want || at != reset+sec {
			t.Errorf("grant %d: allowed %v, next step %d us after the reset", n+1, ok, at-reset)
		}
		b.Sent(late)
	}
}

func TestBreakerFollowsAResetThatMoves(t *testing.T) {
	t.Parallel()
	tripped := func() (Breaker, int64) {
		var b Breaker
		last := feed(&b, glide, sec, 30, 20, 10)
		b.Judge(glide, last, last+100*sec, 10)
		return b, last
	}
	t.Run("earlier", func(t *testing.T) {
		t.Parallel()
		b, last := tripped()
		b.Judge(glide, last+sec, last+90*sec, 10)
		if !b.Tripped || b.Until != last+90*sec {
			t.Errorf("until %d", b.Until-last)
		}
		if b.Judge(glide, last+90*sec, last+3690*sec, 10); b.Tripped {
			t.Error("tripped after the reset")
		}
	})
	t.Run("later", func(t *testing.T) {
		t.Parallel()
		b, last := tripped()
		b.Judge(glide, last+sec, last+102*sec, 10)
		if b.Judge(glide, last+101*sec, last+102*sec, 10); !b.Tripped {
			t.Error("closed though the stock has to last longer")
		}
		if b.Judge(glide, last+102*sec, last+3700*sec, 10); b.Tripped {
			t.Error("tripped after the reset")
		}
	})
	t.Run("it has been", func(t *testing.T) {
		t.Parallel()
		b, last := tripped()
		b.Judge(glide, last+10*sec, last+5*sec, 10)
		if ok, _ := b.Allow(last + 10*sec); b.Tripped || !ok || !b.ramping {
			t.Error("still tripped")
		}
	})
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		b, last := tripped()
		for i := range int64(300) {
			now := last + i*sec
			b.Sample(glide, now, 10, 1)
			b.Judge(glide, now, now+100*sec, 10)
			if want := i < 200; b.Tripped != want {
				t.Fatalf("tripped %v %d s after", b.Tripped, i)
			}
		}
	})
}

func TestBreakerStaysTrippedWhenTheLineGetsBetter(t *testing.T) {
	t.Parallel()
	var b Breaker
	last := feed(&b, glide, sec, 30, 20, 10)
	reset := last + 1000*sec
	b.Judge(glide, last, reset, 10)
	for now := last; now < reset; now += sec {
		b.Sample(glide, now, 10, 1)
		if b.Judge(glide, now, reset, 10); !b.Tripped {
			t.Fatalf("closed %d s before the reset", (reset-now)/sec)
		}
	}
}

func TestBreakerClosesWhenItHearsTooLittle(t *testing.T) {
	t.Parallel()
	for _, noticed := range []int64{1, 200_000, 999_999} { // us after the moment
		var b Breaker
		last := feed(&b, glide, sec, 40, 30, 20, 10)
		b.Judge(glide, last, last+1000*sec, 10)
		end := last - 2*sec + breakerMemory // of the third sample from the end
		if noticed > 1 {
			b.Judge(glide, last, last+1000*sec, 10)
		} else if b.Judge(glide, end, last+1000*sec, 10); !b.Tripped {
			t.Fatal("closed though three samples count")
		}
		if b.From != last {
			t.Fatal("closed, and tripped again")
		}
		b.Judge(glide, end+noticed, last+1000*sec, 10)
		if b.Tripped || b.ramp != end+1 || b.Samples() != 2 {
			t.Errorf("tripped %v, ramp from %d", b.Tripped, b.ramp-end)
		}
	}
}

// All callers always ask. The number of grants starts at one and doubles every half second.
func TestBreakerRampDoubles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Breaker{Tripped: true}
		start := noon + rapid.Int64Range(0, sec).Draw(t, "start")
		b.close(start)
		sent := int64(0)
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now += rapid.Int64Range(0, sec).Draw(t, "later")
			step := (now - start) / (sec / 2)
			if step > 12 {
				break
			}
			for {
				ok, at := b.Allow(now)
				if !ok {
					if at <= now || at-now > sec/2 || (at-start)%(sec/2) != 0 {
						t.Fatalf("asked to come back %d us later", at-now)
					}
					break
				}
				b.Sent(now)
				sent++
			}
			if sent != 1<<step {
				t.Fatalf("%d went in step %d", sent, step)
			}
		}
		over := start + 10*sec
		b.sent = math.MaxInt64
		if ok, _ := b.Allow(over - 1); ok {
			t.Fatal("the ramp was over early")
		}
		if ok, _ := b.Allow(over); !ok {
			t.Fatal("the ramp is not over after 10 s")
		}
	})
}

// exact is the least-squares line in rational numbers: the sign of its slope, and where
// it is zero.
func exact(samples []sample) (sign int, zero *big.Rat) {
	n := int64(len(samples))
	var x, y, xx, xy big.Int
	for _, s := range samples {
		t, left := big.NewInt(s.t), big.NewInt(s.left)
		x.Add(&x, t)
		y.Add(&y, left)
		xx.Add(&xx, new(big.Int).Mul(t, t))
		xy.Add(&xy, new(big.Int).Mul(t, left))
	}
	mul := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	over := new(big.Int).Sub(mul(big.NewInt(n), &xx), mul(&x, &x))
	slope := new(big.Int).Sub(mul(big.NewInt(n), &xy), mul(&x, &y))
	if over.Sign() == 0 || slope.Sign() == 0 {
		return 0, nil
	}
	base := new(big.Int).Sub(mul(&y, &xx), mul(&x, &xy)) // of the line at 0, times over
	return slope.Sign(), new(big.Rat).SetFrac(base.Neg(base), slope)
}

// drawSamples returns samples of every sort, in order of time.
func drawSamples(t *rapid.T) []sample {
	size := int64(1) << rapid.IntRange(0, 41).Draw(t, "size")
	step := int64(1) << rapid.IntRange(0, 23).Draw(t, "step")
	drift := rapid.Int64Range(-size/8, size/64).Draw(t, "drift")
	now, left := noon, rapid.Int64Range(0, size).Draw(t, "left")
	var all []sample
	for range rapid.IntRange(0, MaxSamples).Draw(t, "samples") {
		now += rapid.Int64Range(0, step).Draw(t, "gap")
		left = max(0, left+drift+rapid.Int64Range(-size/16, size/16).Draw(t, "noise"))
		all = append(all, sample{now, left})
	}
	return all
}

func TestBreakerFitIsTheExactOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := drawSamples(t)
		r := Rule{Within: 120 * sec, Samples: rapid.IntRange(1, MaxSamples).Draw(t, "rule")}
		var b Breaker
		for _, s := range all {
			b.Sample(r, s.t, s.left, math.MaxInt64/4) // nothing is a rise
		}
		if len(all) == 0 {
			return
		}
		last := all[len(all)-1]
		now := last.t + rapid.Int64Range(0, 100*sec).Draw(t, "later")
		reset := now + rapid.Int64Range(1, 4000*sec).Draw(t, "reset")
		b.Judge(r, now, reset, last.left)

		all = all[max(0, len(all)-r.Samples):]
		for len(all) > 0 && all[0].t < now-120*sec {
			all = all[1:]
		}
		sign, zero := 0, (*big.Rat)(nil)
		if len(all) >= 3 {
			sign, zero = exact(all)
		}
		if sign >= 0 {
			if b.Tripped || b.Gone != 0 {
				t.Fatalf("tripped %v, gone at %d though the line does not fall", b.Tripped, b.Gone)
			}
			return
		}
		want, _ := new(big.Rat).Sub(zero, new(big.Rat).SetInt64(last.t)).Float64()
		if b.Gone == 0 {
			if want < 0.6*breakerSight { // it can look later than it is
				t.Fatalf("no forecast, want %g us after the last sample", want)
			}
			return
		}
		got := float64(b.Gone - last.t)
		span := float64(max(last.t-all[0].t, 1))
		rounding := 1e-9 + math.Abs(want)/(2e11*span) // as the comment on forecast has it
		if math.Abs(got-math.Floor(want)) > 1+rounding*math.Abs(want) {
			t.Fatalf("gone %g us after the last sample, want %g", got, want)
		}
		if gone := max(b.Gone, now); b.Tripped != (gone < reset && gone-now <= r.Within) { // past is now
			t.Fatalf("tripped %v: gone in %d us, reset in %d us", b.Tripped, gone-now, reset-now)
		}
	})
}

// Whatever the samples, a tripped breaker has a reset ahead and enough samples, and its results are within bounds.
func TestBreakerInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b Breaker
		r := Rule{Within: 120 * sec, Samples: rapid.IntRange(0, 12).Draw(t, "samples"), Open: rapid.Bool().Draw(t, "open")}
		now, left := noon, int64(1000)
		reset := now + rapid.Int64Range(1, 600*sec).Draw(t, "reset")
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.Int64Range(0, 8*sec).Draw(t, "later")
			if now >= reset {
				reset = now + rapid.Int64Range(1, 600*sec).Draw(t, "next")
				left = 1000
			}
			left = max(0, left+rapid.Int64Range(-60, 3).Draw(t, "use"))
			if rapid.IntRange(0, 9).Draw(t, "told") > 0 {
				b.Sample(r, now, left, 5)
			}
			said := reset
			switch rapid.IntRange(0, 19).Draw(t, "said") {
			case 0:
				said = 0
			case 1:
				said += rapid.Int64Range(-2*sec, 2*sec).Draw(t, "moved")
			}
			was := b
			b.Judge(r, now, said, left)
			again := b
			if again.Judge(r, now, said, left); again != b && said > now {
				t.Fatal("judging twice is not judging once")
			}
			if b.Tripped && (b.Until <= now || b.Samples() < 3 || said == 0 || b.From > now || b.Room < 0) {
				t.Fatalf("tripped at %d: %+v", now, b)
			}
			if was.Tripped && now >= was.Until && b.Tripped && b.From == was.From {
				t.Fatal("still tripped after the reset")
			}
			if was.Tripped && !b.Tripped && !b.ramping {
				t.Fatal("closed without a ramp")
			}
			ok, at := b.Allow(now)
			if !ok && at <= now {
				t.Fatalf("held until %d, which has been", at-now)
			}
			if b.Tripped && ok == r.Open {
				t.Fatalf("allowed %v while tripped, open %v", ok, r.Open)
			}
			if ok {
				b.Sent(now)
			}
		}
	})
}

// With steady overuse it trips at least two minutes before the end, or with the third sample.
func TestBreakerTripsInTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b Breaker
		step := rapid.Int64Range(1, 30*sec).Draw(t, "step")
		cost := rapid.Int64Range(1, 1<<40).Draw(t, "cost")
		n := rapid.Int64Range(4, 300).Draw(t, "requests")
		end := noon + n*step
		reset := end + rapid.Int64Range(1, 7200*sec).Draw(t, "reset")
		for i := range n {
			now := noon + i*step
			b.Sample(glide, now, (n-i)*cost, cost)
			b.Judge(glide, now, reset, (n-i)*cost)
			soon := end-now <= 120*sec-2 // a forecast is rounded
			if i >= 2 && soon && !b.Tripped {
				t.Fatalf("not tripped %d us before the end, forecast %d", end-now, b.Gone-end)
			}
			if b.Tripped && end-now > 120*sec+2 {
				t.Fatalf("tripped %d us before the end", end-now)
			}
		}
	})
}
