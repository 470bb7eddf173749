package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Every step visits all lanes. 10,000 waiting requests for invented models had as many lanes: each step took 30 ms, and
// kept the store's lock or Redis busy.
func TestInventedModelsShareALane(t *testing.T) {
	t.Parallel()
	backoff := store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}
	shared := store.Limit{Name: "all", Unit: "requests", Kind: store.Rolling, Size: 1 << 20, Window: time.Hour, Guard: store.GuardOff}
	each := store.Limit{Name: "each", Unit: "tokens", Kind: store.Bucket, Size: 10, Burst: 10, Window: time.Hour, Per: store.PerModel, Guard: store.GuardOff}
	for name, c := range map[string]struct {
		limits []store.Limit
		lanes  int
	}{
		"a limit for each model": {[]store.Limit{shared, each}, 11},
		"a pause of one model":   {[]store.Limit{shared}, maxLanes + 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := store.Spec{
				Name: "x", MaxWaiting: 10_000, MaxMeters: 100, Throttle: backoff, Overload: backoff,
				Classes: []store.Class{{Name: "p0", Weight: 1}}, Limits: c.limits,
			}
			now := store.Time(time.Hour / time.Microsecond)
			p, err := New(spec, now)
			if err != nil {
				t.Fatal(err)
			}
			n := uint64(0)
			ask := func(model string, tokens int64) store.Result {
				n++
				ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1, N: n}, Agent: "a", Model: model, Wait: -1, TTL: time.Minute}}
				ops[0].Amounts = amountsFor(p, 1, tokens)
				p.Apply(now, ops)
				return ops[0].Result
			}
			if len(c.limits) == 1 { // pause the resource and one model, so that models get separate lanes
				for _, scope := range []store.Scope{store.PerModel, 0} {
					ops := []store.Op{{Kind: store.OpPause, ID: store.ID{Session: 1, N: 1}, Model: "paused", Scope: scope, RetryAfter: time.Minute}}
					p.Apply(now, ops)
				}
			}
			const models = 3000
			for i := range models {
				ask(fmt.Sprint("model ", i), 10) // fills the meter of the model, or the crowd's
			}
			for i := range models {
				if r := ask(fmt.Sprint("model ", i), 10); r.State != store.Waiting {
					t.Fatalf("model %d: %v %v", i, r.State, r.Reason)
				}
			}
			if got := p.queue.Lanes(); got > c.lanes {
				t.Errorf("%d lanes, want %d at most", got, c.lanes)
			}
			// All of them go when there is room again.
			waiting := p.queue.Len()
			for p.queue.Len() > 0 && waiting > 0 {
				now += store.Time(2 * time.Hour / time.Microsecond)
				waiting--
				p.Apply(now, nil)
			}
			if p.queue.Len() > 0 {
				t.Errorf("%d still wait", p.queue.Len())
			}
		})
	}
}
