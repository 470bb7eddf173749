package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/inspect"
)

// An outage of the store logs one line when it begins and one when it ends, for any number of resources.
func TestAnOutageIsLoggedOnceForAllResources(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(slog.New(slog.NewTextHandler(&out, nil)))
	names := []string{"anthropic", "github", "openai"}
	each := func(e inspect.Event) {
		for _, e.Resource = range names {
			tell.Event(e)
		}
	}
	each(inspect.Event{Kind: inspect.EventStoreLost, Error: "Redis did not answer in time"})
	each(inspect.Event{Kind: inspect.EventState, State: inspect.StateDegraded, Was: inspect.StateIdle})
	each(inspect.Event{Kind: inspect.EventStoreBack})
	each(inspect.Event{Kind: inspect.EventState, State: inspect.StateIdle, Was: inspect.StateDegraded})
	// Another cause is told of each, with its end.
	tell.Event(inspect.Event{Kind: inspect.EventState, Resource: "github", State: inspect.StateDegraded, Was: inspect.StateIdle, Reason: "its lease is lost"})
	tell.Event(inspect.Event{Kind: inspect.EventState, Resource: "github", State: inspect.StateIdle, Was: inspect.StateDegraded})
	tell.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"the store is out of reach", "the store is back", "github is degraded", "github is no longer degraded"}
	if len(lines) != len(want) {
		t.Fatalf("it logged:\n%s", out.String())
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("line %d is %q, want %q", i, lines[i], w)
		}
	}
}

// The first answer that rejects a request is logged, for each resource. The state tells of the rest.
func TestTheFirstRejectionIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(slog.New(slog.NewTextHandler(&out, nil)))
	for _, e := range []inspect.Event{
		{Resource: "openai", Status: 200, Verdict: "ok"},
		{Resource: "openai", Status: 429, Verdict: "throttled"},
		{Resource: "openai", Status: 402, Verdict: "billing stop"},
		{Resource: "openai", Status: 404, Verdict: "ok", Agent: "web", Model: "gpt-9", Reason: "the provider does not know model gpt-9"},
		{Resource: "openai", Status: 401, Verdict: "ok"},
		{Resource: "github", Status: 401, Verdict: "ok"},
		{Resource: "github", Status: 408, Verdict: "error"},
	} {
		e.Kind = inspect.EventAnswer
		tell.Event(e)
	}
	tell.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("it logged:\n%s", out.String())
	}
	for i, want := range []string{`msg="openai rejected a request" resource=openai status=404 agent=web model=gpt-9 reason="the provider does not know model gpt-9"`, `msg="github rejected a request" resource=github status=401`} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}
