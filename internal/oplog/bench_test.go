package oplog

import (
	"testing"

	"github.com/sluicehq/sluice/store"
)

var batches = []struct {
	name string
	ops  []store.Op
}{
	{"acquire", []store.Op{acquire()}},
	{"answer", []store.Op{answer()}},
	{"heartbeat", []store.Op{heartbeat()}},
}

func BenchmarkAppendApply(b *testing.B) {
	for _, batch := range batches {
		b.Run(batch.name, func(b *testing.B) {
			buf := make([]byte, 0, Bound(batch.ops))
			b.ReportAllocs()
			for b.Loop() {
				buf = AppendApply(buf[:0], now, batch.ops)
			}
			b.ReportMetric(float64(len(buf)), "bytes/entry")
		})
	}
}

func BenchmarkBound(b *testing.B) {
	ops := batches[0].ops
	for b.Loop() {
		Bound(ops)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, batch := range batches {
		b.Run(batch.name, func(b *testing.B) {
			entry := AppendApply(nil, now, batch.ops)
			var e Entry
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Next(entry); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
