package eventlog

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// keep writes events to a log.
func keep(tb testing.TB, events ...inspect.Event) string {
	tb.Helper()
	dir := tb.TempDir()
	w := Open(dir)
	for _, e := range events {
		w.Add(e)
	}
	shut(tb, w)
	return dir
}

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func sendAt(seconds float64, ticket, agent string) inspect.Event {
	return inspect.Event{
		Time: at(seconds), Kind: inspect.EventSend, Resource: "api", Ticket: ticket, Agent: agent, Model: "m", Units: map[string]int64{"requests": 1, "tokens": 10},
	}
}

func caller(tb testing.TB, r *inspect.ResourceReport, name string) inspect.CallerReport {
	tb.Helper()
	for _, c := range r.Callers {
		if c.Name == name {
			return c
		}
	}
	tb.Fatalf("there is no caller %q", name)
	return inspect.CallerReport{}
}

func TestReportFromTheLog(t *testing.T) {
	again := sendAt(2, "api.1-3", "a")
	again.Retry, again.WaitedMS = true, 1500
	dir := keep(t,
		sendAt(0, "api.1-1", "a"), sendAt(0.5, "api.1-2", "b"),
		// From another process, which does not know whose ticket it is.
		inspect.Event{Time: at(1), Kind: inspect.EventAnswer, Resource: "api", Ticket: "api.1-1", Verdict: "throttled", Status: 429},
		inspect.Event{Time: at(1), Kind: inspect.EventThrottled, Resource: "api", Ticket: "api.1-1", Verdict: "throttled", Status: 429},
		inspect.Event{Time: at(1), Kind: inspect.EventAnswer, Resource: "api", Ticket: "api.1-2", Verdict: "error", Status: 500},
		again,
		inspect.Event{Time: at(3), Kind: inspect.EventAnswer, Resource: "api", Ticket: "api.1-3", Verdict: "ok", Units: map[string]int64{"tokens": 14, "other": 1}},
		inspect.Event{Time: at(3), Kind: inspect.EventUsage, Resource: "api", Ticket: "api.1-3", Units: map[string]int64{"tokens": 15}},
		sendAt(61, "api.1-4", "a"), sendAt(62, "api.1-5", "b"),
		inspect.Event{Time: at(62), Kind: inspect.EventCancel, Resource: "api", Ticket: "api.1-5"},
		inspect.Event{Time: at(62), Kind: inspect.EventUpstream, Resource: "api", Agent: "a", Reason: "refused"},
		inspect.Event{Time: at(63), Kind: inspect.EventPause, Resource: "api"},
		inspect.Event{Time: at(63), Kind: inspect.EventSend, Resource: "zoo", Agent: "a"},
	)
	rep, err := Report(dir, time.Time{})
	if err != nil || len(rep.Resources) != 2 || rep.Resources[1].Name != "zoo" || !rep.Since.Equal(start) {
		t.Fatalf("got %+v, %v", rep, err)
	}
	api := &rep.Resources[0]
	a, b := caller(t, api, "a"), caller(t, api, "b")
	if a.FirstSends != 2 || a.Retries != 1 || a.Throttled != 1 || a.Failed != 1 || a.WaitedMS != 1500 || a.PeakPerS != 1 || a.PeakPerMin != 2 || a.Units["tokens"] != 35 {
		t.Errorf("a is %+v", a)
	}
	if a.Units["other"] != 1 || a.Models["m"].Sends != 3 || a.Models["m"].Retries != 1 || a.Models["m"].Units["tokens"] != 35 || a.MeanPerS != 3.0/120 {
		t.Errorf("a is %+v", a)
	}
	if b.FirstSends != 1 || b.Failed != 1 || b.Units["tokens"] != 10 {
		t.Errorf("b is %+v", b)
	}
	if all := api.Total; all.FirstSends != 3 || all.Retries != 1 || all.PeakPerS != 2 || all.PeakPerMin != 3 || all.Throttled != 1 || all.Failed != 2 {
		t.Errorf("in total %+v", all)
	}
	if api.Callers[0].Name != "a" {
		t.Error("the one that sent most is not first")
	}
}

// Only events since the start count, but tickets from before are known.
func TestReportSince(t *testing.T) {
	hours := 20 * time.Hour.Seconds() // a ticket can live that long
	dir := keep(t,
		sendAt(60-hours, "api.1-0", "a"), sendAt(0, "api.1-1", "a"), sendAt(120, "api.1-2", "a"),
		inspect.Event{Time: at(120), Kind: inspect.EventThrottled, Resource: "api", Ticket: "api.1-0"},
		inspect.Event{Time: at(121), Kind: inspect.EventThrottled, Resource: "api", Ticket: "api.1-1"},
		inspect.Event{Time: at(122), Kind: inspect.EventCancel, Resource: "api", Ticket: "api.1-1"},
	)
	rep, err := Report(dir, at(60))
	if err != nil || len(rep.Resources) != 1 || !rep.Since.Equal(at(60)) {
		t.Fatalf("got %+v, %v", rep, err)
	}
	if a := caller(t, &rep.Resources[0], "a"); a.FirstSends != 1 || a.Throttled != 2 {
		t.Errorf("a is %+v", a)
	}
}

// The log adds what the store does not remember and what it never knew. Nothing counts twice.
func TestComplete(t *testing.T) {
	passed := sendAt(200, "api.0-7", "a")
	passed.Observed = true
	dir := keep(t,
		sendAt(0, "api.1-1", "a"), sendAt(1, "api.1-2", "c"), // forgotten
		sendAt(180, "api.1-3", "a"), // remembered
		inspect.Event{Time: at(181), Kind: inspect.EventThrottled, Resource: "api", Ticket: "api.1-3"},
		passed,
		inspect.Event{Time: at(201), Kind: inspect.EventThrottled, Resource: "api", Ticket: "api.0-7", Observed: true},
		inspect.Event{Time: at(1), Kind: inspect.EventSend, Resource: "other", Agent: "a"},
	)
	known := inspect.CallerReport{
		Name: "a", FirstSends: 1, Throttled: 1, PeakPerS: 1, Units: map[string]int64{"requests": 1}, Models: map[string]inspect.ModelReport{},
		Minutes: map[time.Time]int64{at(180): 1},
	}
	total := known
	total.Name, total.Minutes = "", map[time.Time]int64{at(180): 1}
	total.Units, total.Models = map[string]int64{"requests": 1}, map[string]inspect.ModelReport{}
	rep := inspect.Report{Since: at(120), Resources: []inspect.ResourceReport{{Name: "api", Since: at(120), Total: total, Callers: []inspect.CallerReport{known}}}}
	if err := Complete(&rep, dir, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if len(rep.Resources) != 1 || !rep.Since.Equal(start) || !rep.Resources[0].Since.Equal(start) {
		t.Errorf("got %+v", rep)
	}
	a, c := caller(t, &rep.Resources[0], "a"), caller(t, &rep.Resources[0], "c")
	if a.FirstSends != 3 || a.Throttled != 2 || a.PeakPerMin != 2 || a.Units["requests"] != 3 {
		t.Errorf("a is %+v", a)
	}
	if c.FirstSends != 1 || c.MeanPerS != 1.0/60 {
		t.Errorf("c is %+v", c)
	}
	if got := rep.Resources[0].Total; got.FirstSends != 4 || got.Throttled != 2 || got.MeanPerS != 4.0/240 {
		t.Errorf("in total %+v", got)
	}
	if err := Complete(&rep, t.TempDir(), time.Time{}); err != nil {
		t.Errorf("without a log: %v", err)
	}
}

// Stores that share a log are reported apart. Events of earlier versions, which have no label, belong to every store.
func TestReportOfOneStoreAmongSeveral(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	for store, agent := range map[string]string{"file": "a", "redis-1": "b", "": "old"} {
		w := OpenFor(dir, store)
		w.Add(inspect.Event{Time: now, Kind: inspect.EventSend, Resource: "api", Agent: agent, Model: "m", Requested: "m-" + agent, Observed: true})
		w.Add(inspect.Event{Time: now, Kind: inspect.EventThrottled, Resource: "api", Agent: agent, Observed: true})
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for store, want := range map[string][]string{"file": {"a", "old"}, "redis-1": {"b", "old"}, "redis-2": {"old"}} {
		rep := inspect.Report{Resources: []inspect.ResourceReport{{Name: "api", Since: now}}}
		if err := Complete(&rep, dir, now.Add(-time.Minute), store); err != nil {
			t.Fatal(err)
		}
		var callers []string
		for _, c := range rep.Resources[0].Callers {
			callers = append(callers, c.Name)
		}
		if slices.Sort(callers); !slices.Equal(callers, want) {
			t.Errorf("%s: callers %q, want %q", store, callers, want)
		}
		if got := rep.Resources[0].ThrottledMinutes[now.UTC().Truncate(time.Minute)]; got != int64(len(want)) {
			t.Errorf("%s: %d refusals in the minute", store, got)
		}
	}
	names, err := Requested(dir, now.Add(-time.Minute), "redis-2")
	if err != nil || names["api"]["m"] != "m-old" {
		t.Errorf("%v, %v", names, err)
	}
}

// Waits that ended without a send count, although the store does not remember them: those of callers that gave up, and those
// that were refused when their time was over.
func TestReportCountsAbandonedWaits(t *testing.T) {
	send := sendAt(10, "api.1-1", "a")
	send.WaitedMS = 1000
	dir := keep(t, send,
		inspect.Event{Time: at(-20), Kind: inspect.EventAbandoned, Resource: "api", Agent: "a", WaitedMS: 9000}, // before the period
		inspect.Event{Time: at(20), Kind: inspect.EventAbandoned, Resource: "api", Agent: "a", WaitedMS: 5000, Reason: "limit"},
		inspect.Event{Time: at(30), Kind: inspect.EventRefused, Resource: "api", Agent: "b", WaitedMS: 3000, Reason: "deadline", Units: map[string]int64{"requests": 1}},
		inspect.Event{Time: at(31), Kind: inspect.EventRefused, Resource: "api", Agent: "b", Reason: "full"},
	)
	rep, err := Report(dir, at(-10))
	if err != nil {
		t.Fatal(err)
	}
	r := &rep.Resources[0]
	if a, b := caller(t, r, "a"), caller(t, r, "b"); r.Total.WaitedMS != 9000 || a.WaitedMS != 6000 || b.WaitedMS != 3000 || r.Total.FirstSends != 1 || b.FirstSends != 0 {
		t.Errorf("%+v", r)
	}
	// The store has the send.
	stored := inspect.Report{Since: at(-10), Resources: []inspect.ResourceReport{{Name: "api", Since: at(-10), Total: *newCaller(""), Callers: []inspect.CallerReport{}}}}
	stored.Resources[0].Total.FirstSends, stored.Resources[0].Total.WaitedMS = 1, 1000
	if err := Complete(&stored, dir, at(-10)); err != nil {
		t.Fatal(err)
	}
	if total := stored.Resources[0].Total; total.WaitedMS != 9000 || total.FirstSends != 1 || !stored.Resources[0].Since.Equal(at(-10)) {
		t.Errorf("%+v", total)
	}
}
