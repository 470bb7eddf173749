package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

func TestSpeedTry(t *testing.T) {
	s, err := redisstore.Open(context.Background(), single.URL()+"?prefix=speed")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, limits := range []int{1, 4} {
		spec := store.Spec{
			Name: "x" + string(rune('0'+limits)), Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}, MaxWaiting: 1000,
			Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}, Overload: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		}
		for i := range limits {
			l := store.Limit{Name: "l" + string(rune('0'+i)), Kind: store.Rolling, Unit: "requests", Size: 100_000_000, Window: time.Minute}
			if i%2 == 0 {
				l.Kind, l.Burst = store.Bucket, 1000000
				l.Size = 1000000
				l.Window = time.Second
			}
			spec.Limits = append(spec.Limits, l)
		}
		p, err := s.Pool(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		for _, callers := range []int{1, 128, 512} {
			single.Do(context.Background(), "CONFIG", "RESETSTAT")
			cpu0, _ := single.CPU()
			start := time.Now()
			n := 20000
			if callers == 1 {
				n = 2000
			}
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range n / callers {
						ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", Class: 1, TTL: time.Minute}}
						for i := range limits {
							ops[0].Amounts[i] = 1
						}
						if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
							t.Error(err, ops[0].Result)
							return
						}
						if err := p.(store.Later).CloseLater(ops[0].ID, false); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			d := time.Since(start)
			cpu, _ := single.CPU()
			stats, _ := single.Do(context.Background(), "INFO", "commandstats")
			for _, l := range strings.Split(stats, "\n") {
				if strings.Contains(l, "evalsha") || strings.Contains(l, "fcall") {
					stats = l
				}
			}
			t.Logf("%d limits, %d callers: %.0f/s, cpu per pair %.1fus  %s", limits, callers, float64(n)/d.Seconds(), (cpu-cpu0).Seconds()*1e6/float64(n), stats)
		}
	}
}
