package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

// An outage of the store is one line when it begins and one when it ends, however many resources there are.
func TestAnOutageIsLoggedOnceForAllResources(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(slog.New(slog.NewTextHandler(&out, nil)))
	names := []string{"anthropic", "github", "openai"}
	each := func(e sluice.Event) {
		for _, e.Resource = range names {
			tell.Event(e)
		}
	}
	each(sluice.Event{Kind: sluice.EventStoreLost, Error: "Redis did not answer in time"})
	each(sluice.Event{Kind: sluice.EventState, State: sluice.StateDegraded, Was: sluice.StateIdle})
	each(sluice.Event{Kind: sluice.EventStoreBack})
	each(sluice.Event{Kind: sluice.EventState, State: sluice.StateIdle, Was: sluice.StateDegraded})
	// Another cause is told of each, with its end.
	tell.Event(sluice.Event{Kind: sluice.EventState, Resource: "github", State: sluice.StateDegraded, Was: sluice.StateIdle, Reason: "its lease is lost"})
	tell.Event(sluice.Event{Kind: sluice.EventState, Resource: "github", State: sluice.StateIdle, Was: sluice.StateDegraded})
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
