package api

import (
	"fmt"
	"testing"
	"time"
)

// Regression: if no limit had a size, tickets that were never closed were remembered forever.
func TestOpenTicketsAreForgottenAndBounded(t *testing.T) {
	t.Parallel()
	var o open
	now := time.Unix(1_000_000, 0)
	for round := range 3 {
		for i := range maxOpen {
			if !o.add("api", fmt.Sprint(round, i), opened{until: now.Add(time.Minute)}, nil, now) {
				t.Fatalf("ticket %d of round %d does not fit", i, round)
			}
		}
		if o.add("api", "more", opened{until: now.Add(time.Minute)}, nil, now) {
			t.Error("there can be any number of open tickets")
		}
		if !o.add("other", fmt.Sprint(round), opened{until: now.Add(time.Minute)}, nil, now) {
			t.Error("another resource is full too")
		}
		now = now.Add(2 * time.Minute)
	}
	if o.fits("api", opened{}, nil, now); len(o.all["api"]) != 0 {
		t.Errorf("%d tickets are remembered whose time is over", len(o.all["api"]))
	}
}
