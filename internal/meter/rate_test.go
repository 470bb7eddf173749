package meter

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkRate fails unless n/w is at most size/window, at most 0.1% below it, and small
// enough to count with.
func checkRate(t interface{ Fatalf(string, ...any) }, size, window, capacity, n, w int64) {
	product := func(f ...int64) *big.Int {
		p := big.NewInt(1)
		for _, x := range f {
			p.Mul(p, big.NewInt(x))
		}
		return p
	}
	if n <= 0 || w <= 0 {
		t.Fatalf("%d per %d: rate %d/%d", size, window, n, w)
	}
	if product(n, window).Cmp(product(size, w)) > 0 {
		t.Fatalf("%d per %d: %d/%d is faster", size, window, n, w)
	}
	if product(n, window, 1000).Cmp(product(size, w, 999)) < 0 {
		t.Fatalf("%d per %d: %d/%d is more than 0.1%% slower", size, window, n, w)
	}
	if most := big.NewInt(maxExact); product(capacity, w).Cmp(most) > 0 || product(n, w).Cmp(most) > 0 {
		t.Fatalf("%d per %d, capacity %d: %d/%d is not exact", size, window, capacity, n, w)
	}
}

func TestRateIsNeverFasterAndAtMostAThousandthSlower(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(1, 10_000), rapid.Int64Range(1, 10_000_000), rapid.Int64Range(1, MaxAmount))
		ones := rapid.Map(rapid.IntRange(1, 40), func(n int) int64 { return 1<<n - 1 }) // lose most by halving
		size, capacity := rapid.OneOf(amount, ones).Draw(t, "size"), amount.Draw(t, "capacity")
		window := rapid.OneOf(rapid.Int64Range(1000, second), rapid.Int64Range(1000, 100*day)).Draw(t, "window")
		n, w, err := Rate(size, window, capacity)
		if err != nil {
			refused++
			return
		}
		checkRate(t, size, window, capacity, n, w)
	})
	if refused == 0 {
		t.Error("nothing was refused: the test does not reach the edge")
	}
}

func TestRateCountsOrdinaryLimitsExactly(t *testing.T) {
	for _, c := range []struct{ size, window, n, w int64 }{
		{80, minute, 1, 750_000},
		{5, second, 1, 200_000},
		{2_000_000, minute, 1, 30},
		{5000, hour, 1, 720_000},
		{50_000_000, minute, 5, 6},
		{1_000_003, minute, 1_000_003, minute},
		{10_000, day, 1, 8_640_000},
	} {
		n, w, err := Rate(c.size, c.window, c.size)
		if err != nil || n != c.n || w != c.w {
			t.Errorf("%d per %d: %d/%d, %v, want %d/%d", c.size, c.window, n, w, err, c.n, c.w)
		}
	}
}

func TestRateRefusesWhatCannotBeCounted(t *testing.T) {
	for _, c := range []struct{ size, window, capacity int64 }{
		{1, 100 * day, MaxAmount},
		{7, 30 * day, 1_000_000},
		{997, day, 100_000_000},
	} {
		if n, w, err := Rate(c.size, c.window, c.capacity); err == nil {
			t.Errorf("%+v was taken as %d/%d", c, n, w)
		}
	}
}

func TestDrainLosesNoFractionOverAnySteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 2_000_000)).Draw(t, "size")
		window := rapid.SampledFrom([]int64{1000, second, minute, hour, day, 86_399_999_999}).Draw(t, "window")
		d, err := Compile(Bucket, Off, time.Duration(window)*time.Microsecond, 0)
		if err != nil {
			t.Fatal(err)
		}
		var m Meter
		if err := m.Start(&d, nil, epoch, size, 3*size, 0); err != nil {
			t.Fatal(err)
		}
		m.Take(&d, nil, epoch, 3*size, false)
		now := int64(epoch)
		for range 200 {
			longest := rapid.SampledFrom([]int64{3, ceilDiv(m.W, m.N), 3 * ceilDiv(m.W, m.N), window / 50}).Draw(t, "scale")
			now += rapid.Int64Range(0, longest).Draw(t, "step")
			if m.Advance(&d, nil, now); m.Level == 0 {
				break
			}
			want := new(big.Int).Mul(big.NewInt(now-epoch), big.NewInt(m.N))
			want.Div(want, big.NewInt(m.W))
			if drained := 3*size - m.Level; want.Int64() != drained {
				t.Fatalf("%d drained in %d at %d/%d, want %d", drained, now-epoch, m.N, m.W, want)
			}
		}
	})
}

func FuzzCompileAndCount(f *testing.F) {
	f.Add(uint8(0), uint8(0), int64(time.Minute), int64(0), int64(80), int64(80), int64(40), true)
	f.Add(uint8(0), uint8(0), int64(100*24*time.Hour), int64(time.Hour), int64(MaxAmount), int64(MaxAmount), int64(1), true)
	f.Add(uint8(1), uint8(1), int64(time.Millisecond), int64(1), int64(5), int64(0), int64(MaxAmount), false)
	f.Add(uint8(2), uint8(2), int64(time.Hour), int64(0), int64(5000), int64(0), int64(0), true)
	f.Add(uint8(3), uint8(0), int64(0), int64(0), int64(100), int64(0), int64(7), false)
	f.Add(uint8(0), uint8(0), int64(997*time.Millisecond), int64(5), int64(0), int64(0), int64(9973), true)
	f.Fuzz(func(t *testing.T, kind, guard uint8, window, slack, size, burst, again int64, slow bool) {
		d, err := Compile(Kind(kind%4), Guard(guard%3), time.Duration(window), time.Duration(slack))
		if err != nil {
			return
		}
		var m Meter
		var r *Ring
		if d.NeedsRing() {
			r = new(Ring)
		}
		now := int64(epoch)
		if err := m.Start(&d, r, now, size, burst, 0); err != nil {
			return
		}
		if d.Kind == Bucket && size > 0 {
			capacity := burst
			if capacity == 0 {
				capacity = size
			}
			checkRate(t, size, d.Window, capacity, m.N, m.W)
		}
		var charges [4]Charge
		for i := range charges {
			charges[i] = m.Take(&d, r, now, max(m.Room(&d, r)/2, 1), slow)
			now += d.Window / 7
			m.Advance(&d, r, now)
		}
		used := m.Used(&d, r)
		if err := m.Resize(&d, again, 0); err != nil && again >= 0 && again <= MaxAmount && d.Kind != Bucket {
			t.Fatalf("resize to %d: %v", again, err)
		}
		if d.Kind != Bucket && m.Used(&d, r) != used {
			t.Fatalf("a resize changed %d used to %d", used, m.Used(&d, r))
		}
		checkSound(t, &d, &m, r)
		for i := range charges {
			m.Bind(&d, r, now, &charges[i])
			m.Release(&d, &charges[i])
			checkSound(t, &d, &m, r)
		}
		at := m.ReadyAt(&d, r, now, max(m.Cap/2, 1))
		if at < now || at > Never {
			t.Fatalf("ready at %d, now %d", at, now)
		}
		m.Advance(&d, r, Never-1)
		checkSound(t, &d, &m, r)
		if d.Kind != Bucket && !m.Idle() {
			t.Fatalf("not idle in the end: %+v", m)
		}
	})
}
