package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// stepSpecs are limits as callers have them, for the cost of a request that can go at once.
func stepSpecs() map[string]store.Spec {
	limit := func(name string, kind store.Kind, window time.Duration, per store.Scope) store.Limit {
		return store.Limit{Name: name, Unit: "requests", Kind: kind, Size: 1 << 40, Burst: 1 << 40, Window: window, Per: per}
	}
	single := classesSpec(limit("l", store.Bucket, time.Second, 0))
	four := classesSpec(limit("minute", store.Rolling, time.Minute, 0), limit("places", store.Concurrency, 0, 0),
		limit("own", store.Bucket, time.Minute, store.PerAgent), limit("model", store.Bucket, time.Minute, store.PerModel))
	stock := classesSpec(limit("day", store.Fixed, 24*time.Hour, 0))
	stock.Limits[0].Reset = 1_767_225_600_000_000
	stock.Light, stock.Shares = store.Light{Green: 200, Red: 50}, true
	stock.Breaker = store.Breaker{Within: time.Hour, Samples: 10}
	paced := classesSpec(limit("minute", store.Rolling, time.Minute, 0))
	paced.Pace = true
	return map[string]store.Spec{"one": single, "four": four, "stock": stock, "paced": paced, "floors": stock}
}

// BenchmarkStep measures the acquire, the answer and the close of a request that can go at once, in a step each.
func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"one", "four", "stock", "floors", "paced"} {
		b.Run(name, func(b *testing.B) {
			now := store.Time(1_767_225_600_000_000)
			spec := stepSpecs()[name]
			p, err := New(spec, now)
			if err != nil {
				b.Fatal(err)
			}
			if name == "floors" { // beyond what each class may always take
				forced := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Minute, Force: true, Amounts: []store.Amount{{Unit: "requests", N: 3 << 38}}}}
				p.Apply(now, forced)
			}
			var agents [16]string
			for i := range agents {
				agents[i] = fmt.Sprint("agent", i)
			}
			ops := make([]store.Op, 1)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				now += 20
				n++
				ops[0] = store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: agents[n%16], Model: "m", Class: 1, Wait: time.Minute, TTL: time.Minute, Amounts: one}
				p.Apply(now, ops)
				id := ops[0].Result.ID
				if ops[0].Result.State != store.Granted {
					b.Fatal(ops[0].Result)
				}
				ops[0] = store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK}
				p.Apply(now, ops)
				ops[0] = store.Op{Kind: store.OpClose, ID: id}
				p.Apply(now, ops)
			}
		})
	}
}
