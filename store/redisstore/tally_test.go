package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// The hash has what agents sent even before the script has added it to their records.
func TestSendsAreCountedThoughTheScriptForgets(t *testing.T) {
	t.Parallel()
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Stop() }()
	h := openAt(t, server.URL())
	defer h.Store.Close()
	p, err := h.Store.Pool(t.Context(), store.Spec{
		Name: "pool", Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 10,
		Limits:   []store.Limit{{Name: "tokens", Unit: "tokens", Kind: store.Rolling, Size: 1 << 30, Window: time.Minute}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}, Overload: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	const agents, calls = 5, 150 // the hash is written every 128 calls
	sent := 0
	send := func(n int) {
		t.Helper()
		for range n {
			var ops []store.Op
			for a := range agents {
				ops = append(ops, store.Op{Kind: store.OpAcquire, Agent: fmt.Sprint("agent", a), TTL: time.Minute, Amounts: []store.Amount{{Unit: "tokens", N: 10}}})
			}
			for range 2 {
				if err := p.Apply(t.Context(), ops); err != nil {
					t.Fatal(err)
				}
				for i := range ops {
					ops[i] = store.Op{Kind: store.OpClose, ID: ops[i].Result.ID, Amounts: []store.Amount{{Unit: "tokens", N: 3}}}
				}
			}
			sent++
		}
	}
	for _, later := range []time.Duration{0, 3 * time.Second, time.Minute, 10 * time.Minute} {
		h.Advance(later)
		send(calls)
		do(t, server, "FUNCTION", "FLUSH")
		send(2)
		got, err := p.(store.Recorder).History(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		counts, amounts := map[string]int64{}, map[string]int64{}
		for _, period := range got.Periods {
			counts[period.Agent] += period.Sent
			amounts[period.Agent] += period.Amounts[0]
		}
		for agent, n := range counts {
			if n != int64(sent) || amounts[agent] != int64(3*sent) {
				t.Errorf("%s has sent %d of %d, want %d of %d", agent, n, amounts[agent], sent, 3*sent)
			}
		}
		if len(counts) != agents {
			t.Errorf("%d agents, want %d", len(counts), agents)
		}
	}
}
