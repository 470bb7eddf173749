package sluice_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

// Unanswered tickets that fill a limit hold it until they are answered or their time to live is over. No time is promised
// before that, and their agent is named.
func TestUnansweredTicketsPromiseNoTime(t *testing.T) {
	for name, limit := range map[string]sluice.Limit{
		"bucket": bucket(5, time.Second, 10), "rolling": rolling(10, time.Second),
		"fixed": {Name: "fixed", Kind: sluice.Fixed, Size: 10, Window: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, sluice.Resource{Limits: []sluice.Limit{limit}})
				var open []sluice.Ticket
				for range 10 {
					open = append(open, acquire(t, g, sluice.Request{Resource: "api", Agent: "f", TTL: 10 * time.Minute}))
				}
				time.Sleep(5 * time.Minute)
				_, err := g.Try(t.Context(), from("b"))
				if e := wantError(t, err, sluice.ErrNotNow); !e.RetryAt.IsZero() || e.Limit != name || e.Hint == "" {
					t.Errorf("refused until %v by %s", e.RetryAt, e.Limit)
				}
				went := make(chan time.Time, 1)
				go func() {
					if waited, err := g.Acquire(context.WithoutCancel(t.Context()), from("b")); err == nil {
						went <- time.Now()
						_ = waited.Close()
					}
				}()
				synctest.Wait()
				list, err := g.Why(t.Context(), "api")
				if err != nil || len(list) != 1 || list[0].ExpectedAt != nil || len(list[0].HeldBy) != 1 || list[0].HeldBy[0] != "f" {
					t.Errorf("waiting: %+v %v", list, err)
				}
				end(t, open[0])
				if at := <-went; at.After(bubbleStart.Add(6 * time.Minute)) {
					t.Errorf("the request went at %v", at)
				}
			})
		})
	}
}
