package sluice_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// refuse acquires a ticket and answers it with a 429.
func refuse(tb testing.TB, g *sluice.Gate, a sluice.Answer) {
	tb.Helper()
	ticket := acquire(tb, g, from("refused"))
	a.Verdict = store.VerdictThrottled
	if !answer(tb, ticket, a) {
		tb.Error("Answer does not say that the resource is held")
	}
	end(tb, ticket)
}

// send starts a caller whose response comes after a while.
func (c *crowd) send(who string, req sluice.Request, delay time.Duration, v store.Verdict) {
	c.tb.Helper()
	c.wg.Go(func() {
		t, err := c.gate.Acquire(context.Background(), req)
		c.note(who, err)
		if err != nil {
			return
		}
		time.Sleep(delay)
		if _, err := t.Answer(sluice.Answer{Verdict: v}); err != nil {
			c.tb.Error(err)
		}
		if err := t.Close(); err != nil {
			c.tb.Error(err)
		}
	})
	synctest.Wait()
}

// wantEntries fails unless exactly these requests went, each at its time.
func (c *crowd) wantEntries(want ...string) {
	c.tb.Helper()
	c.order()
	for i, e := range c.entries {
		if got := fmt.Sprintf("%s %v", e.who, e.at); i >= len(want) || got != want[i] {
			c.tb.Errorf("grants are %+v, want %q", c.entries, want)
			return
		}
	}
	if len(c.entries) != len(want) {
		c.tb.Errorf("%d grants, want %d", len(c.entries), len(want))
	}
}

func openPausing(tb testing.TB) *crowd {
	return &crowd{tb: tb, gate: open(tb, rolling(1000, time.Hour))}
}

func TestOneRefusalPausesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{Cause: "429 from api.example.com"})
		s := state(t, c.gate)
		if s.PausedUntil == nil || time.Until(*s.PausedUntil) != time.Minute || s.PauseReason != "429 from api.example.com" ||
			s.Consecutive429 != 1 || s.Last429 == nil || !s.Last429.Equal(time.Now()) || s.Throttled != 1 {
			t.Errorf("status is %+v", s)
		}
		_, err := c.gate.Try(t.Context(), from("b"))
		if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "paused" || time.Until(e.RetryAt) != time.Minute {
			t.Errorf("got reason %q, retry at %v", e.Reason, e.RetryAt)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		wantTook(t, "failing", took(func() {
			_, err := c.gate.Acquire(ctx, from("b"))
			wantError(t, err, sluice.ErrDeadline)
		}), 0)
		wantTook(t, "another agent", took(func() { pass(t, c.gate, from("b")) }), time.Minute)
	})
}

func TestOneProbeThenARampInClassOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{})
		for i, class := range []string{sluice.P2, sluice.P1, sluice.P0} {
			for k := range 3 {
				name := fmt.Sprint(class, "-", k)
				c.send(name, classed(fmt.Sprint("agent", i, k), class), 100*time.Millisecond, store.VerdictOK)
			}
		}
		// The probe is answered after 0.1 s. From then on each success shortens the gap to the next.
		c.order()
		var at []string
		for _, e := range c.entries {
			at = append(at, fmt.Sprint(e.at))
		}
		want := []string{"1m0s", "1m0.1s", "1m0.3s", "1m0.433333s", "1m0.533333s", "1m0.633333s", "1m0.713333s", "1m0.779999s", "1m0.837141s"}
		if fmt.Sprint(at) != fmt.Sprint(want) {
			t.Errorf("grants came at %v, want %v", at, want)
		}
		for k, e := range c.entries {
			if want := fmt.Sprint("p", k/3); e.who[:2] != want {
				t.Errorf("grant %d went to %s, want %s", k, e.who, want)
			}
		}
	})
}

// After a pause the probe goes to the highest class, whatever the order would be otherwise.
func TestProbeGoesToTheHighestClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{tb: t, gate: open(t, bucket(1, time.Second, 1))}
		pass(t, c.gate, from("nobody"))
		time.Sleep(5 * time.Second) // or a window of a second would explain the refusal
		c.send("refused", classed("a", sluice.P0), 0, store.VerdictThrottled)
		c.send("p0", classed("a", sluice.P0), 0, store.VerdictOK)
		time.Sleep(2 * time.Second) // p0 has had its share of this busy period
		c.send("p2", classed("b", sluice.P2), 0, store.VerdictOK)
		c.wantEntries("refused 5s", "p0 1m5s", "p2 1m6s")
	})
}

// Reading the status is not a request: it must not use up the ramp.
func TestStatusDoesNotEndTheRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "unknown", Kind: sluice.Rolling, Window: time.Minute})
		for range 60 {
			state(t, g)
			time.Sleep(time.Second)
		}
		pass(t, g, from("a"))
		_, err := g.Try(t.Context(), from("a"))
		if e := wantError(t, err, sluice.ErrNotNow); e.Reason != "ramp" {
			t.Errorf("the reason is %q, want ramp", e.Reason)
		}
	})
}

func TestProbeThatIsNotRefusedPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{})
		for i := range 3 {
			c.send(fmt.Sprint(i), from("a"), 40*time.Second, store.VerdictOK) // answers take long, refusals do not
		}
		c.wantEntries("0 1m0s", "1 1m2s", "2 1m2.4s")
	})
}

func TestProbeThatIsRefusedPausesForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{})
		c.send("0", from("a"), 0, store.VerdictThrottled)
		c.send("1", from("a"), 0, store.VerdictThrottled)
		c.send("2", from("a"), 0, store.VerdictOK)
		c.wantEntries("0 1m0s", "1 3m0s", "2 7m0s")
	})
}

func TestProbeThatProvedNothingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{})
		for i := range 4 {
			c.wg.Go(func() {
				ticket := acquire(t, c.gate, from("a"))
				c.note(fmt.Sprint(i), nil)
				if err := ticket.CloseUnanswered(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		// Three in a row that say nothing are enough to begin with care.
		c.wantEntries("0 1m0s", "1 1m2s", "2 1m4s", "3 1m4s")
	})
}

func TestProbeGivenBackPassesItOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{})
		time.Sleep(time.Minute)
		probe := acquire(t, c.gate, from("a"))
		c.ask("next", from("b"))
		if err := probe.Cancel(); err != nil {
			t.Fatal(err)
		}
		c.wantEntries("next 1m0s")
	})
}

func TestPausesEscalate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		for i, want := range []time.Duration{1, 2, 4, 8, 15, 15} {
			refuse(t, c.gate, sluice.Answer{})
			s := state(t, c.gate)
			if got := time.Until(*s.PausedUntil); got != want*time.Minute || s.Consecutive429 != i+1 {
				t.Errorf("refusal %d pauses for %v (consecutive %d), want %v", i+1, got, s.Consecutive429, want*time.Minute)
			}
		}
	})
}

func TestBurstOfRefusalsEscalatesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		var burst []sluice.Ticket
		for range 50 {
			burst = append(burst, acquire(t, c.gate, from("a")))
		}
		for _, ticket := range burst {
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictThrottled})
			end(t, ticket)
			time.Sleep(100 * time.Millisecond)
		}
		s := state(t, c.gate)
		if got := s.PausedUntil.Sub(bubbleStart); got != time.Minute || s.Consecutive429 != 1 || s.Throttled != 50 {
			t.Errorf("paused until %v, consecutive %d, throttled %d", got, s.Consecutive429, s.Throttled)
		}
	})
}

func TestLateSuccessDoesNotEndAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		early := acquire(t, c.gate, from("a"))
		time.Sleep(time.Second)
		refuse(t, c.gate, sluice.Answer{})
		if !answer(t, early, sluice.Answer{Verdict: store.VerdictOK}) {
			t.Error("a success from before the pause ended it")
		}
		end(t, early)
		if s := state(t, c.gate); s.Consecutive429 != 1 {
			t.Errorf("consecutive is %d, want 1", s.Consecutive429)
		}
	})
}

func TestSuccessResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		for range 3 {
			refuse(t, c.gate, sluice.Answer{})
		}
		probe := acquire(t, c.gate, from("a"))
		answer(t, probe, sluice.Answer{Verdict: store.VerdictOK})
		end(t, probe)
		if s := state(t, c.gate); s.Consecutive429 != 0 || s.PausedUntil != nil {
			t.Errorf("after a success: %+v", s)
		}
		refuse(t, c.gate, sluice.Answer{})
		if got := time.Until(*state(t, c.gate).PausedUntil); got != time.Minute {
			t.Errorf("the next pause is %v, want 1m again", got)
		}
	})
}

func TestHintOverrulesTheFormula(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		for i, p := range []struct{ hint, want time.Duration }{
			{7500 * time.Millisecond, 7500 * time.Millisecond},
			{time.Millisecond, 2 * time.Second}, // at least 1 s, doubled each time
			{time.Millisecond, 4 * time.Second},
			{1000 * 24 * time.Hour, 8 * time.Minute}, // absurd: the formula counts
			{48 * time.Hour, 24 * time.Hour},
			{0, 24*time.Hour - 15*time.Minute}, // the probe at the cap's interval: what was said before still holds
			{10 * time.Minute, 10 * time.Minute},
			{0, 15 * time.Minute},
		} {
			refuse(t, c.gate, sluice.Answer{RetryAfter: p.hint})
			if got := time.Until(*state(t, c.gate).PausedUntil); got != p.want {
				t.Errorf("refusal %d with hint %v pauses for %v, want %v", i+1, p.hint, got, p.want)
			}
		}
	})
}

func TestBackoffIsConfigurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{
			Backoff: sluice.Backoff{Start: time.Second, Factor: 3, Cap: 5 * time.Second}, Limits: []sluice.Limit{rolling(1000, time.Hour)},
		})
		for _, want := range []time.Duration{1, 3, 5, 5} {
			refuse(t, g, sluice.Answer{})
			if got := time.Until(*state(t, g).PausedUntil); got != want*time.Second {
				t.Errorf("paused for %v, want %v", got, want*time.Second)
			}
		}
	})
}

func TestRefusalOfAModelPausesThatModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(1000, time.Hour))
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		haiku := sluice.Request{Resource: "api", Agent: "a", Model: "haiku"}
		ticket := acquire(t, g, opus)
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictThrottled, Scope: sluice.PerModel})
		end(t, ticket)
		s := state(t, g)
		if s.PausedUntil != nil || len(s.Gates) != 1 || s.Gates[0].Scope != "model=opus" || s.Gates[0].Phase != "paused" {
			t.Errorf("status is %+v", s)
		}
		wantTook(t, "the other model", took(func() { pass(t, g, haiku) }), 0)
		// What fails on the other model is not held, so it should spread out by itself.
		ticket = acquire(t, g, haiku)
		if answer(t, ticket, sluice.Answer{Verdict: store.VerdictError}) {
			t.Error("the other model counts as held")
		}
		end(t, ticket)
		wantTook(t, "the paused model", took(func() { pass(t, g, opus) }), time.Minute)
	})
}

func TestOverloadHasAScaleOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		for _, want := range []time.Duration{2, 4, 8} {
			ticket := acquire(t, c.gate, from("a"))
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictOverloaded})
			end(t, ticket)
			s := state(t, c.gate)
			if got := time.Until(*s.PausedUntil); got != want*time.Second || s.Consecutive429 != 0 || s.Throttled != 0 {
				t.Errorf("overload pauses for %v, want %v; %+v", got, want*time.Second, s)
			}
		}
	})
}

func TestQuotaThatIsGonePausesUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		ticket := acquire(t, c.gate, from("a"))
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictExhausted, RetryAfter: 9 * time.Hour})
		end(t, ticket)
		wantTook(t, "the next", took(func() { pass(t, c.gate, from("b")) }), 9*time.Hour)
	})
}

// A ramp ends by time even if no request came since.
func TestNobodyIsHeldByARampLongOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "unknown", Kind: sluice.Rolling, Window: time.Minute})
		ticket := acquire(t, g, from("a"))
		time.Sleep(time.Minute)
		if answer(t, ticket, sluice.Answer{Verdict: store.VerdictError}) {
			t.Error("still held by the ramp a minute later")
		}
		end(t, ticket)
	})
}
