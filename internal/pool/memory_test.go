package pool

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// A million agents with a bucket each that is not empty fit in 400 MB. Drained buckets are dropped during other traffic,
// and their records are reused.
func TestMillionLiveBuckets(t *testing.T) {
	const agents, most = 1_000_000, 400 << 20
	now := store.Time(1_767_225_600_000_000)
	before := heap()
	p, err := New(store.Spec{
		Name: "p",
		Limits: []store.Limit{{
			Name: "each", Unit: "requests", Kind: store.Bucket, Size: 1, Burst: 50, Window: time.Minute, Per: store.PerAgent, Guard: store.GuardOff,
		}},
		Classes:    []store.Class{{Name: "c", Weight: 1}},
		MaxWaiting: 1000, MaxMeters: store.MaxMeters,
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	var ops [2]store.Op
	asked := []store.Amount{{Unit: "requests"}}
	var name []byte
	send := func(from, to int, amount int64) {
		for i := from; i < to; i++ {
			name = strconv.AppendInt(append(name[:0], "agent-"...), int64(i), 10)
			ops[0] = store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: string(name), TTL: time.Minute}
			asked[0].N, ops[0].Amounts = amount, asked
			p.Apply(now, ops[:1])
			if ops[0].Result.State != store.Granted {
				t.Fatalf("agent %d: %v", i, ops[0].Result.State)
			}
			ops[0] = store.Op{Kind: store.OpClose, ID: ops[0].Result.ID}
			p.Apply(now, ops[:1])
		}
	}
	send(0, agents, 30) // takes half an hour to drain
	if got := p.insts.Len(); got != agents {
		t.Fatalf("%d meters, want %d", got, agents)
	}
	used := heap() - before
	t.Logf("%d live buckets take %d MB, %d bytes each", agents, used>>20, used/agents)
	if used > most {
		t.Errorf("%d MB, want at most %d", used>>20, int64(most)>>20)
	}

	// Other traffic goes on, ten requests a second, while the million drain and are swept. An agent's
	// counters are kept for an hour.
	for step := range 60_000 {
		now += 100_000
		other := agents + step%1000
		send(other, other+1, 1)
	}
	if got := p.insts.Len(); got > 1100 {
		t.Errorf("%d meters are left of %d", got, agents)
	}
	if got := p.names.Len(); got > 1100 {
		t.Errorf("%d names are left of %d", got, agents)
	}
	end := p.insts.End()
	send(0, 100_000, 30)
	if got := p.insts.End(); got != end {
		t.Errorf("records are not used again: %d, then %d", end, got)
	}
	runtime.KeepAlive(p)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// Windows of subscriptions get no column of the history, so that all other units have one.
func TestWindowsOfSubscriptionsHaveNoColumn(t *testing.T) {
	var limits []store.Limit
	for _, unit := range []string{"week", "five_hours"} {
		limits = append(limits, store.Limit{Unit: unit, Plan: true})
	}
	want := []string{"requests", "tokens", "input_tokens", "output_tokens", "work", "dollars"}
	for _, unit := range want {
		limits = append(limits, store.Limit{Unit: unit})
	}
	var h history
	h.define(limits, 0)
	if !slices.Equal(h.units, want) || h.unitOf[0] != -1 || h.unitOf[2] != 0 {
		t.Errorf("the columns are %v, of limits %v", h.units, h.unitOf[:len(limits)])
	}
}
