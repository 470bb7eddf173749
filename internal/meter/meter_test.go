package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestWorkedNumbers(t *testing.T) {
	// Each step lets time pass, does something, and states the room that is left.
	type step struct {
		after time.Duration
		do    string // take, slow (take with slow headers), bind, release: of the first open charge
		cost  int64
		room  int64
	}
	for _, c := range []struct {
		name        string
		kind        Kind
		guard       Guard
		window      time.Duration
		size, burst int64
		reset       time.Duration
		steps       []step
	}{
		{"80 a minute", Rolling, Auto, time.Minute, 80, 0, 0, []step{
			{0, "take", 80, 0},
			{300 * time.Millisecond, "bind", 0, 0},
			{60 * time.Second, "", 0, 0}, // 300 ms after the grant's own minute
			{234_375 * time.Microsecond, "", 0, 80},
		}},
		{"80 a minute, slow headers: the slack of 1 s bounds", Rolling, Auto, time.Minute, 80, 0, 0, []step{
			{0, "slow", 80, 0},
			{61 * time.Second, "", 0, 0},
			{234_375 * time.Microsecond, "", 0, 80},
		}},
		{"80 a minute, unanswered", Rolling, Strict, time.Minute, 80, 0, 0, []step{
			{0, "slow", 30, 50},
			{time.Hour, "", 0, 50},
			{0, "bind", 0, 50},
			{61 * time.Second, "", 0, 80},
		}},
		{"5 a minute", Rolling, Off, time.Minute, 5, 0, 0, []step{
			{0, "take", 1, 4},
			{30 * time.Second, "take", 4, 0},
			{29 * time.Second, "", 0, 0},
			{1_234_375 * time.Microsecond, "", 0, 1},
			{30 * time.Second, "", 0, 5},
		}},
		{"2,000,000 tokens a minute", Rolling, Auto, time.Minute, 2_000_000, 0, 0, []step{
			{0, "take", 1_999_999, 1},
			{2 * time.Second, "bind", 0, 1},
			{58 * time.Second, "take", 1, 0},
			{0, "bind", 0, 0},
			{2 * time.Second, "", 0, 0},
			{234_375 * time.Microsecond, "", 0, 1_999_999},
			{58 * time.Second, "", 0, 2_000_000},
		}},
		{"50 burst, 5 a second", Bucket, Off, time.Second, 5, 50, 0, []step{
			{0, "take", 50, 0},
			{199_999 * time.Microsecond, "", 0, 0},
			{time.Microsecond, "", 0, 1},
			{time.Second, "", 0, 6},
			{8 * time.Second, "", 0, 46},
			{800 * time.Millisecond, "", 0, 50},
			{time.Hour, "take", 1, 49},
			{199_999 * time.Microsecond, "", 0, 49},
			{time.Microsecond, "", 0, 50},
		}},
		{"50 burst, 5 a second, guarded: nothing drains before the answer", Bucket, Auto, time.Second, 5, 50, 0, []step{
			{0, "take", 50, 0},
			{time.Second, "", 0, 0},
			{0, "bind", 0, 0},
			{time.Second, "", 0, 5},
		}},
		{"5,000 an hour until a reset", Fixed, Auto, time.Hour, 5000, 0, 30 * time.Minute, []step{
			{0, "take", 5000, 0},
			{time.Second, "bind", 0, 0},
			{30 * time.Minute, "", 0, 0},
			{199_999 * time.Microsecond, "", 0, 0},
			{time.Microsecond, "", 0, 5000},
			{0, "take", 2000, 3000},
			{0, "bind", 0, 3000},
			{time.Hour - 1, "", 0, 3000},
			{time.Microsecond, "", 0, 5000},
		}},
		{"100 in flight", Concurrency, Auto, 0, 100, 0, 0, []step{
			{0, "take", 99, 1},
			{0, "take", 1, 0},
			{time.Hour, "bind", 0, 0},
			{0, "release", 0, 99},
			{0, "release", 0, 100},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := compile(t, c.kind, c.guard, c.window)
			now := int64(epoch)
			if c.kind == Rolling {
				now = epoch / d.Slice * d.Slice // so that the slices of the example are round
			}
			reset := int64(0)
			if c.reset > 0 {
				reset = now + c.reset.Microseconds()
			}
			m, r := start(t, &d, now, c.size, c.burst, reset)
			var open []Charge
			for i, s := range c.steps {
				now += s.after.Microseconds()
				m.Advance(&d, r, now)
				switch s.do {
				case "take", "slow":
					if room := m.Room(&d, r); room < s.cost {
						t.Fatalf("step %d: room %d for %d", i, room, s.cost)
					}
					open = append(open, m.Take(&d, r, now, s.cost, s.do == "slow"))
				case "bind":
					m.Bind(&d, r, now, &open[0])
					if d.Kind != Concurrency {
						open = open[1:]
					}
				case "release":
					m.Release(&d, &open[0])
					open = open[1:]
				}
				if room := m.Room(&d, r); room != s.room {
					t.Fatalf("step %d (%+v): room %d", i, s, room)
				}
			}
		})
	}
}

func TestCompileRefusesWhatIsOutOfRange(t *testing.T) {
	for _, c := range []struct {
		kind          Kind
		window, slack time.Duration
		ok            bool
	}{
		{Rolling, time.Millisecond, 0, true},
		{Rolling, time.Millisecond - 1, 0, false},
		{Fixed, 100 * 24 * time.Hour, 0, true},
		{Fixed, 100*24*time.Hour + 1, 0, false},
		{Bucket, time.Second, time.Hour, true},
		{Bucket, time.Second, time.Hour + 1, false},
		{Bucket, time.Second, -1, false},
		{Bucket, -time.Second, 0, false},
		{Concurrency, 0, 0, true},
	} {
		if _, err := Compile(c.kind, Auto, c.window, c.slack); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSlackIsOneAndAHalfPercentWithinASecondAndThirty(t *testing.T) {
	for window, want := range map[time.Duration]int64{
		time.Second:      second,
		time.Minute:      second,
		10 * time.Minute: 9 * second,
		time.Hour:        30 * second,
		24 * time.Hour:   30 * second,
	} {
		if d := compile(t, Rolling, Auto, window); d.Slack != want {
			t.Errorf("window %v: slack %d, want %d", window, d.Slack, want)
		}
		if d := compile(t, Rolling, Off, window); d.Slack != 0 || d.Most != 0 {
			t.Errorf("window %v without a guard: slack %d, at most %d", window, d.Slack, d.Most)
		}
	}
	d, err := Compile(Rolling, Auto, time.Minute, 1)
	if err != nil || d.Slack != 1 {
		t.Errorf("a slack of a nanosecond became %d, %v", d.Slack, err)
	}
}

func TestRingReachesFromAWindowAgoToTheLargestSlackAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{Rolling, Fixed, Bucket}).Draw(t, "kind")
		window := rapid.Int64Range(1000, 100*day).Draw(t, "window")
		slack := rapid.Int64Range(0, hour).Draw(t, "slack")
		d, err := Compile(kind, Auto, time.Duration(window)*time.Microsecond, time.Duration(slack)*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		span := d.Most
		if kind != Bucket {
			span += d.Window
			if most := max(ceilDiv(window, 250), ceilDiv(window+d.Most, 500)); d.Slice > most {
				t.Fatalf("slices of %d, more than %d", d.Slice, most)
			}
		}
		if need := span/d.Slice + 2; need > slots {
			t.Fatalf("%d slices of %d needed", need, d.Slice)
		}
	})
}

func TestUnknownCapacityRefusesNothing(t *testing.T) {
	for _, kind := range []Kind{Bucket, Rolling, Fixed, Concurrency} {
		d := compile(t, kind, Auto, time.Minute)
		m, r := start(t, &d, epoch, 0, 0, 0)
		for range 100 {
			m.Take(&d, r, epoch, 1000, true)
		}
		if room := m.Room(&d, r); room != MaxAmount {
			t.Errorf("kind %d: room %d", kind, room)
		}
		if at := m.ReadyAt(&d, r, epoch, 5); at != epoch {
			t.Errorf("kind %d: ready %d from now", kind, at-epoch)
		}
	}
}

func TestBucketWhoseRateIsLearnedIsFullAtTheMost(t *testing.T) {
	d := compile(t, Bucket, Off, time.Second)
	m, r := start(t, &d, epoch, 0, 0, 0)
	var last Charge
	for range 10_000 {
		last = m.Take(&d, r, epoch, MaxAmount, false)
	}
	m.Advance(&d, r, epoch+minute)
	if err := m.Resize(&d, 5, 50); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, &d, m, r, 50, "as the rate is learned")
	m.Refund(&d, r, epoch+minute, &last)
	wantUsed(t, &d, m, r, 50, "an earlier charge refunded")
	m.Advance(&d, r, epoch+minute+second)
	wantUsed(t, &d, m, r, 45, "a second later")
}

func TestRefundWhileTheRateIsUnknownIsComplete(t *testing.T) {
	d := compile(t, Bucket, Off, time.Second)
	m, r := start(t, &d, epoch, 0, 0, 0)
	c := m.Take(&d, r, epoch, 7, false)
	m.Advance(&d, r, epoch+second)
	m.Refund(&d, r, epoch+second, &c)
	wantUsed(t, &d, m, r, 0, "nothing had drained")
}

func TestResizeKeepsEveryCharge(t *testing.T) {
	for _, kind := range []Kind{Bucket, Rolling, Fixed, Concurrency} {
		d := compile(t, kind, Auto, time.Minute)
		m, r := start(t, &d, epoch, 100, 100, epoch+minute)
		m.Take(&d, r, epoch, 40, true)
		m.Take(&d, r, epoch, 30, false)
		for _, size := range []int64{50, 1000, 0, 100} {
			if err := m.Resize(&d, size, 0); err != nil {
				t.Fatal(err)
			}
			wantUsed(t, &d, m, r, 70, "after a resize")
		}
		if room := m.Room(&d, r); room != 30 {
			t.Errorf("kind %d: room %d", kind, room)
		}
		for _, size := range []int64{-1, MaxAmount + 1} {
			if err := m.Resize(&d, size, 0); err == nil {
				t.Errorf("kind %d: size %d was taken", kind, size)
			}
			if room := m.Room(&d, r); room != 30 {
				t.Errorf("kind %d: a refused resize left room %d", kind, room)
			}
		}
	}
}

func TestSlowerRateGivesBackNothingThatDrainedAtTheFasterOne(t *testing.T) {
	d := compile(t, Bucket, Off, time.Second)
	m, r := start(t, &d, epoch, 10, 100, 0)
	old := m.Take(&d, r, epoch, 10, false)
	m.Advance(&d, r, epoch+second) // gone
	m.Take(&d, r, epoch+second, 20, false)
	if err := m.Resize(&d, 1, 100); err != nil {
		t.Fatal(err)
	}
	m.Refund(&d, r, epoch+second, &old)
	wantUsed(t, &d, m, r, 20, "the old one refunded")
}

func TestNewRateDropsTheFractionOfTheOldScale(t *testing.T) {
	d := compile(t, Bucket, Off, time.Second)
	m, r := start(t, &d, epoch, 1, 100, 0)
	m.Take(&d, r, epoch, 10, false)
	m.Advance(&d, r, epoch+second-1)
	if err := m.Resize(&d, 1000, 100); err != nil {
		t.Fatal(err)
	}
	m.Advance(&d, r, epoch+second)
	wantUsed(t, &d, m, r, 10, "a microsecond of the new rate")
}

func TestLargestAmountsAndWindowsDoNotOverflow(t *testing.T) {
	const longest = 100 * 24 * time.Hour
	for _, window := range []time.Duration{time.Millisecond, time.Minute, longest} {
		for _, kind := range []Kind{Bucket, Rolling, Fixed, Concurrency} {
			d := compile(t, kind, Auto, window)
			burst := int64(MaxAmount)
			for kind == Bucket {
				if _, _, err := Rate(MaxAmount, d.Window, burst); err == nil {
					break
				}
				burst /= 2
			}
			m, r := start(t, &d, epoch, MaxAmount, burst, epoch+1)
			now := int64(epoch)
			for _, slow := range []bool{true, false, true} {
				c := m.Take(&d, r, now, MaxAmount, slow) // over the limit, as settlements may be
				m.Settle(&d, r, now, &c, MaxAmount)
				if at := m.ReadyAt(&d, r, now, MaxAmount); at < now || at > Never {
					t.Errorf("kind %d, window %v: ready at %d", kind, window, at)
				}
				if at := m.Estimate(&d, r, now, MaxAmount, MaxAmount, max(d.Window, 1)); at < now || at > Never {
					t.Errorf("kind %d, window %v: estimated at %d", kind, window, at)
				}
				if room := m.Room(&d, r); room > 0 {
					t.Errorf("kind %d, window %v: room %d", kind, window, room)
				}
				now += d.Window / 10
				m.Advance(&d, r, now)
				m.Bind(&d, r, now, &c)
				checkSound(t, &d, m, r)
				m.Release(&d, &c)
			}
			m.Advance(&d, r, now+5*d.Window+hour)
			checkSound(t, &d, m, r)
			m.Advance(&d, r, Never-1)
			if !m.Idle() {
				t.Errorf("kind %d, window %v: left %+v", kind, window, *m)
			}
		}
	}
}

func TestFasterBucketThatBecomesVerySlowDoesNotOverflow(t *testing.T) {
	d := compile(t, Bucket, Auto, 100*24*time.Hour)
	m, r := start(t, &d, epoch, MaxAmount, 1<<30, 0)
	c := m.Take(&d, r, epoch, 1<<30, false)
	m.Bind(&d, r, epoch, &c)
	if err := m.Resize(&d, 1, 1); err != nil {
		t.Fatal(err)
	}
	m.Advance(&d, r, epoch+day)
	checkSound(t, &d, m, r)
	if room := m.Room(&d, r); room > 0 {
		t.Errorf("room %d a day after a bucket was made 1 in 100 days", room)
	}
	if at := m.ReadyAt(&d, r, epoch+day, 1); at <= epoch+day || at > Never {
		t.Errorf("ready at %d", at)
	}
}

func TestUnexplainedRefusalsDoubleTheSlackAndCutTheCapacity(t *testing.T) {
	d := compile(t, Rolling, Auto, time.Minute)
	m, r := start(t, &d, epoch, 1000, 0, 0)
	now := int64(epoch)
	odd := func(after int64, cut bool, slack, capacity int64) {
		t.Helper()
		now += after
		m.Advance(&d, r, now)
		if got := r.Odd(&d, now); got != cut {
			t.Errorf("Odd says cut %v, want %v", got, cut)
		}
		if got := SlackOf(&d, r); got != slack {
			t.Errorf("slack %d, want %d", got, slack)
		}
		if got := SlowBeyond(&d, r); got != 2*slack {
			t.Errorf("slow beyond %d, want %d", got, 2*slack)
		}
		if got := m.Capacity(r); got != capacity {
			t.Errorf("capacity %d, want %d", got, capacity)
		}
	}
	odd(0, false, 2*second, 1000)
	odd(hour+1, false, 4*second, 1000)
	odd(hour, true, 7_500_000, 950) // an eighth of a minute, and no more
	odd(minute, true, 7_500_000, 900)
	for n, want := range []int64{910, 920, 930, 940, 950, 960, 970, 980, 990, 1000, 1000} {
		m.Advance(&d, r, now+hour-1)
		if got := m.Capacity(r); got != want-10 && got != 1000 {
			t.Errorf("just before hour %d: capacity %d", n+1, got)
		}
		now += hour
		m.Advance(&d, r, now)
		if got := m.Capacity(r); got != want {
			t.Errorf("after %d hours: capacity %d, want %d", n+1, got, want)
		}
	}
	for range 100 {
		r.Odd(&d, now)
	}
	if got := m.Capacity(r); got != 500 {
		t.Errorf("capacity %d after a hundred refusals, want no less than half", got)
	}
	m.Advance(&d, r, now+1000*hour)
	if got := m.Capacity(r); got != 1000 {
		t.Errorf("capacity %d after a thousand hours", got)
	}
}

func TestRefusalSaysNothingOfALimitWithoutAGuard(t *testing.T) {
	d := compile(t, Rolling, Off, time.Minute)
	m, r := start(t, &d, epoch, 1000, 0, 0)
	if r.Odd(&d, epoch) || r.Odd(&d, epoch+1) || m.Capacity(r) != 1000 || SlackOf(&d, r) != 0 {
		t.Errorf("capacity %d, slack %d", m.Capacity(r), SlackOf(&d, r))
	}
	c := compile(t, Concurrency, Auto, 0)
	var none *Ring
	if none.Odd(&c, epoch) {
		t.Error("a limit without a ring was cut")
	}
}

func TestCutCapacityIsReadyAgainWhenItIsRegained(t *testing.T) {
	d := compile(t, Rolling, Auto, time.Minute)
	m, r := start(t, &d, epoch, 1000, 0, 0)
	r.Odd(&d, epoch)
	r.Odd(&d, epoch)
	for need, hours := range map[int64]int64{950: 0, 951: 1, 960: 1, 961: 2, 1000: 5} {
		if at := m.ReadyAt(&d, r, epoch, need); at != epoch+hours*hour {
			t.Errorf("need %d of 950: ready after %d, want %d hours", need, at-epoch, hours)
		}
	}
	if at := m.ReadyAt(&d, r, epoch, 1001); at != Never {
		t.Errorf("more than the limit: ready after %d", at-epoch)
	}
}

func TestSettlingAPlacedChargeThenBindingItChargesItOnce(t *testing.T) {
	for _, kind := range []Kind{Bucket, Rolling, Fixed} {
		for _, late := range []int64{0, 1} { // before its mark, and in the slice of its mark
			d := compile(t, kind, Auto, time.Minute)
			m, r := start(t, &d, epoch, 1000, 1000, epoch+minute/2)
			c := m.Take(&d, r, epoch, 10, true)
			now := epoch + late*d.Slack
			m.Advance(&d, r, now)
			m.Settle(&d, r, now, &c, 25)
			wantUsed(t, &d, m, r, 25, "settled")
			m.Bind(&d, r, now, &c)
			wantUsed(t, &d, m, r, 25, "bound")
		}
	}
}

func TestSettlingAHeldChargeThenBindingItLeavesNothingHeld(t *testing.T) {
	for _, kind := range []Kind{Bucket, Rolling, Fixed} {
		d := compile(t, kind, Strict, time.Minute)
		m, r := start(t, &d, epoch, 1000, 1000, epoch+minute/2)
		c := m.Take(&d, r, epoch, 10, false)
		m.Settle(&d, r, epoch, &c, 25)
		wantUsed(t, &d, m, r, 25, "settled")
		m.Bind(&d, r, epoch, &c)
		wantUsed(t, &d, m, r, 25, "bound")
		if m.Held != 0 {
			t.Errorf("kind %d: %d held", kind, m.Held)
		}
	}
}

func TestSpentRequestOnAShortFixedWindowStandsForItsSlack(t *testing.T) {
	d := compile(t, Fixed, Auto, 3*time.Second)
	m, r := start(t, &d, epoch, 10, 0, epoch+1)
	c := m.Take(&d, r, epoch, 10, false)
	m.Spend(&d, r, epoch, epoch, &c)
	brief := m.Brief(&d, r)
	m.Advance(&d, r, epoch+brief+d.Window)
	wantUsed(t, &d, m, r, 10, "while the request may have been within the window")
	m.Advance(&d, r, epoch+brief+d.Window+d.Slice)
	wantUsed(t, &d, m, r, 0, "a slice later")
}

func TestRequestWithoutAnAnswerHasThreeTenthsOfASmallLimitToArrive(t *testing.T) {
	for _, c := range []struct {
		kind        Kind
		window      time.Duration
		size, burst int64
		want        int64
	}{
		{Bucket, time.Second, 1, 1, 300_000},
		{Bucket, time.Second, 5, 5, 300_000},
		{Bucket, time.Second, 5, 10, 600_000},
		{Bucket, time.Second, 5, 50, second},
		{Bucket, time.Second, 10, 1, leastBrief},
		{Rolling, time.Second, 1, 0, 300_000},
		{Rolling, 3 * time.Second, 30, 0, 900_000},
		{Rolling, time.Minute, 80, 0, second},
		{Rolling, time.Hour, 80, 0, 30 * second},
		{Fixed, 2 * time.Second, 10, 0, 600_000},
	} {
		d := compile(t, c.kind, Auto, c.window)
		m, r := start(t, &d, epoch, c.size, c.burst, 0)
		if got := m.Brief(&d, r); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
		r.Odd(&d, epoch)
		if got := m.Brief(&d, r); got != SlackOf(&d, r) {
			t.Errorf("%+v after an unexplained refusal: %d, the slack is %d", c, got, SlackOf(&d, r))
		}
	}
	d, err := Compile(Bucket, Auto, time.Second, 800*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	m, r := start(t, &d, epoch, 1, 1, 0)
	if got := m.Brief(&d, r); got != 800_000 {
		t.Errorf("a slack of 800 ms that somebody chose became %d", got)
	}
}

func TestEstimateCountsWindowsAhead(t *testing.T) {
	d := compile(t, Rolling, Off, time.Minute)
	m, r := start(t, &d, epoch, 80, 0, 0)
	m.Take(&d, r, epoch, 80, false)
	first := m.ReadyAt(&d, r, epoch, 1)
	for ahead, windows := range map[int64]int64{0: 0, 79: 0, 80: 1, 800: 10} {
		if got := m.Estimate(&d, r, epoch, ahead, 1, minute); got != first+windows*minute {
			t.Errorf("%d ahead: %d after the first room, want %d windows", ahead, got-first, windows)
		}
		if got := m.Estimate(&d, r, epoch, ahead, 1, 10*second); got != first+windows*10*second {
			t.Errorf("%d ahead: %d after the first room, want %d times 10 s", ahead, got-first, windows)
		}
	}
	b := compile(t, Bucket, Off, time.Second)
	n, _ := start(t, &b, epoch, 5, 50, 0)
	n.Take(&b, nil, epoch, 50, false)
	if got := n.Estimate(&b, nil, epoch, 99, 1, second); got != epoch+20*second {
		t.Errorf("100 at 5 a second: %d from now, want 20 s", got-epoch)
	}
}

func TestOrdinaryOperationsAllocateNothing(t *testing.T) {
	for _, kind := range []Kind{Bucket, Rolling, Fixed, Concurrency} {
		for _, slow := range []bool{false, true} {
			d := compile(t, kind, Auto, time.Minute)
			m, r := start(t, &d, epoch, 1000, 1000, epoch+minute)
			now := int64(epoch)
			if n := testing.AllocsPerRun(100, func() {
				now += second
				m.Advance(&d, r, now)
				m.ReadyAt(&d, r, now, 1000)
				c := m.Take(&d, r, now, 3, slow)
				m.Bind(&d, r, now, &c)
				m.Settle(&d, r, now, &c, 2)
				m.Release(&d, &c)
				c = m.Take(&d, r, now, 3, slow)
				m.Spend(&d, r, now, now, &c)
				m.Refund(&d, r, now, &c)
				m.ObserveReset(&d, r, now, now+minute/2, now+minute/2+second)
			}); n != 0 {
				t.Errorf("kind %d, slow %v: %v allocations", kind, slow, n)
			}
		}
	}
}

func BenchmarkTakeBindAdvance(b *testing.B) {
	for name, kind := range map[string]Kind{"bucket": Bucket, "rolling": Rolling, "fixed": Fixed} {
		b.Run(name, func(b *testing.B) {
			d := compile(b, kind, Auto, time.Minute)
			m, r := start(b, &d, epoch, 1_000_000, 1_000_000, epoch+minute)
			b.ReportAllocs()
			for now := int64(epoch); b.Loop(); now += 100 {
				m.Advance(&d, r, now)
				c := m.Take(&d, r, now, 1, false)
				m.Bind(&d, r, now, &c)
			}
		})
	}
}

// An overcharge of a full bucket comes back although the bucket has drained more than that since. An overcharge of
// an empty bucket has come back by itself.
func TestBucketGivesBackWhatItWasChargedTooMuch(t *testing.T) {
	d := compile(t, Bucket, Auto, time.Minute)
	begin := (epoch/stretch + 1) * stretch
	m, r := start(t, &d, begin, 600, 600, 0) // ten a second
	bound := func(at, amount int64) Charge {
		m.Advance(&d, r, at)
		c := m.Take(&d, r, at, amount, false)
		m.Bind(&d, r, at, &c)
		return c
	}
	bound(begin, 500)
	now := begin + stretch + second
	one, two := bound(now, 50), bound(now, 50)
	wantUsed(t, &d, m, r, 290, "before anything is settled")
	now += 20 * second
	m.Advance(&d, r, now)
	wantUsed(t, &d, m, r, 90, "20 s later")
	m.Settle(&d, r, now, &one, 10)
	wantUsed(t, &d, m, r, 50, "40 of 50 were too much, though 200 have drained")
	m.Settle(&d, r, now, &two, 0)
	wantUsed(t, &d, m, r, 0, "and 50 of 50")
	three := bound(now, 30)
	now += second
	m.Advance(&d, r, now)
	bound(now, 100)
	m.Settle(&d, r, now, &three, 0)
	wantUsed(t, &d, m, r, 100, "10 of the 30 had come back by themselves")
}
