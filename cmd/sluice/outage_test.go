package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/internal/storeurl"
)

func TestOutageForPeople(t *testing.T) {
	t.Parallel()
	lost := inspect.ResourceStatus{
		Name: "api", State: "degraded", Light: "green", Outage: &inspect.OutageStatus{Since: at(-12 * time.Second), Why: "Redis cannot be reached\x1b", Mode: "share", Granted: 31, Meanwhile: "goes on within its share; it has no share of the limit hour\x1b and holds requests that need it"},
	}
	closed := inspect.ResourceStatus{Name: "db", State: "degraded", Light: "green", Outage: &inspect.OutageStatus{Why: "no route", Mode: "closed", Meanwhile: "holds all requests"}}
	silent := inspect.ResourceStatus{Name: "search", State: "idle", Light: "green", Members: 4, SilentMembers: 2, Limits: []inspect.LimitStatus{
		{Name: "minute", Kind: "rolling", Unit: "requests", Limit: 100, Remaining: 60, Withheld: 40, Light: "green"},
		{Name: "each", Kind: "bucket", Unit: "requests", Scope: "model=opus", Limit: 10, Remaining: 6, Withheld: 4, Light: "green"},
		{Name: "day", Kind: "fixed", Unit: "requests", Limit: 1000, Remaining: 1000, Light: "green"},
	}}
	one := inspect.ResourceStatus{Name: "one", State: "idle", Light: "green", Members: 2, SilentMembers: 1}
	st := &inspect.Status{Store: "redis://host:6379", Resources: []inspect.ResourceStatus{lost, closed, silent, one}}
	for i := range st.Resources {
		st.Resources[i].Configured = true
	}
	golden(t, "outage", drawn(show.Style{}, 0, func(s *screen) { s.status(st, someClasses) }))
}

func TestDoctorTellsOfOutages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := eventlog.Open(dir)
	for i, e := range []inspect.Event{
		{Kind: inspect.EventStoreLost, Resource: "old", Mode: "share"},
		{Kind: inspect.EventStoreLost, Resource: "api", Mode: "closed", Error: "connection refused"},
		{Kind: inspect.EventStoreBack, Resource: "api", Mode: "closed", ForMS: 65_000},
		{Kind: inspect.EventStoreBack, Resource: "old", Mode: "share", ForMS: 1000, Count: 5},
		{Kind: inspect.EventStoreLost, Resource: "api", Mode: "open", Error: "no route"},
		{Kind: inspect.EventStoreBack, Resource: "api", Mode: "open", ForMS: 2000, Count: 7},
		{Kind: inspect.EventSend, Resource: "quiet", Agent: "a"},
	} {
		e.Time = noon.Add(time.Duration(i) * time.Minute)
		log.Add(e)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readOutages(&session{dir: dir, label: "file"}, noon.Add(time.Second))
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	for resource, want := range map[string][]string{
		"api": {"lost the store 2 times in this period", "at 2026-03-01T12:04:00Z (no route)", "longest outage took 1m05s", "7 requests were sent without it", "open, each sends all requests without limits"},
		"old": {"had lost the store before this period", "5 requests were sent", "share, each holds requests for 3 s, then goes on within its share"},
	} {
		a := got[resource].advice()
		for _, text := range want {
			if a.Setting != "on_store_failure" || !strings.Contains(a.Text, text) {
				t.Errorf("%s: %+v, want %q in it", resource, a, text)
			}
		}
	}
}

// The listed schemes are the ones that the stores have registered.
func TestStoresAreListed(t *testing.T) {
	t.Parallel()
	_, err := sluice.Open(t.Context(), sluice.Config{Store: "nonsense:"})
	if err == nil {
		t.Fatal("it was opened")
	}
	_, list, _ := strings.Cut(err.Error(), "known are [")
	list, _, _ = strings.Cut(list, "]")
	known := map[string]bool{}
	for _, scheme := range strings.Fields(list) {
		known[strings.Trim(scheme, `"`)] = true
	}
	for _, scheme := range storeurl.Schemes {
		if !known[scheme] {
			t.Errorf("%s: is not registered", scheme)
		}
		delete(known, scheme)
	}
	if len(known) > 0 {
		t.Errorf("not listed: %v", known)
	}
}
