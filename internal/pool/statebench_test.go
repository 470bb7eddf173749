package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// newCrowd returns a pool of n agents that hold leases, each with a request under way and some that are over. With own,
// each agent has a limit of its own.
func newCrowd(tb testing.TB, n int, own bool) *Pool {
	tb.Helper()
	now := store.Time(1_767_225_600_000_000)
	spec := classesSpec()
	spec.Limits = []store.Limit{
		{Name: "requests", Unit: "requests", Kind: store.Bucket, Size: 1 << 30, Burst: 1 << 30, Window: time.Minute},
		{Name: "tokens", Unit: "tokens", Kind: store.Rolling, Size: 1 << 35, Window: time.Hour},
	}
	if own {
		spec.Limits = append(spec.Limits, store.Limit{Name: "each", Unit: "requests", Kind: store.Rolling, Size: 100, Window: time.Minute, Per: store.PerAgent})
	}
	p, err := New(spec, now)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		agent := fmt.Sprintf("agent-%d", i)
		session := uint64(i%100) + 1
		for k := range 3 {
			now = now.Add(5 * time.Millisecond)
			op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: session}, Agent: agent, Model: fmt.Sprintf("model-%d", i%5), TTL: time.Hour, Wait: -1}
			op.Amounts = []store.Amount{{Unit: "requests", N: int64(1 + k)}, {Unit: "tokens", N: int64(1 + k)}}
			ops := []store.Op{op, {Kind: store.OpHeartbeat, ID: op.ID, Agent: agent, User: "user", Machine: fmt.Sprintf("machine-%d", i%50), TTL: time.Hour}}
			p.Apply(now, ops)
			if ops[0].Result.State != store.Granted || ops[1].Result.State != store.Granted {
				tb.Fatalf("%+v", ops)
			}
			if k < 2 {
				p.Apply(now.Add(time.Millisecond), []store.Op{{Kind: store.OpAnswer, ID: ops[0].ID, Verdict: store.VerdictOK}, {Kind: store.OpClose, ID: ops[0].ID}})
			}
		}
	}
	return p
}

func BenchmarkState(b *testing.B) {
	for _, kind := range []struct {
		name   string
		agents int
		own    bool
	}{{"1000", 1000, false}, {"10000", 10_000, false}, {"10000 with limits of their own", 10_000, true}} {
		p := newCrowd(b, kind.agents, kind.own)
		state := p.AppendState(nil)
		b.Run(kind.name+"/append", func(b *testing.B) {
			for b.Loop() {
				state = p.AppendState(state[:0])
			}
			b.ReportMetric(float64(len(state)), "bytes")
		})
		b.Run(kind.name+"/restore", func(b *testing.B) {
			for b.Loop() {
				if _, err := Restore(state); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind.name+"/fork", func(b *testing.B) {
			for b.Loop() {
				p.Fork()
			}
		})
	}
}

// BenchmarkHash compares whole tickets with and without the hash of decisions.
func BenchmarkHash(b *testing.B) {
	for _, hashes := range []bool{false, true} {
		b.Run(fmt.Sprint(hashes), func(b *testing.B) {
			p := newCrowd(b, 100, false)
			now := p.Now()
			p.hashing = hashing(hashes)
			var ops [1]store.Op
			asked := []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 100}}
			b.ReportAllocs()
			for b.Loop() {
				now += 100
				ops[0] = store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "agent-1", Model: "model-1", TTL: time.Minute, Wait: -1}
				ops[0].Amounts = asked
				p.Apply(now, ops[:])
				id := ops[0].ID
				ops[0] = store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK}
				p.Apply(now, ops[:])
				ops[0] = store.Op{Kind: store.OpClose, ID: id}
				p.Apply(now, ops[:])
			}
		})
	}
}
