package pause

import (
	"slices"
	"testing"
)

// ramping returns a gate that has just been resumed, where limits are known or not, and the time.
func ramping(unknown bool) (*State, int64) {
	g, now := &State{}, int64(1000*second)
	if unknown {
		g.StartRamp(now)
		return g, now
	}
	g.Pause(now, hours)
	g.Resume(now + second)
	return g, now + second
}

// run lets requests go for a time as soon as they may, and answers each after latency. refused returns when the
// provider says to come back, or 0 if it accepts the request. run returns when requests went.
func run(t *testing.T, g *State, now, length, latency int64, refused func(at int64) int64) (went []int64) {
	t.Helper()
	var out []int64 // under way, by time of the grant
	for end := now + length; now < end; {
		for len(out) > 0 && out[0]+latency <= now {
			if hint := refused(out[0]); hint != 0 {
				g.Throttled(now, out[0], hint, backoff)
			} else {
				g.Succeeded(now, out[0], 1)
			}
			out = out[1:]
		}
		v := g.Allow(now)
		if g.Phase == Open {
			return went
		}
		if v.OK {
			g.Sent(now, 1)
			went, out = append(went, now), append(out, now)
			continue
		}
		next := v.Next
		if len(out) > 0 {
			next = min(next, out[0]+latency)
		}
		if next <= now {
			t.Fatalf("asked again at %d, now %d: %+v", v.Next, now, v)
		}
		now = next
	}
	return went
}

func never(int64) int64 { return 0 }

// gaps returns the times between grants in milliseconds.
func gaps(went []int64) (list []int64) {
	for i := 1; i < len(went); i++ {
		list = append(list, (went[i]-went[i-1])/1000)
	}
	return list
}

func TestGapsShrinkWithAcceptedRequests(t *testing.T) {
	for _, unknown := range []bool{false, true} {
		g, now := ramping(unknown)
		got := gaps(run(t, g, now, 3*second, second/100, never))
		want := []int64{400, 200, 133, 100, 80, 66, 57, 50, 50, 50, 50, 50}
		if !slices.Equal(got[:len(want)], want) {
			t.Errorf("unknown limits: %v, gaps %v, want %v", unknown, got, want)
		}
	}
}

// As many requests are under way as were accepted, and one more.
func TestRampWaitsForAnswers(t *testing.T) {
	g, now := ramping(true)
	latency := int64(second)
	went := run(t, g, now, 10*second, latency, never)
	for i, at := range went {
		accepted, out := 0, 0
		for _, earlier := range went[:i] {
			if earlier+latency <= at {
				accepted++
			} else {
				out++
			}
		}
		if out > accepted {
			t.Fatalf("grant %d goes with %d under way and %d accepted", i+1, out, accepted)
		}
	}
	if len(went) < 30 {
		t.Errorf("%d went in ten seconds", len(went))
	}
}

// Answers may take a minute, refusals do not: two seconds of silence count as success.
func TestRampGoesOnWhenAnswersTakeLong(t *testing.T) {
	g, now := ramping(true)
	went := run(t, g, now, 15*second, 60*second, never)
	if len(went) < 60 || went[1]-went[0] != silence {
		t.Errorf("%d went in 15 s, the second after %d", len(went), went[1]-went[0])
	}
}

func TestRampWithKnownLimitsEndsByItself(t *testing.T) {
	g, now := ramping(false)
	g.Allow(now + 50) // a look starts nothing
	g.Sent(now+100, 1)
	if v := g.Allow(now + 100 + rampSteps*rampStep); !v.OK || g.Phase != Open {
		t.Errorf("%+v in phase %v", v, g.Phase)
	}
	g, _ = ramping(false)
	g.LimitsBind()
	if g.Phase != Open || !g.Idle(1<<50) {
		t.Error("the ramp goes on though limits bind")
	}
}

// One call came, and a burst a minute later.
func TestTimeWithoutRequestsDoesNotSpeedTheRampUp(t *testing.T) {
	g, now := ramping(true)
	for range 60 { // slow calls prove nothing about bursts
		run(t, g, now, second/100, second/1000, never)
		now += 30 * second
	}
	if went := run(t, g, now, second/2, second/20, never); len(went) > 3 {
		t.Errorf("%d went in half a second", len(went))
	}
	g.LimitsBind()
	if g.Phase != Ramping {
		t.Error("a limit that binds ended the ramp of another that is not known")
	}
}

func TestRampWithoutLimitsEndsAtAThousandASecond(t *testing.T) {
	g, now := ramping(true)
	run(t, g, now, 40*second, second/20, never)
	if g.Phase != Open {
		t.Errorf("%v after 40 s without any refusal", g.Phase)
	}
}

// A provider accepts 10 in 5 s and refuses what is beyond. From the first refusal on, no more than 10 go in such a time.
func TestRefusalTeachesWhatMayGo(t *testing.T) {
	g, now := ramping(true)
	var accepted []int64
	refusals := 0
	went := run(t, g, now, 60*second, second/20, func(at int64) int64 {
		if n := len(accepted); n >= 10 && accepted[n-10]+5*second > at {
			refusals++
			return (accepted[n-10]+5*second-at)/second*second + second
		}
		accepted = append(accepted, at)
		return 0
	})
	if refusals > 2 || len(went) < 100 {
		t.Errorf("%d went in a minute, %d were refused", len(went), refusals)
	}
}

// What went before a pause counts after it, also if the first answers were slower than the later ones.
func TestBoundCountsThroughPauses(t *testing.T) {
	g, now := ramping(true)
	var accepted []int64
	refusals := 0
	limit := func(at int64) int64 {
		if n := len(accepted); n >= 10 && accepted[n-10]+5*second > at {
			refusals++
			return accepted[n-10] + 5*second - at
		}
		accepted = append(accepted, at)
		return 0
	}
	run(t, g, now, 4*second, second*6/10, limit)
	if refusals == 0 {
		t.Fatal("nothing was refused")
	}
	refusals = 0
	went := run(t, g, now+4*second, 26*second, second/50, limit)
	if refusals > 0 || len(went) < 40 {
		t.Errorf("%d went in 26 s, %d were refused", len(went), refusals)
	}
}

// Calls that come slowly before a burst are not taken for what may go at once.
func TestSlowCallsDoNotTeachTheBound(t *testing.T) {
	g, now := ramping(true)
	for range 30 {
		g.Allow(now)
		g.Sent(now, 1)
		g.Succeeded(now+second/20, now, 1)
		now += 10 * second
	}
	went := 0
	run(t, g, now, 3*second, second/20, func(at int64) int64 {
		if went++; went == 21 {
			return second
		}
		return 0
	})
	if g.up.most < 20 || g.up.most > 22 || g.up.span > 5*second {
		t.Errorf("the bound is %d in %d", g.up.most, g.up.span)
	}
}

// The refusal of a request without a ticket that is open, as scripts report it, teaches the bound as well. Its request
// counts as granted when it is reported, after the latest grant.
func TestReportedRefusalTeaches(t *testing.T) {
	g, now := ramping(true)
	for range 6 {
		now = max(now, g.Allow(now).Next)
		g.Sent(now, 1)
		g.Succeeded(now, now, 1)
	}
	g.Throttled(now+1000, now+1000, second, backoff)
	g.Throttled(now+2000, now+1000, second, backoff) // of the same burst
	now = g.Until
	g.Allow(now)
	g.Sent(now, 2)
	g.Succeeded(now+1000, now, 2)
	if g.Phase != Ramping || g.up.most != 5 {
		t.Errorf("in phase %v the bound is %d, want 5", g.Phase, g.up.most)
	}
}
