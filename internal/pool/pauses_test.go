package pool

import (
	"strconv"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// world is a pool and its clock.
type world struct {
	t   testing.TB
	p   *Pool
	now store.Time
}

func spec(limits ...store.Limit) store.Spec {
	return store.Spec{
		Name: "api", MaxWaiting: 10, Classes: []store.Class{{Name: "p0", Weight: 1}}, Limits: limits,
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
}

func newWorld(t *testing.T, limits ...store.Limit) *world {
	w := &world{t: t, now: 1_767_225_600_000_000}
	p, err := New(spec(limits...), w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.p = p
	return w
}

func (w *world) do(op store.Op) store.Result {
	w.now++
	op.ID.Session = 1
	ops := []store.Op{op}
	w.p.Apply(w.now, ops)
	return ops[0].Result
}

func asking(agent string, wait time.Duration) store.Op {
	op := store.Op{Kind: store.OpAcquire, Agent: agent, Wait: wait, TTL: time.Hour}
	op.Amounts = []store.Amount{{N: 1}} // the limits of these tests have no unit
	return op
}

// Three hundred keys are refused, one a day, and none of them is used again. Their pause records are dropped. Otherwise
// there would be maxGates at some time, and the next key's refusal would pause the whole pool.
func TestKeysThatNeverCameBackDoNotPauseEverybody(t *testing.T) {
	w := newWorld(t, store.Limit{Name: "places", Kind: store.Concurrency, Size: 10, Guard: store.GuardOff})
	for i := range 300 {
		op := asking("a", 0)
		op.Key = "key-" + strconv.Itoa(i)
		got := w.do(op)
		w.do(store.Op{Kind: store.OpAnswer, ID: got.ID, Verdict: store.VerdictThrottled, Scope: store.PerKey})
		w.do(store.Op{Kind: store.OpClose, ID: got.ID})
		op.Key = "another"
		other := w.do(op)
		if other.State != store.Granted {
			t.Fatalf("after %d refusals another key is %v: %v, with %d gates", i+1, other.State, other.Reason, w.p.gates.Len())
		}
		w.do(store.Op{Kind: store.OpClose, ID: other.ID})
		w.now = w.now.Add(24 * time.Hour)
	}
	if n := w.p.gates.Len(); n > 2 {
		t.Errorf("%d gates are kept", n)
	}
}

// A ticket that another op of the same batch has ended is not reported as waiting.
func TestTicketEndedWithinABatchIsNotWaiting(t *testing.T) {
	w := newWorld(t, store.Limit{Name: "places", Kind: store.Concurrency, Size: 1, Guard: store.GuardOff})
	w.do(asking("holder", 0))
	now, later := asking("a", 0), asking("b", -1)
	now.ID, later.ID = store.ID{Session: 1, N: 10}, store.ID{Session: 1, N: 11}
	ops := []store.Op{now, {Kind: store.OpPoll, ID: now.ID}, later, {Kind: store.OpCancel, ID: later.ID}}
	w.p.Apply(w.now, ops)
	for i, want := range []store.State{store.Refused, store.Ended, store.Ended, store.Ended} {
		if got := ops[i].Result.State; got != want {
			t.Errorf("op %d: %v, want %v", i, got, want)
		}
	}
}

// A limit per model is added while requests for two models wait in one lane. A pause of the first model does not hold up
// the second.
func TestLimitAddedWhileModelsWaitTellsThemApart(t *testing.T) {
	places := store.Limit{Name: "places", Kind: store.Concurrency, Size: 1, Guard: store.GuardOff}
	w := newWorld(t, places)
	holder := w.do(asking("holder", 0))
	slow, fast := asking("a", -1), asking("b", -1)
	slow.Model, fast.Model = "slow", "fast"
	w.do(slow)
	got := w.do(fast)
	each := store.Limit{Name: "each", Kind: store.Concurrency, Size: 5, Per: store.PerModel, Guard: store.GuardOff}
	if err := w.p.Reform(spec(places, each), false); err != nil {
		t.Fatal(err)
	}
	w.do(store.Op{Kind: store.OpPause, Model: "slow", Scope: store.PerModel, RetryAfter: time.Hour})
	w.do(store.Op{Kind: store.OpClose, ID: holder.ID})
	if r := w.do(store.Op{Kind: store.OpPoll, ID: got.ID}); r.State != store.Granted {
		t.Errorf("behind a model that is paused: %v, %v", r.State, r.Reason)
	}
}

// A member states a size that cannot be counted exactly. The pool applies nothing of its spec.
func TestSpecThatCannotBeCountedChangesNothing(t *testing.T) {
	each := store.Limit{
		Name: "each", Kind: store.Bucket, Size: 1_000_000, Burst: 1_000_000, Window: store.MaxWindow, Per: store.PerAgent, Guard: store.GuardOff,
	}
	w := newWorld(t, each)
	each.Size = 1
	if err := w.p.Reform(spec(each), false); err == nil {
		t.Error("it was taken on")
	}
	if r := w.do(asking("a", 0)); r.State != store.Granted {
		t.Errorf("then a request is %v", r.State)
	}
}
