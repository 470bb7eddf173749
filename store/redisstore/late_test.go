package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// Reports that could not be sent before an outage reach Redis after it, whatever the process does meanwhile.
func TestReportsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	for _, mode := range []store.OnFailure{store.FailShare, store.FailClosed, store.FailOpen} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t, persistent...)
			st, err := redisstore.Open(t.Context(), slowly(server.URL()), redisstore.WithStateDir(""))
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			st.AnswerWithin(unhurried)
			g, err := sluice.OpenWithStore(t.Context(), st, sluice.Config{Store: server.URL(), OnStoreFailure: mode, Resources: map[string]sluice.Resource{
				"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 10}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			state := func() inspect.ResourceStatus {
				t.Helper()
				s, err := g.Resource(context.Background(), "api")
				if err != nil && !errors.Is(err, sluice.ErrStore) {
					t.Fatal(err)
				}
				return s
			}
			var tickets []sluice.Ticket
			for range 5 {
				ticket, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"})
				if err != nil {
					t.Fatal(err)
				}
				tickets = append(tickets, ticket)
			}
			if n := state().InFlight; n != 5 {
				t.Fatalf("%d in flight", n)
			}
			st.AnswerWithin(0)
			if err := server.Pause(); err != nil {
				t.Fatal(err)
			}
			for _, ticket := range tickets {
				if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
					t.Errorf("answer: %v", err)
				}
				if err := ticket.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			await(t, "the store is lost", func() bool { return state().Outage != nil })
			st.AnswerWithin(unhurried)
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
			await(t, "all have ended", func() bool {
				s := state()
				return s.Outage == nil && s.Name != "" && s.InFlight == 0
			})
		})
	}
}
