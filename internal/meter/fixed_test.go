package meter

import (
	"math"
	"testing"
	"time"
)

const epoch = 1_700_000_000 * second

func compile(t testing.TB, kind Kind, guard Guard, window time.Duration) Def {
	t.Helper()
	d, err := Compile(kind, guard, window, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func start(t testing.TB, d *Def, at, size, burst, reset int64) (*Meter, *Ring) {
	t.Helper()
	m := new(Meter)
	var r *Ring
	if d.NeedsRing() {
		r = new(Ring)
	}
	if err := m.Start(d, r, at, size, burst, reset); err != nil {
		t.Fatal(err)
	}
	return m, r
}

func wantUsed(t *testing.T, d *Def, m *Meter, r *Ring, want int64, when string) {
	t.Helper()
	if got := m.Used(d, r); got != want {
		t.Errorf("%s: %d used, want %d", when, got, want)
	}
	checkSound(t, d, m, r)
}

func TestChargeNearTheResetCountsOnBothSides(t *testing.T) {
	const lo, hi = epoch + hour - resetSlop, epoch + hour + resetSlop
	for _, c := range []struct {
		name           string
		granted, bound int64
		inThis, inNext int64
	}{
		{"over before the interval", lo - 10, lo - 1, 1, 0},
		{"bound as the interval begins", lo - 10, lo, 1, 1},
		{"within the interval", lo + 1, hi - 1, 1, 1},
		{"around the interval", lo - 1, hi + 1, 1, 1},
		{"bound as the new window opens", lo - 1, hi, 1, 1},
		{"after the interval", hi, hi + 1, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := compile(t, Fixed, Auto, time.Hour)
			m, r := start(t, &d, epoch, 100, 0, epoch+hour)
			m.Advance(&d, r, c.granted)
			k := m.Take(&d, r, c.granted, 1, false)
			if c.bound < hi {
				m.Bind(&d, r, c.bound, &k)
			}
			if c.granted < hi {
				m.Advance(&d, r, hi-1)
				wantUsed(t, &d, m, r, c.inThis, "before the new window")
			}
			m.Advance(&d, r, max(hi, c.bound))
			m.Bind(&d, r, max(hi, c.bound), &k)
			wantUsed(t, &d, m, r, c.inNext, "in the new window")
			m.Advance(&d, r, hi+hour)
			wantUsed(t, &d, m, r, 0, "in the window after it")
		})
	}
}

func TestPlacedChargeThatMayArriveAfterTheResetCountsOnBothSides(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	lo, hi := m.Last, m.Hi
	m.Advance(&d, r, lo-d.Slack-1)
	m.Take(&d, r, lo-d.Slack-1, 1, true) // arrives before lo at the latest
	m.Take(&d, r, lo-d.Slack, 10, true)
	wantUsed(t, &d, m, r, 11, "before the reset")
	m.Advance(&d, r, hi)
	wantUsed(t, &d, m, r, 10, "after the reset")
}

func TestLongSilenceDropsWhatBothWindowsCounted(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	m.Advance(&d, r, m.Last)
	k := m.Take(&d, r, m.Last, 7, false)
	held := m.Take(&d, r, m.Last, 3, false)
	m.Bind(&d, r, m.Last, &k)
	m.Advance(&d, r, m.Hi+5*hour+1)
	wantUsed(t, &d, m, r, 3, "five windows later only what is held stands")
	m.Bind(&d, r, m.Hi-hour+1, &held)
	m.Advance(&d, r, m.Hi)
	wantUsed(t, &d, m, r, 0, "in the end")
}

func TestObserveResetNarrowsWhatAgrees(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	m.ObserveReset(&d, r, epoch, epoch+hour-200_000, epoch+hour+2*second)
	if m.Last != epoch+hour-200_000 || m.Hi != epoch+hour+resetSlop {
		t.Errorf("reset between %d and %d around the hour", m.Last-epoch-hour, m.Hi-epoch-hour)
	}
	m.ObserveReset(&d, r, epoch, epoch+hour-second, epoch+hour+100_000)
	if m.Last != epoch+hour-200_000 || m.Hi != epoch+hour+100_000 {
		t.Errorf("then between %d and %d", m.Last-epoch-hour, m.Hi-epoch-hour)
	}
}

func TestStatementFromBeforeTheResetChangesNothing(t *testing.T) {
	for _, age := range []int64{1, 2, 3, 1000} {
		d := compile(t, Fixed, Auto, time.Hour)
		m, r := start(t, &d, epoch, 100, 0, epoch+age*hour)
		m.ObserveReset(&d, r, epoch, epoch+hour-100_000, epoch+hour+100_000)
		now := epoch + age*hour + minute
		m.Advance(&d, r, now)
		m.Take(&d, r, now, 5, true)
		before := *m
		m.ObserveReset(&d, r, now, epoch+hour-resetSlop, epoch+hour+resetSlop)
		if *m != before {
			t.Errorf("%d windows old: %+v became %+v", age, before, *m)
		}
	}
}

func TestStatementOfTheResetJustPassedDoesNotOpenASecondWindow(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	m.ObserveReset(&d, r, epoch, epoch+hour-100_000, epoch+hour+100_000)
	now := epoch + hour + second/2 // passed by what is known, not by what an old answer says
	m.Advance(&d, r, now)
	k := m.Take(&d, r, now, 9, false)
	m.Bind(&d, r, now, &k)
	m.ObserveReset(&d, r, now, epoch+hour-resetSlop, epoch+hour+resetSlop)
	if m.Last != epoch+2*hour-100_000 || m.Hi != epoch+2*hour+100_000 {
		t.Errorf("the next reset is now %d to %d from now", m.Last-now, m.Hi-now)
	}
	m.Advance(&d, r, epoch+hour+2*second)
	wantUsed(t, &d, m, r, 9, "after the end of the old statement")
	m.Advance(&d, r, epoch+2*hour+second)
	wantUsed(t, &d, m, r, 0, "in the next window")
}

func TestResetMovedEarlierKeepsWhatMayHaveArrivedAfterIt(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	now := epoch + 10*minute
	m.Advance(&d, r, now)
	k := m.Take(&d, r, now, 9, false)
	m.Bind(&d, r, now, &k)
	// The window ends about now, says the provider: the 9 may have been after it.
	m.ObserveReset(&d, r, now+1, now-second, now+second)
	m.Advance(&d, r, now+second)
	wantUsed(t, &d, m, r, 9, "after the moved reset")
	m.Advance(&d, r, now+second+hour)
	wantUsed(t, &d, m, r, 0, "a window later")
}

func TestResetMovedFarAheadOfAllArrivalsChargesOneWindowOnly(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	k := m.Take(&d, r, epoch, 9, false)
	m.Bind(&d, r, epoch, &k)
	m.ObserveReset(&d, r, epoch, epoch+20*minute, epoch+20*minute+second)
	m.Advance(&d, r, epoch+20*minute+second)
	wantUsed(t, &d, m, r, 0, "after the moved reset")
}

func TestSettlingAChargeOfAnEarlierWindowTakesNothingFromThisOne(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	early := epoch + 50*minute
	m.Advance(&d, r, early)
	old := m.Take(&d, r, early, 50, false)
	m.Bind(&d, r, early, &old)
	now := epoch + hour + minute
	m.Advance(&d, r, now)
	wantUsed(t, &d, m, r, 0, "the new window")
	k := m.Take(&d, r, now, 60, false)
	m.Bind(&d, r, now, &k)
	// With the reset at :45 the old charge would lie within a window of it.
	m.ObserveReset(&d, r, now, epoch+105*minute, epoch+105*minute+second)
	m.Settle(&d, r, now, &old, 1)
	wantUsed(t, &d, m, r, 60, "after the old charge was settled")
}

func TestWindowOfUnknownPhaseIsKeptAsRolling(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, 0)
	k := m.Take(&d, r, epoch, 9, false)
	m.Bind(&d, r, epoch, &k)
	m.Advance(&d, r, epoch+hour-1)
	wantUsed(t, &d, m, r, 9, "just before a window has passed")
	m.Advance(&d, r, epoch+hour+d.Slice)
	wantUsed(t, &d, m, r, 0, "a window and a slice later")
}

func TestLearningTheResetLosesNoCharge(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 1000, 0, 0)
	m.Advance(&d, r, epoch+minute)
	bound := m.Take(&d, r, epoch+minute, 1, false)
	m.Bind(&d, r, epoch+minute, &bound)
	now := epoch + 50*minute
	m.Advance(&d, r, now)
	recent := m.Take(&d, r, now, 10, false)
	m.Bind(&d, r, now, &recent)
	m.Take(&d, r, now, 100, true)          // placed
	held := m.Take(&d, r, now, 200, false) // held
	m.ObserveReset(&d, r, now, now-second, now+second)
	wantUsed(t, &d, m, r, 311, "as the reset is learned")
	m.Advance(&d, r, now+second)
	wantUsed(t, &d, m, r, 310, "after it, all that may have arrived since")
	m.Bind(&d, r, now+2*second, &held)
	m.Advance(&d, r, now+hour+second)
	wantUsed(t, &d, m, r, 0, "a window later")
}

func TestRefundAfterLearningTheResetTakesOutWhatWasEntered(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 1000, 0, 0)
	placed := m.Take(&d, r, epoch, 100, true)
	held := m.Take(&d, r, epoch, 200, false)
	m.ObserveReset(&d, r, epoch, epoch+second, epoch+3*second)
	m.Refund(&d, r, epoch, &placed)
	wantUsed(t, &d, m, r, 200, "without the placed one")
	m.Refund(&d, r, epoch, &held)
	if !m.Idle() || m.Rem != 0 {
		t.Errorf("left: %+v", *m)
	}
}

func TestShortWindowIsNotCountedByResetsThatAreHardlyKnown(t *testing.T) {
	for _, window := range []time.Duration{time.Millisecond, time.Second, 4700 * time.Millisecond} {
		d := compile(t, Fixed, Auto, window)
		m, r := start(t, &d, epoch, 100, 0, epoch+1)
		m.ObserveReset(&d, r, epoch, epoch-resetSlop, epoch+resetSlop)
		if m.Hi != 0 {
			t.Errorf("window %v: reset taken as between %d and %d", window, m.Last-epoch, m.Hi-epoch)
		}
	}
	d := compile(t, Fixed, Auto, 4800*time.Millisecond)
	if m, _ := start(t, &d, epoch, 100, 0, epoch+1); m.Hi == 0 {
		t.Error("window of 4.8s: reset not taken")
	}
}

func TestAbsurdResetIsIgnoredAtOnce(t *testing.T) {
	d := compile(t, Fixed, Auto, 5*time.Second)
	for _, s := range [][2]int64{
		{epoch + 1, epoch},
		{epoch, epoch + hour},
		{epoch + hour, epoch + hour},
		{math.MinInt64, math.MaxInt64},
		{math.MaxInt64 - 1, math.MaxInt64},
		{math.MinInt64, math.MinInt64 + 1},
		{-2, -1},
	} {
		m, r := start(t, &d, epoch, 100, 0, epoch+second)
		before := *m
		m.ObserveReset(&d, r, epoch, s[0], s[1])
		if *m != before {
			t.Errorf("[%d, %d] changed the meter to %+v", s[0], s[1], *m)
		}
	}
	m, r := start(t, &d, epoch, 100, 0, 0)
	m.ObserveReset(&d, r, epoch, 0, 1) // half a century old, and of this phase
	if m.Hi != nextReset(1, d.Window, epoch) {
		t.Errorf("reset at %d from now", m.Hi-epoch)
	}
}

func TestUseThatTheLedgerDoesNotExplainIsOutside(t *testing.T) {
	d := compile(t, Fixed, Auto, time.Hour)
	m, r := start(t, &d, epoch, 100, 0, epoch+hour)
	k := m.Take(&d, r, epoch, 10, false)
	m.Bind(&d, r, epoch, &k)
	m.ObserveUsed(&d, r, epoch, epoch, 8, false)
	if m.Outside != 0 {
		t.Errorf("%d outside, although 10 of our own explain the 8", m.Outside)
	}
	m.ObserveUsed(&d, r, epoch, epoch, 25, false)
	if m.Outside != 15 {
		t.Errorf("%d outside, want 15", m.Outside)
	}
	wantUsed(t, &d, m, r, 25, "with the others'")
	m.ObserveUsed(&d, r, epoch, epoch, MaxAmount+1, false)
	if m.Outside != 15 {
		t.Errorf("an absurd use counted: %d outside", m.Outside)
	}
	m.ObserveUsed(&d, r, epoch, epoch, 30, true)
	wantUsed(t, &d, m, r, 30, "what rough costs do not explain is believed")
	if m.Outside != 15 {
		t.Errorf("rough costs prove nobody else: %d outside", m.Outside)
	}
	m.Advance(&d, r, m.Hi)
	if !m.Idle() {
		t.Errorf("left after the reset: %+v", *m)
	}
}

func TestOutsideUseOfARollingWindow(t *testing.T) {
	d := compile(t, Rolling, Auto, time.Minute)
	m, r := start(t, &d, epoch, 100, 0, 0)
	k := m.Take(&d, r, epoch, 40, false)
	m.Bind(&d, r, epoch, &k)
	late := epoch + minute - second // an answer that was made now comes when the 40 are gone
	m.Advance(&d, r, late)
	now := epoch + minute + 2*second
	m.Advance(&d, r, now)
	wantUsed(t, &d, m, r, 0, "a window later")
	m.ObserveUsed(&d, r, now, late, 40, false)
	if m.Outside != 0 {
		t.Errorf("%d outside: the answer was made before our own came back", m.Outside)
	}
	m.ObserveUsed(&d, r, now, late, 50, false)
	if m.Outside != 10 {
		t.Errorf("%d outside, want 10", m.Outside)
	}
	wantUsed(t, &d, m, r, 10, "others' use")
	m.ObserveUsed(&d, r, now, now, 10, false)
	if m.Outside != 10 {
		t.Errorf("%d outside after the same was stated again", m.Outside)
	}
	m.Advance(&d, r, now+minute+second)
	if !m.Idle() {
		t.Errorf("left a window later: %+v", *m)
	}
}

// A response does not count amounts that came back before it was made, whether or not the meter was read in between.
func TestOutsideUseLongAfterOurOwn(t *testing.T) {
	for _, looked := range []bool{false, true} {
		d := compile(t, Rolling, Auto, time.Minute)
		m, r := start(t, &d, epoch, 100, 0, 0)
		k := m.Take(&d, r, epoch, 40, false)
		m.Bind(&d, r, epoch, &k)
		if looked {
			m.Advance(&d, r, epoch+2*minute)
		}
		now := epoch + 60*minute
		m.Advance(&d, r, now)
		m.ObserveUsed(&d, r, now, now-second, 50, false)
		if m.Outside != 50 {
			t.Errorf("looked at in between: %v: %d outside, want 50: our own was an hour ago", looked, m.Outside)
		}
	}
}

func TestOutsideUseOfABucket(t *testing.T) {
	d := compile(t, Bucket, Auto, time.Minute)
	m, r := start(t, &d, epoch, 60, 60, 0)
	now := epoch + 10*second
	m.Advance(&d, r, now)
	m.ObserveUsed(&d, r, now, now-5*second, 5, false)
	if m.Outside != 0 {
		t.Errorf("%d outside: our own 5 may have drained since", m.Outside)
	}
	m.ObserveUsed(&d, r, now, now-5*second, 15, false)
	if m.Outside != 10 {
		t.Errorf("%d outside, want 10", m.Outside)
	}
	wantUsed(t, &d, m, r, 10, "others' use")
	m.Advance(&d, r, now+4*second)
	if m.Outside != 6 {
		t.Errorf("%d outside 4 s later, want 6", m.Outside)
	}
	m.Advance(&d, r, now+20*second)
	if !m.Idle() {
		t.Errorf("left: %+v", *m)
	}
}
