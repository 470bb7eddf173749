package sluice_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A connection takes only concurrency, and the requests over it take all else.
func TestHolds(t *testing.T) {
	g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
		{Name: "minute", Kind: sluice.Rolling, Size: 10, Window: time.Minute}, {Name: "places", Kind: sluice.Concurrency, Size: 1},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	used := func() (minute, places int64) {
		s, err := g.Resource(t.Context(), "api")
		if err != nil || len(s.Limits) != 2 {
			t.Fatalf("%+v %v", s, err)
		}
		return s.Limits[0].Used, s.Limits[1].Used
	}
	connection, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Holds: sluice.HoldsPlace})
	if err != nil {
		t.Fatal(err)
	}
	if minute, places := used(); minute != 0 || places != 1 {
		t.Errorf("a connection takes %d of the minute, %d places", minute, places)
	}
	for range 3 {
		response, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Holds: sluice.HoldsNoPlace})
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Close(); err != nil {
			t.Error(err)
		}
	}
	if minute, places := used(); minute != 3 || places != 1 {
		t.Errorf("with three responses %d of the minute, %d places", minute, places)
	}
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a"}); err == nil {
		t.Error("a request by itself finds a place")
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if _, places := used(); places != 0 {
		t.Errorf("%d places are left taken", places)
	}
}
