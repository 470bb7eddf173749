package pause

import (
	"testing"

	"pgregory.net/rapid"
)

var backoff = Backoff{Start: 60 * second, Factor: 2, Cap: 900 * second}

func TestPausesDoubleUpToTheCap(t *testing.T) {
	var g State
	now := int64(1000 * second)
	for n, want := range []int64{60, 120, 240, 480, 900, 900} {
		if !g.Throttled(now, now, 0, backoff) {
			t.Fatalf("refusal %d did not count", n+1)
		}
		if got := g.Until - now; got != want*second {
			t.Errorf("pause %d is %d us, want %d s", n+1, got, want)
		}
		now = g.Until + 1
	}
}

func TestOneBurstEscalatesOnce(t *testing.T) {
	var g State
	for i := range int64(50) {
		g.Throttled(1000+i, 500+i, 0, backoff) // all granted before the first refusal
	}
	if g.Throttles != 1 || g.Until != 1000+60*second {
		t.Errorf("%d refusals counted, paused until %d", g.Throttles, g.Until)
	}
}

func TestLateHintOfTheSameBurstProlongsButDoesNotCount(t *testing.T) {
	var g State
	g.Throttled(1000, 500, 5*second, backoff)
	if g.Throttled(2000, 600, 90*second, backoff) {
		t.Error("a second refusal of the same burst counted")
	}
	if g.Until != 2000+90*second || g.Throttles != 1 {
		t.Errorf("paused until %d, n = %d", g.Until, g.Throttles)
	}
	g.Throttled(3000, 700, second, backoff)
	if g.Until != 2000+90*second {
		t.Error("a shorter hint cut the pause short")
	}
}

func TestHintsOverruleTheFormula(t *testing.T) {
	for _, c := range []struct{ n, hint, want int64 }{
		{1, 30 * second, 30 * second},
		{1, second / 10, second},
		{4, second, 8 * second},
		{1, 48 * 3600 * second, 24 * 3600 * second},
		{1, maxOutage, 24 * 3600 * second},
		{1, maxOutage + 1, 60 * second}, // nobody means that
		{3, 1 << 62, 240 * second},
	} {
		g := State{Throttles: c.n - 1}
		g.Throttled(5, 5, c.hint, backoff)
		if g.Until-5 != c.want {
			t.Errorf("refusal %d with a hint of %d us pauses for %d us, want %d", c.n, c.hint, g.Until-5, c.want)
		}
	}
}

func TestSuccessFromBeforeThePauseDoesNotEndIt(t *testing.T) {
	var g State
	g.Throttled(1000, 500, 0, backoff)
	g.Succeeded(2000, 600, 1)
	if g.Phase != Paused || g.Throttles != 1 {
		t.Errorf("phase %v, n = %d", g.Phase, g.Throttles)
	}
}

// probing returns a gate whose pause has just ended, and the time.
func probing(t *testing.T) (*State, int64) {
	t.Helper()
	g := &State{}
	g.Throttled(1000, 500, 0, backoff)
	now := g.Until
	if v := g.Allow(now - 1); v.OK || v.Phase != Paused || v.At != now {
		t.Fatalf("before its end the pause says %+v", v)
	}
	if !g.Allow(now).OK {
		t.Fatal("no probe may go when the pause ends")
	}
	return g, now
}

func TestExactlyOneProbe(t *testing.T) {
	g, now := probing(t)
	g.Sent(now, 7)
	for dt := int64(0); dt < silence; dt += silence / 10 {
		if v := g.Allow(now + dt); v.OK || v.Phase != Probing {
			t.Fatalf("a second one may go %d us after the probe: %+v", dt, v)
		}
	}
}

func TestProbePassesOnSuccess(t *testing.T) {
	g, now := probing(t)
	g.Sent(now, 7)
	g.Succeeded(now+100, now-1, 9) // another ticket, but granted after the pause began: it resets the count
	if g.Phase != Probing {
		t.Fatal("somebody else's success ended the probe")
	}
	g.Succeeded(now+200, now, 7)
	if g.Phase != Ramping || g.Throttles != 0 {
		t.Errorf("phase %v, n = %d", g.Phase, g.Throttles)
	}
}

func TestProbePassesOnSilence(t *testing.T) {
	g, now := probing(t)
	g.Sent(now, 7)
	if v := g.Allow(now + silence); !v.OK || g.Phase != Ramping {
		t.Errorf("two seconds of silence: %+v in phase %v", v, g.Phase)
	}
	if g.Throttles != 1 {
		t.Error("silence reset the count: only a success does")
	}
}

func TestRefusedProbeEscalates(t *testing.T) {
	g, now := probing(t)
	g.Sent(now, 7)
	if !g.Throttled(now+100, now, 0, backoff) || g.Until != now+100+120*second {
		t.Errorf("paused until %d", g.Until)
	}
}

func TestBlankProbesAreReplacedAndThreeStartTheRamp(t *testing.T) {
	g, now := probing(t)
	for i := range int32(maxBlanks) {
		if !g.Allow(now).OK {
			t.Fatalf("probe %d may not go", i+1)
		}
		g.Sent(now, i+1)
		g.Lost(now, i+1, false)
		if i == maxBlanks-1 {
			break
		}
		if v := g.Allow(now + silence - 1); v.OK {
			t.Fatalf("the probe after a blank one went too early")
		}
		now += silence
	}
	if g.Phase != Ramping {
		t.Errorf("phase %v after three blank probes", g.Phase)
	}
}

func TestUnsentProbeIsReplacedAtOnce(t *testing.T) {
	g, now := probing(t)
	g.Sent(now, 7)
	g.Lost(now+5, 7, true)
	if !g.Allow(now + 5).OK {
		t.Error("the probe was given back, and nobody else may go")
	}
}

func TestStatedLimitsEndTheFirstRampOnly(t *testing.T) {
	var g State
	g.StartRamp(1)
	g.Sent(100, 1)
	g.LimitsKnown()
	if g.Phase != Open {
		t.Errorf("%v though an answer has stated the limits", g.Phase)
	}
	g.Throttled(200, 150, 0, backoff)
	g.LimitsKnown()
	if g.Phase != Paused {
		t.Errorf("%v: stated limits ended a pause", g.Phase)
	}
	g.Resume(300)
	g.LimitsKnown()
	if g.Phase != Ramping {
		t.Errorf("%v: stated limits ended the ramp after a pause", g.Phase)
	}
}

func TestOverloadHasItsOwnScale(t *testing.T) {
	g := State{Throttles: 3}
	g.Overloaded(10, 10, 0, Backoff{2 * second, 2, 60 * second}, backoff.Cap)
	if g.Until != 10+2*second || g.Throttles != 3 {
		t.Errorf("paused until %d, n = %d", g.Until, g.Throttles)
	}
}

func TestResumeEndsAPauseThroughARamp(t *testing.T) {
	var g State
	g.Pause(100, 1000*second)
	g.Resume(200)
	if g.Phase != Ramping {
		t.Errorf("phase %v", g.Phase)
	}
}

// Whatever happens, a gate lets a request through in bounded time, and never more than one while a probe is out.
func TestGateNeverShutsForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g State
		now := int64(1)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			now += rapid.Int64Range(0, 100*second).Draw(t, "dt")
			ticket := int32(rapid.IntRange(1, 3).Draw(t, "ticket"))
			granted := max(now-rapid.Int64Range(0, 200*second).Draw(t, "age"), 1)
			hint := rapid.OneOf(rapid.Int64Range(0, 100*second), rapid.Int64Range(0, 1<<62)).Draw(t, "hint")
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				g.Throttled(now, granted, hint, backoff)
			case 1:
				g.Overloaded(now, granted, hint, backoff, backoff.Cap)
			case 2:
				g.Succeeded(now, granted, ticket)
			case 3:
				g.Lost(now, ticket, rapid.Bool().Draw(t, "unsent"))
			case 4:
				g.Pause(now, hint)
			case 5:
				g.Resume(now)
			case 6:
				g.Exhausted(now, granted, hint)
			default:
				if g.Allow(now).OK {
					g.Sent(now, ticket)
					if (g.Phase == Probing || g.Phase == Paused) && g.Allow(now).OK {
						t.Fatal("two probes")
					}
				}
			}
		}
		for range 100 {
			v := g.Allow(now)
			if v.OK {
				return
			}
			if v.Next <= now || v.Next > v.At || v.At > now+maxOutage {
				t.Fatalf("closed, and to be asked again at %d, now %d: %+v", v.Next, now, g)
			}
			now = v.Next
		}
		t.Fatalf("shut for good: %+v", g)
	})
}

// A pause ended by hand stays over. An exhausted quota of a minute must not bring back the rest of that pause.
func TestPauseEndedByHandDoesNotComeBack(t *testing.T) {
	var g State
	g.Pause(second, maxHint)
	g.Resume(2 * second)
	g.Exhausted(60*second, 59*second, 60*second)
	if want := int64(120 * second); g.Until != want {
		t.Errorf("paused until %d, want %d", g.Until, want)
	}
}

// probesOf returns when probes go within a time from the pause's beginning, if each is lost.
func probesOf(g *State, from, to int64) (at []int64) {
	for now := from; now < to; {
		v := g.Allow(now)
		if g.Phase != Paused {
			break
		}
		if !v.OK {
			now = v.Next
			continue
		}
		at = append(at, now-from)
		g.Sent(now, 7)
		g.Lost(now+second, 7, false)
	}
	return at
}

const hours = 3600 * int64(second)

func TestALongHintIsProbedAtTheCapsInterval(t *testing.T) {
	var g State
	g.Throttled(1, 1, 6*hours, backoff)
	if g.Until != 1+6*hours || g.NextProbe() != 1+900*second {
		t.Fatalf("paused until %d, first probe at %d", g.Until, g.NextProbe())
	}
	at := probesOf(&g, 1, 6*hours)
	if len(at) != 23 || at[0] != 900*second || at[22] != 23*900*second {
		t.Errorf("probes at %v, want one every 15 minutes", at)
	}
}

func TestNoProbeGoesBeforeAPauseThatIsCertain(t *testing.T) {
	for name, pause := range map[string]func(*State){
		"a quota is gone":      func(g *State) { g.Exhausted(1, 1, 6*hours) },
		"by hand":              func(g *State) { g.Pause(1, 6*hours) },
		"the formula":          func(g *State) { g.Throttles = 9; g.Throttled(1, 1, 0, backoff) },
		"a hint up to the cap": func(g *State) { g.Throttled(1, 1, 900*second, backoff) },
	} {
		var g State
		pause(&g)
		if at := probesOf(&g, 1, g.Until); len(at) > 0 || g.NextProbe() != 0 {
			t.Errorf("%s: probes at %v", name, at)
		}
	}
}

// long returns a gate that is paused for six hours and has its first probe out, and the time.
func long() (*State, int64) {
	var g State
	g.Throttled(1, 1, 6*hours, backoff)
	now := int64(1 + 900*second)
	g.Allow(now)
	g.Sent(now, 7)
	return &g, now
}

func TestAProbesSuccessEndsALongPause(t *testing.T) {
	g, now := long()
	g.Succeeded(now+1, now, 8)
	if g.Phase != Paused {
		t.Fatal("another's success ended the pause")
	}
	g.Succeeded(now+1, now, 7)
	if g.Phase != Ramping || g.Throttles != 0 || g.Until > now+1 {
		t.Errorf("%+v", g)
	}
}

func TestSilenceOfAProbeDoesNotEndALongPause(t *testing.T) {
	g, now := long()
	if v := g.Allow(now + 10*silence); v.OK || v.Phase != Paused || v.Next != now+900*second {
		t.Errorf("%+v", v)
	}
	for range maxBlanks + 1 {
		g.Lost(now+10*silence, 7, false)
		now = g.NextProbe()
		g.Allow(now)
		g.Sent(now, 7)
	}
	if g.Phase != Paused {
		t.Errorf("%v: blank probes ended a pause of six hours", g.Phase)
	}
}

func TestAnUnsentProbeOfALongPauseIsReplacedAtOnce(t *testing.T) {
	g, now := long()
	g.Lost(now+5, 7, true)
	if !g.Allow(now + 5).OK {
		t.Error("nobody may go in its place")
	}
}

func TestWhatAProbeOfALongPauseIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		told        func(g *State, t int64)
		until, next int64
	}{
		"refused with no hint: the first one's word stands": {func(g *State, t int64) { g.Throttled(t, t, 0, backoff) }, 6*hours + 1, 1 + 1800*second},
		"refused with a nonsensical one":                    {func(g *State, t int64) { g.Throttled(t, t, 1<<60, backoff) }, 6*hours + 1, 1 + 1800*second},
		"refused with a shorter hint: it knows better":      {func(g *State, t int64) { g.Throttled(t, t, 60*second, backoff) }, 1 + 960*second, 0},
		"an overload: that is about something else":         {func(g *State, t int64) { g.Overloaded(t, t, 0, Backoff{5 * second, 2, 60 * second}, backoff.Cap) }, 6*hours + 1, 1 + 1800*second},
		"the quota is gone for an hour":                     {func(g *State, t int64) { g.Exhausted(t, t, hours) }, 6*hours + 1, 1 + 900*second + hours},
		"the quota is gone for a day":                       {func(g *State, t int64) { g.Exhausted(t, t, 24*hours) }, 1 + 900*second + 24*hours, 0},
		"a person pauses for an hour":                       {func(g *State, t int64) { g.Pause(t, hours) }, 6*hours + 1, 1 + 900*second + hours},
	} {
		g, now := long()
		if c.told(g, now); g.Until != c.until || g.NextProbe() != c.next {
			t.Errorf("%s: until %d, next probe at %d; want %d and %d", name, g.Until, g.NextProbe(), c.until, c.next)
		}
	}
}

// A caller outside the gate that repeats its hint must not postpone the probes.
func TestRepeatedHintsDoNotPutProbesOff(t *testing.T) {
	var g State
	g.Throttled(1, 1, 0, backoff) // a minute
	for now := int64(2); now < 890*second; now += 10 * second {
		g.Throttled(now, 1, 6*hours, backoff)
	}
	if g.NextProbe() != 1+900*second {
		t.Errorf("the first probe is at %d", g.NextProbe())
	}
}

// Whatever hints come, no request is held longer than the cap without a probe. Exceptions are pauses by hand and
// exhausted quotas.
func TestHintsHoldNobodyLongerThanTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g State
		now, last := int64(1), int64(1)
		hint := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 60*second), rapid.Int64Range(1, 1<<62))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			v := g.Allow(now)
			if v.OK {
				last = now
				g.Sent(now, 7)
				g.Throttled(now+1, now, hint.Draw(t, "hint"), backoff)
				now++
				continue
			}
			if now-last > backoff.Cap+second {
				t.Fatalf("held for %d s: %+v", (now-last)/second, g)
			}
			if rapid.Bool().Draw(t, "another") && now+second < v.Next {
				now += rapid.Int64Range(1, v.Next-now).Draw(t, "dt")
				g.Throttled(now, 0, hint.Draw(t, "late hint"), backoff)
				continue
			}
			now = v.Next
		}
	})
}
