package eventlog

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

func paid(e inspect.Event, micros int64, retry, unpriced bool) inspect.Event {
	e.Units[sluice.USD], e.Retry, e.Unpriced = micros, retry, unpriced
	return e
}

func held(e inspect.Event, reason string) inspect.Event {
	e.Reason, e.WaitedMS = reason, 400
	return e
}

// Costs are in the log only: they count even for sends that the store knows. Each send counts once, with its actual
// cost if that is known, otherwise with its estimate.
func TestMoneyFromTheLog(t *testing.T) {
	usage := func(ticket string, micros int64) inspect.Event {
		return inspect.Event{Time: at(5), Kind: inspect.EventUsage, Resource: "api", Ticket: ticket, Units: map[string]int64{sluice.USD: micros}}
	}
	dir := keep(t,
		paid(sendAt(-120, "api.1-9", "a"), 5_000, false, false), // before the period
		held(paid(sendAt(0, "api.1-1", "a"), 100, false, false), "limit"), usage("api.1-1", 250),
		held(paid(sendAt(1, "api.1-2", "a"), 100, true, true), "order"), // nobody says
		paid(sendAt(2, "api.1-3", "b"), 100, true, false), usage("api.1-3", 0),
		held(paid(sendAt(3, "api.1-4", "b"), 700, false, true), "limit"),
		inspect.Event{Time: at(4), Kind: inspect.EventCancel, Resource: "api", Ticket: "api.1-4"},
		held(sendAt(4, "api.1-5", "c"), "limit"), usage("api.1-5", 9), // it was not asked for with money
		usage("api.1-9", 9_000),
	)
	fromStore := inspect.Report{Since: start, Resources: []inspect.ResourceReport{{Name: "api", Since: at(-3600), Total: *newCaller(""), Callers: []inspect.CallerReport{*newCaller("a")}}}}
	fromStore.Resources[0].Total.FirstSends, fromStore.Resources[0].Callers[0].FirstSends = 4, 4
	if err := Complete(&fromStore, dir, start); err != nil {
		t.Fatal(err)
	}
	alone, err := Report(dir, start)
	if err != nil {
		t.Fatal(err)
	}
	if r := fromStore.Resources[0]; !r.Since.Equal(at(-3600)) || r.Total.FirstSends != 4 || caller(t, &r, "a").FirstSends != 4 {
		t.Errorf("sends that the store knows of were counted twice: %+v", r)
	}
	for name, rep := range map[string]inspect.Report{"with the store": fromStore, "alone": alone} {
		r := &rep.Resources[0]
		for who, want := range map[string][5]int64{"a": {350, 100, 1, 1, 250}, "b": {}, "c": {0, 0, 0, 1, 0}, "": {350, 100, 1, 2, 250}} {
			c := r.Total
			if who != "" {
				c = caller(t, r, who)
			}
			if got := [5]int64{c.Micros, c.RetryMicros, c.Unpriced, c.Held, c.HeldMicros}; got != want {
				t.Errorf("%s, %q: %v, want %v", name, who, got, want)
			}
		}
	}
	if rep, err := Report(dir, time.Time{}); err != nil || rep.Resources[0].Total.Micros != 350+9_000 {
		t.Errorf("%+v, %v", rep, err)
	}
}
