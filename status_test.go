package sluice_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// keys returns the keys of a JSON object, sorted.
func keys(tb testing.TB, v any) string {
	tb.Helper()
	object, ok := v.(map[string]any)
	if !ok {
		tb.Fatalf("%v is no object", v)
	}
	return strings.Join(slices.Sorted(maps.Keys(object)), " ")
}

func asJSON(tb testing.TB, v any) (back any) {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil {
		tb.Fatal(err)
	}
	return back
}

func at(tb testing.TB, v any, path ...any) any {
	tb.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func TestStatusAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Hour), places(2))
		ticket := acquire(t, g, from("a"))
		refuse(t, g, sluice.Answer{Cause: "429"})
		status, err := g.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := asJSON(t, status)
		for _, c := range []struct {
			path []any
			want string
		}{
			{nil, "agents budgets cycles resources store"},
			{[]any{"resources", 0}, "advice billing_stop callers configured consecutive_429 gates in_flight key last_429 last_send light light_binds limits mean_per_s members mode models name outage past_gate past_hosts pause_reason paused_until " +
				"peak_per_s reason retried sent silent_members state throttled throttled_7d until used_up waited_ms waiting"},
			{[]any{"resources", 0, "limits", 0}, "breaker differs_from gone_at kind learned light light_binds light_reason limit name outside plan rate remaining reset_at scope unit used window_ms withheld"},
			{[]any{"resources", 0, "gates", 0}, "cause consecutive_429 phase probe_at scope until"},
			{[]any{"resources", 0, "callers", 0}, "agent mean_per_s peak_per_s retried sent throttled waited_ms"},
			{[]any{"resources", 0, "waiting"}, "p0 p1 p2"},
		} {
			if got := keys(t, at(t, v, c.path...)); got != c.want {
				t.Errorf("keys of %v are\n  %s, want\n  %s", c.path, got, c.want)
			}
		}
		if got := at(t, v, "resources", 0, "paused_until"); got != "2000-01-01T00:01:00Z" {
			t.Errorf("paused_until is %v, want RFC 3339 in UTC", got)
		}
		if got := at(t, v, "resources", 0, "limits", 0, "reset_at"); got != nil {
			t.Errorf("reset_at of a rolling window is %v, want null", got)
		}
		if got := at(t, v, "resources", 0, "limits", 0, "kind"); got != "rolling" {
			t.Errorf("kind is %v", got)
		}
		end(t, ticket)
	})
}

// Lists are never null, so that readers need not check.
func TestEmptyListsInJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		status, err := g.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := asJSON(t, status)
		for _, list := range []string{"limits", "callers"} {
			if got, ok := at(t, v, "resources", 0, list).([]any); !ok || len(got) != 0 {
				t.Errorf("%s is %v, want an empty list", list, got)
			}
		}
		waiting, err := g.Why(t.Context(), "api")
		if text, _ := json.Marshal(waiting); err != nil || string(text) != "[]" {
			t.Errorf("nobody waiting is %s (%v), want []", text, err)
		}
	})
}

func TestStatusOfLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := time.Now().Add(30 * time.Minute)
		g := open(t, append(everyKind(reset), sluice.Limit{
			Name: "own", Kind: sluice.Bucket, Size: 7, Window: time.Hour, Burst: 9, Unit: sluice.Work, Per: []sluice.Scope{sluice.PerAgent},
		})...)
		a := acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Tool: "llm_call"})
		b := acquire(t, g, sluice.Request{Resource: "api", Agent: "b"})
		var got []string
		for _, l := range state(t, g).Limits {
			got = append(got, fmt.Sprintf("%s/%s %s %s: %d of %d, %d left, outside %d", l.Name, l.Scope, l.Kind, l.Unit, l.Used, l.Limit, l.Remaining, l.Outside))
			if (l.ResetAt != nil) != (l.Name == "fixed") {
				t.Errorf("reset of %s is %v", l.Name, l.ResetAt)
			}
		}
		want := []string{
			"bucket/ bucket requests: 2 of 10, 8 left, outside 0",
			"rolling/ rolling requests: 2 of 10, 8 left, outside 0",
			"places/ concurrency requests: 2 of 10, 8 left, outside 0",
			"fixed/ fixed requests: 2 of 10, 8 left, outside 0",
			"own/agent=a bucket work: 3 of 9, 6 left, outside 0",
			"own/agent=b bucket work: 1 of 9, 8 left, outside 0",
		}
		if !slices.Equal(got, want) {
			t.Errorf("limits are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		end(t, a)
		end(t, b)
	})
}

func TestCountersOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(2, time.Second, 4))
		for range 6 { // four at once, then one each half second
			pass(t, g, from("busy"))
		}
		again := from("calm")
		again.Retry = true
		refused := acquire(t, g, again) // waits for half a second
		answer(t, refused, sluice.Answer{Verdict: store.VerdictThrottled})
		end(t, refused)
		given := state(t, g)
		want := map[string]string{
			"":     "sent 7, throttled 1, retried 1, waited 1500 ms, peak 5, mean 4.67",
			"busy": "sent 6, throttled 0, retried 0, waited 1000 ms, peak 5, mean 6.00",
			"calm": "sent 1, throttled 1, retried 1, waited 500 ms, peak 1, mean 0.00",
		}
		for _, c := range append(given.Callers, given.CallerStatus) {
			got := fmt.Sprintf("sent %d, throttled %d, retried %d, waited %d ms, peak %d, mean %.2f",
				c.Sent, c.Throttled, c.Retried, c.WaitedMS, c.PeakPerS, c.MeanPerS)
			if got != want[c.Agent] {
				t.Errorf("%q %s, want %s", c.Agent, got, want[c.Agent])
			}
		}
		if len(given.Callers) != 2 || given.Callers[0].Agent != "busy" {
			t.Errorf("callers are %+v, want the busiest first", given.Callers)
		}
	})
}

func TestWhyExplainsEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, bucket(1, 10*time.Second, 1))
		held := acquire(t, g, from("holder"))
		c := &crowd{tb: t, gate: g}
		c.ask("", classed("low", sluice.P2))
		c.ask("", classed("high", sluice.P0))
		end(t, held)
		list, err := g.Why(t.Context(), "api")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range list {
			if w.Ticket == "" {
				t.Error("a waiter has no ticket")
			}
			got = append(got, fmt.Sprintf("%d %s %s: %s %s in %v", w.Position, w.Agent, w.Class, w.Reason, w.Limit, time.Until(*w.ExpectedAt)))
		}
		if want := []string{"1 high p0: limit bucket in 10s", "2 low p2: limit bucket in 20s"}; !slices.Equal(got, want) {
			t.Errorf("why says %q, want %q", got, want)
		}
		const want = "agent class expected_at held_by held_until limit position reason scope ticket"
		if got := keys(t, at(t, asJSON(t, list), 0)); got != want {
			t.Errorf("keys are %s, want %s", got, want)
		}
		c.order()
	})
}

func TestWhyNamesWhoHoldsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(2))
		one, two := acquire(t, g, from("one")), acquire(t, g, from("two"))
		c := &crowd{tb: t, gate: g}
		c.ask("third", from("third"))
		list, err := g.Why(t.Context(), "api")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		w := list[0]
		if w.Limit != "places" || w.Reason != "limit" || !slices.Equal(w.HeldBy, []string{"one", "two"}) {
			t.Errorf("got %+v, want places, held by one and two", w)
		}
		if w.ExpectedAt != nil {
			t.Errorf("expected at %v, but nobody knows when a place will be free", w.ExpectedAt)
		}
		end(t, one)
		end(t, two)
		c.order()
	})
}

func TestWhyDoesNotBlameAnotherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := places(1)
		l.Per = []sluice.Scope{sluice.PerModel}
		g := open(t, l)
		opus := acquire(t, g, sluice.Request{Resource: "api", Agent: "one", Model: "opus"})
		haiku := acquire(t, g, sluice.Request{Resource: "api", Agent: "two", Model: "haiku"})
		c := &crowd{tb: t, gate: g}
		c.ask("third", sluice.Request{Resource: "api", Agent: "third", Model: "opus"})
		if list, err := g.Why(t.Context(), "api"); err != nil || !slices.Equal(list[0].HeldBy, []string{"one"}) {
			t.Errorf("got %+v (%v), want held by one", list, err)
		}
		end(t, opus)
		end(t, haiku)
		c.order()
	})
}

func TestWhyTellsOfPauseProbeAndRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openPausing(t)
		refuse(t, c.gate, sluice.Answer{Cause: "429"})
		for i := range 3 {
			c.send(fmt.Sprint(i), from("a"), time.Second, store.VerdictOK)
		}
		for _, want := range []struct {
			reason, phase string
			waiting       int
			then          time.Duration
		}{
			{"paused", "paused", 3, time.Minute + 500*time.Millisecond},
			{"probe", "probing", 2, 600 * time.Millisecond},
			{"ramp", "ramping", 1, time.Second},
		} {
			list, err := c.gate.Why(t.Context(), "api")
			if err != nil || len(list) != want.waiting || list[0].Reason != want.reason {
				t.Errorf("why says %+v (%v), want %d waiting for reason %q", list, err, want.waiting, want.reason)
			}
			if s := state(t, c.gate); len(s.Gates) != 1 || s.Gates[0].Phase != want.phase || s.Gates[0].Cause != "429" {
				t.Errorf("gates are %+v, want phase %q", s.Gates, want.phase)
			}
			time.Sleep(want.then)
		}
		c.order()
	})
}

// Another gate on the same store has more limits and more classes. What is not known here does no harm.
func TestStatusOfAPoolThatAnotherMemberAddedTo(t *testing.T) {
	s := newShared(t)
	open := func(classes []sluice.Class, limits ...sluice.Limit) *sluice.Gate {
		return s.open(t, sluice.Config{Classes: classes}, limits...)
	}
	first := open(nil, rolling(5, time.Minute))
	second := open([]sluice.Class{{Name: "a", Share: 1}, {Name: "b", Share: 1}, {Name: "c", Share: 1}, {Name: "d", Share: 1}},
		rolling(5, time.Minute), places(5))
	acquire(t, second, from("other"))
	if n := len(state(t, first).Limits); n != 1 {
		t.Errorf("%d limits, want the one it knows", n)
	}
	if _, err := first.Why(t.Context(), "api"); err != nil {
		t.Error(err)
	}
}
