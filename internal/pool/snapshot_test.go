package pool

import (
	"cmp"
	"fmt"
	"slices"
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

// Both lists of agents are made from one text of each name: reading a large fleet is mostly that.
func TestSnapshotMakesEachNameOnce(t *testing.T) {
	const agents = 2000
	p, now := newLivedIn(t, agents)
	s := p.Snapshot(now)
	if len(s.Agents) != agents || len(s.Callers) != store.MaxListed {
		t.Fatalf("%d agents and %d callers are listed", len(s.Agents), len(s.Callers))
	}
	if !slices.IsSortedFunc(s.Agents, func(a, b store.Agent) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Error("the agents are not listed by name")
	}
	if !slices.IsSortedFunc(s.Callers, func(a, b store.Caller) int {
		return cmp.Or(cmp.Compare(b.Sent, a.Sent), cmp.Compare(a.Agent, b.Agent))
	}) {
		t.Error("the callers are not listed by what they sent, and then by name")
	}
	if n := testing.AllocsPerRun(5, func() { p.Snapshot(now) }); n > agents+100 {
		t.Errorf("a snapshot of %d agents allocates %v times", agents, n)
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
