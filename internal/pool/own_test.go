package pool

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// A user's place is free again, and the one who has waited longest for it is kept by
// the pause of its model. The next one gets the place.
func TestPausedModelDoesNotSitOnAUsersPlace(t *testing.T) {
	p, err := New(store.Spec{
		Name: "api", MaxWaiting: 10, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Limits: []store.Limit{
			{Name: "places", Kind: store.Concurrency, Size: 1, Per: store.PerUser, Guard: store.GuardOff},
			{Name: "minute", Kind: store.Rolling, Size: 1000, Window: time.Minute},
		},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	now := store.Time(1_000_000)
	do := func(op store.Op) store.Result {
		now++
		op.ID.Session, op.TTL = 1, time.Hour
		ops := []store.Op{op}
		p.Apply(now, ops)
		return ops[0].Result
	}
	ask := func(agent, user, model string) store.Result {
		op := store.Op{Kind: store.OpAcquire, Agent: agent, User: user, Model: model, Wait: -1}
		op.Amounts[0], op.Amounts[1] = 1, 1
		return do(op)
	}
	holder := ask("holder", "u", "fast")
	ask("first", "u", "slow")
	next := ask("next", "u", "fast")
	do(store.Op{Kind: store.OpPause, Model: "slow", Scope: store.PerModel, RetryAfter: time.Hour})
	if holder.State != store.Granted || next.State != store.Waiting {
		t.Fatalf("holder %v, next %v", holder.State, next.State)
	}
	do(store.Op{Kind: store.OpClose, ID: holder.ID})
	if r := do(store.Op{Kind: store.OpPoll, ID: next.ID}); r.State != store.Granted {
		t.Errorf("the place is free and the next one is %v: %v", r.State, r.Reason)
	}
}
