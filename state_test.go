package sluice_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// wantState fails unless the resource is in a state, for a reason that has these words.
func wantState(tb testing.TB, g *sluice.Gate, want, words string) sluice.ResourceStatus {
	tb.Helper()
	s := state(tb, g)
	if s.State != want || !strings.Contains(s.Reason, words) || s.Reason == "" {
		tb.Errorf("the state is %s: %q, want %s: %q", s.State, s.Reason, want, words)
	}
	return s
}

func TestStatesFollowWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(2, 5*time.Minute))
		wantState(t, g, sluice.StateIdle, "no request was sent yet")
		pass(t, g, from("a"))
		wantState(t, g, sluice.StateFlowing, "without waiting")
		pass(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		if s := wantState(t, g, sluice.StateQueueing, "1 request waits: the limit "); !strings.Contains(s.Reason, "is full (2 of 2 used)") || s.Until == nil {
			t.Errorf("it says %q until %v, want how full the limit is and when it has room", s.Reason, s.Until)
		}
		if err := g.Pause(t.Context(), "api", time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if s := wantState(t, g, sluice.StatePaused, "maintenance"); s.Until == nil || !s.Until.Equal(*s.PausedUntil) {
			t.Errorf("it is paused until %v, want %v", s.Until, s.PausedUntil)
		}
		if err := g.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		c.order()
		wantState(t, g, sluice.StateFlowing, "")
		time.Sleep(time.Minute)
		wantState(t, g, sluice.StateIdle, "in the last minute")
	})
}

// A pause of one model names it; the reason of a pause of everything comes first.
func TestAPausedModelIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Minute))
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		held := acquire(t, g, opus)
		answer(t, held, sluice.Answer{Verdict: sluice.VerdictThrottled, Scope: sluice.PerModel, Cause: "status 429"})
		end(t, held)
		wantState(t, g, sluice.StatePaused, "model opus: status 429")
		if err := g.Pause(t.Context(), "api", time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		wantState(t, g, sluice.StatePaused, "maintenance")
	})
}

// A limit that is used to the full is no trouble: nothing is wrong while others wait for it.
func TestAFullLimitIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(2, time.Minute))
		pass(t, g, from("a"))
		pass(t, g, from("a"))
		if s := wantState(t, g, sluice.StateFlowing, ""); s.LightBinds {
			t.Error("the light of a flow binds")
		}
	})
}

func TestAHeldClassIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{
			Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 10, Window: time.Hour}}, Light: sluice.Light{Static: true},
		})
		spend(t, g, sluice.Request{Resource: "api", Agent: "boss", Class: "p0"}, 9)
		c := &crowd{tb: t, gate: g}
		c.ask("low", sluice.Request{Resource: "api", Agent: "low", Class: "p2"})
		if s := wantState(t, g, sluice.StateQueueing, "the light on the limit hour holds p2 (9 of 10 used)"); !s.LightBinds || s.Light != "amber" {
			t.Errorf("the light is %s and binds: %v", s.Light, s.LightBinds)
		}
		c.order()
	})
}

func TestAnOutageDegrades(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAlarmed(t)
		g := s.open(t, sluice.Config{}, rolling(10, time.Minute))
		s.lose("connection refused")
		got := wantState(t, g, sluice.StateDegraded, "the store is out of reach: connection refused; this process lets all requests go")
		for _, field := range []string{"in_flight", "sent", "throttled", "light", "consecutive_429", "throttled_7d"} {
			if n, there := asJSON(t, got).(map[string]any)[field]; n != nil || !there {
				t.Errorf("%s is %v while the store is away, want null", field, n)
			}
		}
		s.back(0)
		wantState(t, g, sluice.StateIdle, "")
	})
}

// A size that is not known yet is null, not 0.
func TestUnknownNumbersAreNull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "learned", Kind: sluice.Rolling, Window: time.Minute})
		pass(t, g, from("a"))
		s, err := g.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		p, err := g.Pool(context.Background(), "api")
		if err != nil {
			t.Fatal(err)
		}
		for what, v := range map[string]any{
			"limit": at(t, asJSON(t, s), "resources", 0, "limits", 0, "limit"), "remaining": at(t, asJSON(t, s), "resources", 0, "limits", 0, "remaining"),
			"allocated": at(t, asJSON(t, s), "agents", 0, "allocated"), "totalLimit": at(t, asJSON(t, p), "totalLimit"),
			"allocations": at(t, asJSON(t, p), "allocations", "a", "allocated"),
		} {
			if v != nil {
				t.Errorf("%s is %v, want null", what, v)
			}
		}
	})
}
