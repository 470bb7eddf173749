package sluice_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	_ "github.com/sluicehq/sluice/store/memstore"
)

const wide = 1_000_000_000

func open(tb testing.TB, limits ...sluice.Limit) *sluice.Gate {
	tb.Helper()
	g, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

func benchmarkAcquireClose(b *testing.B, agents int, limits ...sluice.Limit) {
	g := openConfig(b, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: limits, MaxMeters: max(agents, 10)}}})
	names := make([]string, agents)
	for i := range names {
		names[i] = fmt.Sprintf("agent-%06d", i)
	}
	ctx := context.Background()
	for _, n := range names { // every meter exists before the clock runs
		t, err := g.Acquire(ctx, sluice.Request{Resource: "api", Agent: n})
		if err != nil {
			b.Fatal(err)
		}
		t.Close()
	}
	b.ReportAllocs()
	b.ResetTimer()
	k := 0
	for b.Loop() {
		t, err := g.Acquire(ctx, sluice.Request{Resource: "api", Agent: names[k]})
		if err != nil {
			b.Fatal(err)
		}
		t.Close()
		if k += 7919; k >= agents {
			k %= agents
		}
	}
}

func BenchmarkAcquireCloseOneLimit(b *testing.B) {
	benchmarkAcquireClose(b, 1, sluice.Limit{Name: "b", Kind: sluice.Bucket, Size: wide, Window: time.Second})
}

func BenchmarkAcquireCloseFourLimits(b *testing.B) {
	benchmarkAcquireClose(b, 1,
		sluice.Limit{Name: "b", Kind: sluice.Bucket, Size: wide, Window: time.Second},
		sluice.Limit{Name: "r", Kind: sluice.Rolling, Size: wide, Window: time.Second},
		sluice.Limit{Name: "f", Kind: sluice.Fixed, Size: wide, Window: time.Second},
		sluice.Limit{Name: "c", Kind: sluice.Concurrency, Size: 100})
}

func BenchmarkAcquireClosePerAgent(b *testing.B) {
	benchmarkAcquireClose(b, 100_000,
		sluice.Limit{Name: "b", Kind: sluice.Bucket, Size: wide, Window: time.Second, Per: []sluice.Scope{sluice.PerAgent}})
}
