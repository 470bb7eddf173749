package outage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

const (
	start   = store.Time(1_700_000_000_000_000)
	process = 7
	session = process<<16 | 1
)

// rig is a process and its only session, in virtual time.
type rig struct {
	*testing.T
	*outage.Process
	session *outage.Session
	now     store.Time
	numbers uint64 // that its store has given out
}

func perMinute(size int64) store.Limit {
	return store.Limit{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: size, Window: time.Minute}
}

func newRig(t *testing.T, mode store.OnFailure, limits ...store.Limit) *rig {
	t.Helper()
	spec := store.Spec{
		Name: "x", Limits: limits, Classes: make([]store.Class, 2), MaxWaiting: 10, OnFailure: mode,
		Throttle: store.Backoff{Start: time.Second, Cap: time.Minute},
	}
	r := &rig{T: t, Process: outage.New(process), now: start}
	r.Learn(spec)
	r.session = &outage.Session{ID: session, Spec: spec, Member: mode == store.FailShare}
	r.Join(r.session)
	return r
}

func ask(amount int64) store.Op {
	return store.Op{Kind: store.OpAcquire, ID: store.ID{Session: session}, Agent: "a", TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: amount}}}
}

func waiting(op store.Op) store.Op {
	op.Wait = -1
	return op
}

// noted has the store carry an operation out with a result.
func (r *rig) noted(op store.Op, state store.State) store.ID {
	r.Helper()
	if op.Result.ID = op.ID; op.Kind == store.OpAcquire {
		r.numbers++
		op.Result.ID.N = r.numbers
	}
	op.Result.State, op.Result.Now, op.Result.GrantedAt = state, r.now, r.now
	if undo := r.Note(r.session, []store.Op{op}, false); len(undo) > 0 {
		r.Errorf("%v is to be undone", undo)
	}
	return op.Result.ID
}

// joins has the pool tell the process its share.
func (r *rig) joins(share int64) {
	r.Helper()
	op, member := r.Touch(r.now)
	if !member {
		r.Fatal("it is no member")
	}
	r.touched(op, share)
}

// touched has the pool answer a touch now.
func (r *rig) touched(op store.Op, share int64) {
	op.Result = store.Result{State: store.Granted, Now: r.now, Share: share}
	r.Touched(&op)
}

// alone decides an operation without the store.
func (r *rig) alone(op store.Op) store.Result {
	r.Helper()
	ops := []store.Op{op}
	if !r.Decide(r.session, ops, r.now) {
		r.Fatalf("%v cannot be decided", op.Kind)
	}
	return ops[0].Result
}

func (r *rig) is(got store.Result, want store.State) store.ID {
	r.Helper()
	if got.State != want {
		r.Fatalf("it is %v (%+v), want %v", got.State, got.Reason, want)
	}
	return got.ID
}

func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

// kinds are the operations on a ticket, in their order.
func kinds(ops []store.Op, id store.ID) (list []store.OpKind) {
	for i := range ops {
		if ops[i].ID == id {
			list = append(list, ops[i].Kind)
		}
	}
	return list
}

func TestClosedKeepsWhatIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailClosed, perMinute(10))
	id := r.noted(ask(1), store.Granted)
	r.Begin(r.now, 0)
	ops := []store.Op{ask(1), {Kind: store.OpClose, ID: id}}
	if r.Decide(r.session, ops, r.now) {
		t.Error("it was decided")
	}
	if open, _ := r.Notes(); open != 0 {
		t.Errorf("%d are open", open)
	}
	if got := kinds(r.Return(r.now).Ops, id); !slices.Equal(got, []store.OpKind{store.OpClose}) {
		t.Errorf("the store is told %v", got)
	}
}

func TestOpenGrantsUnderNumbersThatTheStoreNeverGives(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailOpen, perMinute(1))
	held := r.noted(ask(1), store.Granted)
	queued := r.noted(waiting(ask(1)), store.Waiting)
	r.Begin(r.now, 0)
	seen := map[store.ID]bool{held: true, queued: true}
	var last store.ID
	for range 5 {
		if last = r.is(r.alone(ask(1)), store.Granted); seen[last] || last.N <= queued.N {
			t.Fatalf("%v was given before", last)
		}
		seen[last] = true
	}
	r.is(r.alone(store.Op{Kind: store.OpPoll, ID: queued}), store.Granted)
	if o := r.Outage(r.session); o.Granted != 6 || o.Mode != store.FailOpen || o.Since != start {
		t.Errorf("the outage is %+v", o)
	}
	back := r.Return(r.now)
	if got := kinds(back.Ops, queued); !slices.Equal(got, []store.OpKind{store.OpCancel}) {
		t.Errorf("of the one that waited the store is told %v", got)
	}
	r.End(back)
	op := store.Op{Kind: store.OpClose, ID: last, Result: store.Result{ID: last, State: store.Unknown}}
	if r.Excuse(&op); op.Result.State != store.Ended {
		t.Errorf("closing what the store has never heard of is %v", op.Result.State)
	}
	op = store.Op{Kind: store.OpClose, ID: held, Result: store.Result{ID: held, State: store.Unknown}}
	if r.Excuse(&op); op.Result.State != store.Unknown {
		t.Errorf("closing what the store should know is %v", op.Result.State)
	}
}

func TestShareIsGrantedWhenTheOthersLeaveIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	r.joins(2)
	r.Begin(r.now, 0)
	early := r.alone(ask(1))
	if r.is(early, store.Refused); early.Reason.Code != store.CodeStore || early.Reason.At <= r.now {
		t.Errorf("at once it is refused with %+v", early.Reason)
	}
	var ids []store.ID
	for range 6 {
		ids = append(ids, r.is(r.alone(waiting(ask(1))), store.Waiting))
	}
	told, next := r.Serve(r.now)
	for range 10 {
		if len(told) > 0 {
			break
		}
		if next <= r.now {
			t.Fatalf("it is to be looked at %v, and it is %v", next, r.now)
		}
		r.now = next
		told, next = r.Serve(r.now)
	}
	if !slices.Equal(told, ids[:5]) {
		t.Errorf("%v were granted, of %v", told, ids)
	}
	if waited := r.now.Sub(start); waited < time.Minute+3*time.Second {
		t.Errorf("it had its share after %v", waited)
	}
}

// The outage tells when the process uses its share, and which limits it has no share of: long windows, limits that are too
// small to share, and limits of unknown size.
func TestTheShareIsDescribed(t *testing.T) {
	r := newRig(t, store.FailShare, perMinute(10),
		store.Limit{Name: "hour", Kind: store.Rolling, Unit: "requests", Size: 3000, Window: time.Hour},
		store.Limit{Name: "few", Kind: store.Concurrency, Unit: "requests", Size: 1},
		store.Limit{Name: "learned", Kind: store.Rolling, Unit: "tokens", Window: time.Minute},
		store.Limit{Name: "plan", Kind: store.Fixed, Unit: "plan", Window: time.Hour, Plan: true})
	r.joins(2)
	r.pass(time.Second)
	r.Begin(r.now, 0)
	o := r.Outage(r.session)
	if want := []string{"hour", "few", "learned"}; !slices.Equal(o.Unshared, want) {
		t.Errorf("it has no share of %v, want %v", o.Unshared, want)
	}
	if o.Start != start.Add(3*time.Second) || o.End != start.Add(store.DefaultLease) || o.Mode != store.FailShare {
		t.Errorf("%v: from %v to %v after the last touch", o.Mode, o.Start.Sub(start), o.End.Sub(start))
	}
	// When the store is back, its pool may have fewer limits than when it was lost.
	fewer := *r.Spec()
	fewer.Limits = fewer.Limits[:1]
	r.Learn(fewer)
	if again := r.Outage(r.session); !slices.Equal(again.Unshared, o.Unshared) {
		t.Errorf("it has no share of %v, and of %v before the limits were learned", again.Unshared, o.Unshared)
	}
}

// In an outage a process may first reuse its own earlier charges as they expire, before the whole share.
func TestAProcessUsesAgainWhatItHadCharged(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	id := r.noted(ask(2), store.Granted)
	r.noted(store.Op{Kind: store.OpAnswer, ID: id}, store.Granted)
	r.noted(store.Op{Kind: store.OpClose, ID: id}, store.Ended)
	r.pass(30 * time.Second)
	r.joins(2)
	r.Begin(r.now, 0)
	r.pass(31 * time.Second)
	r.is(r.alone(ask(2)), store.Granted)
	r.is(r.alone(ask(1)), store.Refused)
}

// A ticket of an earlier outage that has expired has no place on this island. Its late end must not free the place of
// another ticket.
func TestALateEndFreesNoPlaceOfAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, store.Limit{Name: "slots", Kind: store.Concurrency, Unit: "requests", Size: 1})
	late := r.noted(ask(1), store.Granted)
	r.joins(1)
	r.Begin(r.now, 0)
	r.End(r.Return(r.now))
	r.pass(2 * time.Minute)
	long := ask(1)
	long.TTL = 10 * time.Minute
	busy := r.noted(long, store.Granted)
	r.joins(1)
	r.Begin(r.now, 0)
	r.pass(4 * time.Second)
	short := ask(1)
	short.TTL = time.Second
	r.alone(store.Op{Kind: store.OpClose, ID: late})
	r.is(r.alone(short), store.Refused)
	r.alone(store.Op{Kind: store.OpClose, ID: busy})
	r.is(r.alone(short), store.Granted)
}

func TestAProcessWithoutAShareIsClosed(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	r.Begin(r.now, 0)
	if m := r.Mode(r.session); m != store.FailClosed {
		t.Errorf("it is %v", m)
	}
}

func TestAProviderThatThrottlesPausesTheProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(100))
	id := r.noted(ask(1), store.Granted)
	r.joins(2)
	r.Begin(r.now, 0)
	r.pass(2 * time.Minute)
	r.is(r.alone(ask(1)), store.Granted)
	r.alone(store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictThrottled, RetryAfter: 20 * time.Second})
	refused := r.alone(ask(1))
	if r.is(refused, store.Refused); refused.Reason.At != r.now.Add(20*time.Second) {
		t.Errorf("it is refused until %v after", refused.Reason.At.Sub(r.now))
	}
	pause := slices.IndexFunc(r.Return(r.now).Ops, func(op store.Op) bool { return op.Kind == store.OpPause })
	if pause < 0 {
		t.Error("the store is not told")
	}
}

// returned is a process that has granted one ticket without the store, and where another waits.
func returned(t *testing.T) (r *rig, granted, waits store.ID) {
	r = newRig(t, store.FailShare, perMinute(4))
	r.noted(ask(1), store.Granted)
	r.joins(2)
	r.Begin(r.now, 0)
	r.pass(2 * time.Minute)
	granted = r.is(r.alone(ask(2)), store.Granted)
	waits = r.is(r.alone(waiting(ask(2))), store.Waiting)
	return r, granted, waits
}

func TestAReturnChargesFirstAndAsksLast(t *testing.T) {
	t.Parallel()
	r, granted, waits := returned(t)
	back := r.Return(r.now)
	order := []int{
		slices.IndexFunc(back.Ops, func(op store.Op) bool { return op.ID == granted && op.Force && op.Amounts[0].N == 2 }),
		slices.IndexFunc(back.Ops, func(op store.Op) bool { return op.Kind == store.OpTouch }),
		slices.IndexFunc(back.Ops, func(op store.Op) bool { return op.ID == waits && !op.Force && op.Wait < 0 }),
	}
	if order[0] < 0 || !slices.IsSorted(order) {
		t.Fatalf("the charge, the touch and the ask are at %v", order)
	}
	late := r.alone(waiting(ask(1)))
	r.is(late, store.Waiting) // nothing is granted on the way
	for i := range back.Ops {
		op := &back.Ops[i]
		if op.Result = (store.Result{ID: op.ID, State: store.Granted, Now: r.now, Share: 2}); op.ID == waits {
			op.Result.State = store.Waiting
		}
	}
	r.alone(store.Op{Kind: store.OpClose, ID: granted})
	told, later := r.End(back)
	if !slices.Equal(told, []store.ID{late.ID}) {
		t.Errorf("%v are told, and %v came late", told, late.ID)
	}
	if got := kinds(later, granted); !slices.Equal(got, []store.OpKind{store.OpClose}) {
		t.Errorf("what was said since is %v", got)
	}
	if queued := r.Queued(); !slices.Equal(queued, []store.ID{waits}) {
		t.Errorf("%v wait in the store", queued)
	}
	var numbers uint64
	for _, op := range back.Ops {
		numbers = max(numbers, op.ID.N)
	}
	if late.ID.N <= numbers {
		t.Errorf("%d was given here, and sessions were moved past %d", late.ID.N, numbers)
	}
}

// The store may have carried out a part of a failed return. The next attempt repeats it, and nothing is charged twice.
func TestAnAttemptThatWasHeardIsSaidAgain(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{true, false} {
		r, granted, _ := returned(t)
		r.Return(r.now)
		r.Stay(heard, r.now, 0)
		if told, _ := r.Serve(r.now); len(told) > 0 {
			t.Errorf("heard %v: %v were granted with nothing left", heard, told)
		}
		r.alone(store.Op{Kind: store.OpClose, ID: granted})
		forced := slices.IndexFunc(r.Return(r.now).Ops, func(op store.Op) bool { return op.ID == granted && op.Force })
		if said := forced >= 0; said != heard {
			t.Errorf("heard %v: the acquire is said again: %v", heard, said)
		}
	}
}

func TestRestateSaysWhatIsHeldAndWhoWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	held := r.noted(ask(1), store.Granted)
	r.noted(store.Op{Kind: store.OpAnswer, ID: held}, store.Granted)
	over := r.noted(ask(1), store.Granted)
	r.noted(store.Op{Kind: store.OpClose, ID: over}, store.Ended)
	first, second := r.noted(waiting(ask(1)), store.Waiting), r.noted(waiting(ask(1)), store.Waiting)
	r.joins(2)
	r.pass(20 * time.Second)
	ops := r.Restate(r.now)
	if i := slices.IndexFunc(ops, func(op store.Op) bool { return op.ID == held }); i < 0 || !ops[i].Force || ops[i].TTL != 40*time.Second {
		t.Errorf("the held one has 40 s left, and it says %+v", ops)
	}
	if got := kinds(ops, held); !slices.Equal(got, []store.OpKind{store.OpAcquire, store.OpAnswer}) {
		t.Errorf("of the held one it says %v", got)
	}
	if len(kinds(ops, over)) > 0 || len(kinds(ops, first)) != 1 {
		t.Errorf("it says %+v", ops)
	}
	if r.Share() != 0 {
		t.Error("it still has the share of the pool that was lost")
	}
	for i := range ops {
		op := &ops[i]
		if op.Result = (store.Result{ID: op.ID, State: store.Granted, Now: r.now, Share: 3}); op.ID == second {
			op.Result.State = store.Waiting
		}
	}
	if told := r.Restated(ops); !slices.Equal(told, []store.ID{first}) || r.Share() != 3 {
		t.Errorf("%v are told, and its share is one in %d", told, r.Share())
	}
}

// When limits move, their records move with them.
func TestLearnMovesWhatWasRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	id := r.noted(ask(3), store.Granted)
	spec := *r.Spec()
	spec.Limits = []store.Limit{{Name: "slots", Kind: store.Concurrency, Unit: "requests", Size: 3}, perMinute(10)}
	r.Learn(spec)
	ops := r.Restate(r.now)
	if i := slices.IndexFunc(ops, func(op store.Op) bool { return op.ID == id }); i < 0 || !slices.Equal(ops[i].Amounts, []store.Amount{{Unit: "requests", Limit: "minute", N: 3}}) {
		t.Errorf("it says %+v", ops)
	}
}

func TestLeaveCancelsWhatWaitsAndEndsTheMembership(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	waits := r.noted(waiting(ask(1)), store.Waiting)
	r.joins(2)
	ops := r.Leave(r.session)
	if len(ops) != 2 || ops[0].ID != waits || ops[0].Kind != store.OpCancel || ops[1].Kind != store.OpTouch || !ops[1].Spent {
		t.Errorf("the store is told %+v", ops)
	}
	if _, member := r.Touch(r.now); member || r.Share() != 0 {
		t.Error("it is still a member")
	}
	// The answer to a touch from before gives the next member no share: the pool hears the farewell after it.
	r.touched(store.Op{}, 2)
	r.Join(r.session)
	if r.Share() != 0 {
		t.Error("a new member has the share of one that left")
	}
}

// A touch that was not answered may still reach the store, and an answer that comes late changes nothing.
func TestAnswersToTouchesMayOvertakeEachOther(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		r := newRig(t, store.FailShare, perMinute(10))
		r.noted(store.Op{Kind: store.OpRenew, ID: r.noted(ask(1), store.Granted), Wait: -1}, store.Waiting)
		first, _ := r.Touch(r.now)
		first.Result = store.Result{State: store.Granted, Now: r.now, Share: 2}
		r.pass(time.Second)
		second, _ := r.Touch(r.now)
		r.touched(second, 3)
		begins := first.Until
		if answered {
			r.Touched(&first)
			begins = r.now
		}
		r.Begin(r.now, 0)
		if _, next := r.Serve(r.now); r.Share() != 3 || next != begins.Add(3*time.Second) {
			t.Errorf("answered %v: one part in %d, from %v on, want 3 from %v on", answered, r.Share(), next, begins.Add(3*time.Second))
		}
	}
}
