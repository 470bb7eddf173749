package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
)

// BenchmarkAppend measures an append by one process whose callers' operations travel in one entry, and by many processes.
// redis-us is processor time of Redis for each append. Run it on a quiet machine and compare ratios.
func BenchmarkAppend(b *testing.B) {
	const bytes = 40 // of one operation
	for _, callers := range []int{1, 128, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { appends(b, 1, make([]byte, callers*bytes)) })
	}
	for _, processes := range []int{8, 64} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) { appends(b, processes, make([]byte, bytes)) })
	}
}

// BenchmarkIncr is a measure for the others: the least that a script-free limiter asks of Redis.
func BenchmarkIncr(b *testing.B) {
	s := redisrun.New(b)
	e, err := OpenEngine(b.Context(), s.URL())
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	cpu(b, s, func() {
		for range b.N {
			if _, err := e.do(context.Background(), e.client.B().Incr().Key("x").Build()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// cpu times do, and reports the processor time that the server used meanwhile.
func cpu(b *testing.B, s *redisrun.Server, do func()) {
	before, err := s.CPU()
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	do()
	b.StopTimer()
	after, err := s.CPU()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64((after-before).Microseconds())/float64(b.N), "redis-us/op")
}

func appends(b *testing.B, processes int, entry []byte) {
	s := redisrun.New(b)
	logs := make([]sharedlog.Log, processes)
	places := make([]sharedlog.Position, processes)
	for i := range logs {
		e, err := OpenEngine(b.Context(), s.URL())
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		logs[i] = e.Log("pool")
		loaded, err := logs[i].Load(b.Context(), sharedlog.Position{})
		if err != nil {
			b.Fatal(err)
		}
		places[i] = loaded.At
	}
	var read atomic.Int64
	cpu(b, s, func() {
		var wg sync.WaitGroup
		for i, l := range logs {
			wg.Go(func() {
				var bytes int64
				at, ctx := places[i], context.Background()
				for n := i; n < b.N; n += processes {
					got, err := l.Append(ctx, at, entry)
					if err == nil {
						at = got.At
						bytes += int64(len(got.Data))
						if at.Offset-at.Segment > 1<<20 {
							err = l.Compact(ctx, at, nil)
						}
					}
					if err != nil { // another process compacted
						if got, err = l.Read(ctx, at); err != nil {
							b.Error(err)
							return
						}
						at = got.At
					}
				}
				read.Add(bytes)
			})
		}
		wg.Wait()
	})
	b.ReportMetric(float64(read.Load())/float64(b.N), "read-B/op")
}
