package remotestore_test

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/remotestore"
)

// BenchmarkTicket measures a ticket through a daemon, for one caller and for many, which share their requests.
func BenchmarkTicket(b *testing.B) {
	mem := memstore.New()
	lent := storeapi.New(storeapi.Options{Store: mem, Identify: anybody})
	server := httptest.NewServer(lent)
	st, err := remotestore.Open(b.Context(), server.URL)
	if err != nil {
		b.Fatal(err)
	}
	gate, err := sluice.OpenWithStore(b.Context(), st, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
		{Name: "places", Kind: sluice.Concurrency, Size: 1 << 20},
	}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = gate.Close()
		_ = st.Close()
		lent.Drain()
		server.Close()
		_ = lent.Close()
		_ = mem.Close()
	})
	one := func(b *testing.B) {
		t, err := gate.Acquire(context.Background(), sluice.Request{Resource: "api", Agent: "a"})
		if err == nil {
			err = t.Close()
		}
		if err != nil {
			b.Error(err)
		}
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			one(b)
		}
	})
	b.Run("64", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one(b)
			}
		})
	})
}
