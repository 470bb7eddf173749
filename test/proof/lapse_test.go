package proof_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// A caller dies and nobody comes for an hour: its charge counts from the end of its ticket's
// time to live, not from the moment at which somebody looks again.
func TestDeadCallersChargeComesBackWhileNobodyLooks(t *testing.T) {
	const ttl = time.Minute
	for _, l := range []store.Limit{
		{Name: "rolling", Kind: store.Rolling, Size: 1, Window: time.Hour},
		{Name: "strict", Kind: store.Rolling, Size: 1, Window: time.Hour, Guard: store.GuardStrict},
		{Name: "bucket", Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Hour},
		{Name: "unknown reset", Kind: store.Fixed, Size: 1, Window: time.Hour},
		{Name: "fixed", Kind: store.Fixed, Size: 1, Window: time.Hour, Reset: sim.Epoch.Add(30 * time.Minute)},
		{Name: "places", Kind: store.Concurrency, Size: 1},
	} {
		for _, looked := range []bool{false, true} {
			tr := backlog(l, 1, 1, sim.Delay{}, sim.Delay{})
			p, err := pool.New(tr.spec, sim.Epoch)
			if err != nil {
				t.Fatal(err)
			}
			ask := func(after time.Duration) store.Result {
				op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: ttl}
				op.Amounts = []store.Amount{{Limit: tr.spec.Limits[0].Name, N: 1}}
				ops := []store.Op{op}
				p.Apply(sim.Epoch.Add(after), ops)
				return ops[0].Result
			}
			if r := ask(0); r.State != store.Granted {
				t.Fatalf("%s: %v", l.Name, r.State)
			}
			if looked {
				p.Snapshot(sim.Epoch.Add(ttl + time.Hour + 10*time.Second))
			}
			if r := ask(ttl + time.Hour + 20*time.Second); r.State != store.Granted {
				t.Errorf("%s, looked at %t: %v %v until %v", l.Name, looked, r.State, r.Reason.Code, since(r.Reason.At))
			}
		}
	}
}
