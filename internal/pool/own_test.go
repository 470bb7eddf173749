package pool

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// A concurrency limit per user has room again, and a pause of its model holds the request that has waited longest. The
// next request gets the room.
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
		op.Amounts = amountsFor(p, 1, 1)
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

// A caller reports that it used 2^40 tokens of a limit of a thousand a minute. The others wait for minutes, not for a
// century.
func TestAbsurdUsageDoesNotWedgeThePool(t *testing.T) {
	p, err := New(store.Spec{
		Name: "api", MaxWaiting: 10, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Limits:   []store.Limit{{Name: "tokens", Kind: store.Bucket, Size: 1000, Burst: 1000, Window: time.Minute}},
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Hour, Wait: -1}
	op.Amounts = amountsFor(p, 10)
	ops := []store.Op{op}
	p.Apply(1_000_000, ops)
	done := store.Op{Kind: store.OpClose, ID: ops[0].Result.ID}
	done.Amounts = amountsFor(p, store.MaxAmount)
	p.Apply(2_000_000, []store.Op{done})
	ops[0] = op
	ops[0].ID.N = 0
	p.Apply(3_000_000, ops)
	if wait := p.Wake().Sub(3_000_000); ops[0].Result.State != store.Waiting || wait > 10*time.Minute {
		t.Errorf("the next one is %v and looks again in %v", ops[0].Result.State, wait)
	}
}
