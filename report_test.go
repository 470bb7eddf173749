package sluice_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

func report(tb testing.TB, g *sluice.Gate, since time.Time) inspect.ResourceReport {
	tb.Helper()
	rep, err := g.Report(context.Background(), since)
	if err != nil {
		tb.Fatal(err)
	}
	if len(rep.Resources) != 1 || !since.IsZero() && !rep.Since.Equal(since) {
		tb.Fatalf("the report is %+v", rep)
	}
	return rep.Resources[0]
}

// sends acquires, answers and closes.
func sends(tb testing.TB, g *sluice.Gate, req sluice.Request, v store.Verdict, usage ...sluice.Amount) {
	tb.Helper()
	t := acquire(tb, g, req)
	answer(tb, t, sluice.Answer{Verdict: v})
	end(tb, t, usage...)
}

func TestReportCountsEverySend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Size: wide, Window: time.Minute, Unit: "tokens"}
		g := openResource(t, sluice.Resource{
			Limits: []sluice.Limit{bucket(1, time.Second, 4), tokens}, Backoff: sluice.Backoff{Start: 10 * time.Second},
		})
		opus := sluice.Request{Resource: "api", Agent: "writer", Model: "opus", Cost: []sluice.Amount{{Unit: "tokens", N: 1000}}}
		haiku := opus
		haiku.Model = "haiku"
		again := opus
		again.Retry = true
		for range 3 {
			sends(t, g, opus, store.VerdictOK, sluice.Amount{Unit: "tokens", N: 400}) // settled
		}
		sends(t, g, haiku, store.VerdictError) // keeps its estimate
		sends(t, g, again, store.VerdictOverloaded, sluice.Amount{Unit: "tokens", N: 5})
		time.Sleep(2 * time.Minute)
		reader := sluice.Request{Resource: "api", Agent: "reader", Retry: true}
		sends(t, g, reader, store.VerdictThrottled)
		sends(t, g, reader, store.VerdictOK) // after the pause
		unsent := acquire(t, g, opus)
		if err := unsent.Cancel(); err != nil { // it was never sent
			t.Fatal(err)
		}
		r := report(t, g, bubbleStart)
		want := map[string]string{
			"":       "first 4, retries 3, throttled 1, failed 2, peak 4/s 5/min, mean 0.0389, waited 11000, tokens 2205, requests 7",
			"writer": "first 4, retries 1, throttled 0, failed 2, peak 4/s 5/min, mean 0.0833, waited 1000, tokens 2205, requests 5",
			"reader": "first 0, retries 2, throttled 1, failed 0, peak 1/s 2/min, mean 0.0333, waited 10000, tokens 0, requests 2",
		}
		for _, c := range append(r.Callers, r.Total) {
			got := fmt.Sprintf("first %d, retries %d, throttled %d, failed %d, peak %d/s %d/min, mean %.4f, waited %d, tokens %d, requests %d",
				c.FirstSends, c.Retries, c.Throttled, c.Failed, c.PeakPerS, c.PeakPerMin, c.MeanPerS, c.WaitedMS, c.Units["tokens"], c.Units["requests"])
			if got != want[c.Name] {
				t.Errorf("%q:\n  %s, want\n  %s", c.Name, got, want[c.Name])
			}
		}
		if len(r.Callers) != 2 || r.Callers[0].Name != "writer" {
			t.Errorf("callers are %+v, want the busiest first", r.Callers)
		}
		models := r.Callers[0].Models
		if m := models["opus"]; m.Sends != 4 || m.Retries != 1 || m.Units["tokens"] != 1205 {
			t.Errorf("opus: %+v", m)
		}
		if m := models["haiku"]; len(models) != 2 || m.Sends != 1 || m.Retries != 0 || m.Units["tokens"] != 1000 {
			t.Errorf("haiku: %+v of %+v", m, models)
		}
	})
}

// Callers that are each calm can be a burst together.
func TestReportOfPeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		for i := range 5 {
			pass(t, g, from(fmt.Sprint("agent", i)))
			pass(t, g, sluice.Request{Resource: "api", Agent: fmt.Sprint("agent", i), Model: "m"})
		}
		time.Sleep(time.Minute)
		spend(t, g, from("agent0"), 3)
		r := report(t, g, bubbleStart)
		if r.Total.PeakPerS != 10 || r.Total.PeakPerMin != 10 || r.Callers[0].PeakPerS != 3 || r.Callers[1].PeakPerS != 2 {
			t.Errorf("peaks are %d a second and %d a minute in all, %d and %d a second of the first two",
				r.Total.PeakPerS, r.Total.PeakPerMin, r.Callers[0].PeakPerS, r.Callers[1].PeakPerS)
		}
		if r := report(t, g, bubbleStart.Add(time.Minute)); r.Total.PeakPerS != 3 {
			t.Errorf("in the last minute the peak is %d a second", r.Total.PeakPerS)
		}
	})
}

func TestReportSinceAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		for range 5 {
			pass(t, g, from("a"))
			time.Sleep(time.Minute)
		}
		for since, want := range map[time.Duration]int64{
			0: 5, time.Minute: 4, 90 * time.Second: 4, 4 * time.Minute: 1, 5 * time.Minute: 0, time.Hour: 0, -time.Hour: 5,
		} {
			r := report(t, g, bubbleStart.Add(since))
			if r.Total.FirstSends != want {
				t.Errorf("%d sends since %v, want %d", r.Total.FirstSends, since, want)
			}
			if want == 0 && (len(r.Callers) != 0 || r.Total.MeanPerS != 0) {
				t.Errorf("nothing was sent, but %+v", r)
			}
		}
		if r := report(t, g, time.Time{}); r.Total.FirstSends != 5 || r.Total.PeakPerMin != 1 || !r.Since.Equal(bubbleStart) {
			t.Errorf("in all %+v", r.Total)
		}
	})
}

// Memory is bounded. The oldest sends are forgotten first, and the report says when it starts.
func TestReportIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		const minutes, agents = 20, 2000
		for range minutes {
			for i := range agents {
				pass(t, g, from(fmt.Sprint("agent", i)))
			}
			time.Sleep(time.Minute)
		}
		r := report(t, g, bubbleStart)
		if r.Total.FirstSends < 15*agents || r.Total.FirstSends%agents != 0 {
			t.Errorf("%d sends are remembered, want some 32,000, in whole minutes", r.Total.FirstSends)
		}
		remembered := r.Total.FirstSends / agents
		if want := bubbleStart.Add(time.Duration(minutes-remembered) * time.Minute); !r.Since.Equal(want) {
			t.Errorf("%d minutes are remembered, since %v, want %v", remembered, r.Since, want)
		}
		if len(r.Callers) != agents || r.Callers[0].FirstSends != remembered {
			t.Errorf("%d callers, the first sent %d", len(r.Callers), r.Callers[0].FirstSends)
		}
		later := bubbleStart.Add(15 * time.Minute)
		if r := report(t, g, later); !r.Since.Equal(later) || r.Total.FirstSends != 5*agents {
			t.Errorf("%d sends since %v", r.Total.FirstSends, r.Since)
		}
	})
}

func TestReportAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		empty, err := g.Report(t.Context(), bubbleStart)
		if err != nil {
			t.Fatal(err)
		}
		v := asJSON(t, empty)
		if callers, ok := at(t, v, "resources", 0, "callers").([]any); !ok || len(callers) != 0 {
			t.Errorf("callers are %v, want an empty list", at(t, v, "resources", 0, "callers"))
		}
		sends(t, g, sluice.Request{Resource: "api", Agent: "a", Model: "m"}, store.VerdictOK)
		rep, err := g.Report(t.Context(), bubbleStart)
		if err != nil {
			t.Fatal(err)
		}
		v = asJSON(t, rep)
		const caller = "failed first_sends held mean_per_s models name peak_per_min peak_per_s retries slowed throttled units unpriced waited_ms would_wait"
		for _, c := range []struct {
			path []any
			want string
		}{
			{nil, "resources since"},
			{[]any{"resources", 0}, "callers name since total"},
			{[]any{"resources", 0, "total"}, caller},
			{[]any{"resources", 0, "callers", 0}, caller},
			{[]any{"resources", 0, "callers", 0, "units"}, "requests"},
			{[]any{"resources", 0, "callers", 0, "models"}, "m"},
			{[]any{"resources", 0, "callers", 0, "models", "m"}, "retries sends units"},
		} {
			if got := keys(t, at(t, v, c.path...)); got != c.want {
				t.Errorf("keys of %v are\n  %s, want\n  %s", c.path, got, c.want)
			}
		}
		if got := at(t, v, "since"); got != "2000-01-01T00:00:00Z" {
			t.Errorf("since is %v", got)
		}
	})
}

func TestStoreWithoutRecordsSaysSo(t *testing.T) {
	s := newShared(t)
	g := s.open(t, sluice.Config{}, roomy())
	_, err := g.Report(t.Context(), time.Time{})
	if e := wantError(t, err, sluice.ErrInvalid); !strings.Contains(e.Error(), "keeps no records") || e.Resource != "api" {
		t.Errorf("the error is %q about %q", e, e.Resource)
	}
	_, err = g.Diagnose(t.Context(), time.Time{})
	wantError(t, err, sluice.ErrInvalid)
}

// Allocations are by class, among live classes, and by agent within a class.
func TestPoolAllocatesByClassAndAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents:    map[string]sluice.Agent{"boss": {Class: "p0"}, "*": {Class: "p1"}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(7), hourly(1000)}}},
		})
		want := func(what string, want map[string]int64) {
			t.Helper()
			got := map[string]int64{}
			for name, a := range pool(t, g).Allocations {
				got[name] = a.Allocated
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: allocated %v, want %v", what, got, want)
			}
		}
		want("nobody", map[string]int64{})
		pass(t, g, from("unknown")) // no free pass: it has the class of those not named
		want("one", map[string]int64{"unknown": 1000})
		boss := join(t, g, sluice.JoinRequest{Agent: "boss"})
		want("two classes", map[string]int64{"boss": 533, "unknown": 466})
		low := []*sluice.Lease{join(t, g, sluice.JoinRequest{Agent: "x", Class: "p2"}), join(t, g, sluice.JoinRequest{Agent: "y", Class: "p2"})}
		want("three classes", map[string]int64{"boss": 400, "unknown": 350, "x": 125, "y": 125})
		p := pool(t, g)
		if p.TotalLimit != 1000 || p.Allocations["x"].Priority != 2 || p.Allocations["unknown"].Priority != 1 || p.Allocations["unknown"].Used != 1 {
			t.Errorf("the pool is %+v", p)
		}
		wantIn(t, "expiry of one that only asked", p.Allocations["unknown"].LeaseExpiry, 5*time.Minute)
		time.Sleep(5 * time.Minute)
		want("one gone", map[string]int64{"boss": 615, "x": 192, "y": 192})
		boss.Kill()
		time.Sleep(5 * time.Minute)
		want("two classes gone", map[string]int64{"x": 500, "y": 500})
		leave(t, low[0])
		want("all but one", map[string]int64{"y": 1000})
		leave(t, low[1])
		_, err := g.Pool(t.Context(), "mars")
		wantError(t, err, sluice.ErrUnknownResource)
	})
}

func TestPoolCountsUseUntilTheReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, hourly(1000))
		for range 30 {
			spend(t, g, from("a"), 10)
			time.Sleep(time.Minute)
		}
		if a := pool(t, g).Allocations["a"]; a.Used < 299 || a.Used > 300 {
			t.Errorf("used %d, want about 300", a.Used)
		}
		time.Sleep(31 * time.Minute)
		spend(t, g, from("a"), 5)
		if a := pool(t, g).Allocations["a"]; a.Used != 5 {
			t.Errorf("used %d since the reset, want 5", a.Used)
		}
	})
}

func TestPoolAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, hourly(1000))
		v := asJSON(t, pool(t, g))
		if got := keys(t, at(t, v, "allocations")); got != "" {
			t.Errorf("allocations are %q, want an empty object", got)
		}
		lease := join(t, g, sluice.JoinRequest{Agent: "a", Class: "p0"})
		v = asJSON(t, pool(t, g))
		if got := keys(t, v); got != "allocations resetAt totalLimit" {
			t.Errorf("keys are %s", got)
		}
		if got := keys(t, at(t, v, "allocations", "a")); got != "allocated class leaseExpiry leaseStart leased machine priority state used user" {
			t.Errorf("keys of an allocation are %s", got)
		}
		if at(t, v, "totalLimit") != 1000.0 || at(t, v, "resetAt") != "2000-01-01T01:00:00Z" && at(t, v, "resetAt") != "2000-01-01T01:00:01.2Z" ||
			at(t, v, "allocations", "a", "leaseExpiry") != "2000-01-01T00:05:00Z" || at(t, v, "allocations", "a", "priority") != 0.0 {
			t.Errorf("it is %v", v)
		}
		leave(t, lease)
	})
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(3), rolling(60, time.Minute))
		if v := asJSON(t, pool(t, g)); at(t, v, "resetAt") != nil || at(t, v, "totalLimit") != 60.0 {
			t.Errorf("a rolling window: %v, want the first limit that is no number of places, and no reset", v)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if v := asJSON(t, pool(t, open(t))); at(t, v, "resetAt") != nil || at(t, v, "totalLimit") != nil {
			t.Errorf("no limit: %v", v)
		}
	})
}

// The store counts in microseconds: a resource began up to one of them before the report.
func TestAResourceDoesNotBeginBeforeItsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(5, time.Minute))
		since := bubbleStart.Add(1234567 * time.Nanosecond)
		time.Sleep(time.Minute)
		if r := report(t, g, since); !r.Since.Equal(since) {
			t.Errorf("since %v, want %v", r.Since, since)
		}
	})
}
