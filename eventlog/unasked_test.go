package eventlog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"

	_ "github.com/sluicehq/sluice/store/memstore"
)

// Output of a request that asked for none is in the store's report. The log must not add it again.
func TestUseThatWasNotAskedForCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().Add(-time.Minute)
		var events []inspect.Event
		g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Events: func(e inspect.Event) { events = append(events, e) },
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
				{Name: "requests", Size: 100, Window: time.Minute, Kind: store.Rolling},
				{Name: "output", Unit: "output_tokens", Size: 1000, Window: time.Minute, Kind: store.Rolling},
			}}}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		ticket, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{{Unit: "output_tokens", N: 0}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Answer(sluice.Answer{Status: 200, Verdict: store.VerdictOK}); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Close(sluice.Amount{Unit: "output_tokens", N: 159}, sluice.Amount{Unit: "pages", N: 3}); err != nil {
			t.Fatal(err)
		}
		rep, err := g.Report(t.Context(), began)
		if err != nil {
			t.Fatal(err)
		}
		if err := Complete(&rep, keep(t, events...), began); err != nil {
			t.Fatal(err)
		}
		if units := rep.Resources[0].Total.Units; units["output_tokens"] != 159 || units["pages"] != 3 {
			t.Errorf("%v, want 159 output_tokens, and 3 pages that no limit counts", units)
		}
	})
}
