//go:build !race

// The race detector makes sync.Pool forget at random, so there is nothing to count.

package sluice_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

func TestUncontendedRequestAllocatesNothing(t *testing.T) {
	four := []sluice.Limit{
		{Name: "b", Kind: sluice.Bucket, Size: wide, Window: time.Second},
		{Name: "r", Kind: sluice.Rolling, Size: wide, Window: time.Second},
		{Name: "f", Kind: sluice.Fixed, Size: wide, Window: time.Second},
		{Name: "c", Kind: sluice.Concurrency, Size: 100},
	}
	for name, limits := range map[string][]sluice.Limit{"one limit": four[:1], "four limits": four} {
		t.Run(name, func(t *testing.T) {
			g := open(t, limits...)
			ctx := context.Background()
			for _, c := range []struct {
				what string
				req  sluice.Request
			}{
				{"a plain request", from("a")},
				{"one with everything", sluice.Request{
					Resource: "api", Agent: "a", Class: sluice.P1, User: "u", Model: "m", Tool: "llm_call", Key: "k", Retry: true,
				}},
			} {
				if n := testing.AllocsPerRun(2000, func() {
					ticket, err := g.Acquire(ctx, c.req)
					if err != nil {
						t.Fatal(err)
					}
					ticket.Close()
				}); n != 0 {
					t.Errorf("%s allocates %v times", c.what, n)
				}
			}
		})
	}
}

// A whole ticket on a shared store: its answer and its end are reported late, with the usage.
func TestLateReportAllocatesNothing(t *testing.T) {
	s := newShared(t)
	g := s.open(t, sluice.Config{}, sluice.Limit{Name: "r", Kind: sluice.Rolling, Unit: "tokens", Size: wide, Window: time.Second}, places(100))
	ctx, req, usage := context.Background(), costs("a", sluice.Amount{Unit: "tokens", N: 9}), []sluice.Amount{{Unit: "tokens", N: 7}}
	if n := testing.AllocsPerRun(2000, func() {
		ticket, err := g.Acquire(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Answer(fine); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Close(usage...); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
