package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// BenchmarkSnapshot measures what reading a large fleet costs: the copy, for which a replica stands still, and the lists.
func BenchmarkSnapshot(b *testing.B) {
	for _, agents := range []int{100, 5000} {
		p, now := newLivedIn(b, agents)
		b.Run(fmt.Sprintf("copy/agents=%d", agents), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.View()
			}
		})
		b.Run(fmt.Sprintf("lists/agents=%d", agents), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Snapshot(now)
			}
		})
	}
}

// newLivedIn returns a pool in which every agent holds a lease and has sent one to three requests.
func newLivedIn(tb testing.TB, agents int) (*Pool, store.Time) {
	tb.Helper()
	now := store.Time(1_767_225_600_000_000)
	p, err := New(store.Spec{
		Name:    "p",
		Limits:  []store.Limit{{Name: "l", Unit: "requests", Kind: store.Rolling, Size: 1_000_000, Window: time.Minute}},
		Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		Lease:   5 * time.Minute, Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}, Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}, now)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range agents {
		name, class := fmt.Sprintf("agent-%d", i*7%agents), uint8(i%3)
		p.Apply(now, []store.Op{{Kind: store.OpHeartbeat, ID: store.ID{Session: 1}, Agent: name, Class: class, Machine: "m"}})
		for range 1 + i%3 {
			now += 1000
			op := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: name, Class: class, TTL: time.Minute, Amounts: one}}
			p.Apply(now, op)
			if op[0].Result.State != store.Granted {
				tb.Fatalf("the request of %s is %v", name, op[0].Result.State)
			}
			p.Apply(now, []store.Op{{Kind: store.OpClose, ID: op[0].Result.ID}})
		}
	}
	return p, now
}
