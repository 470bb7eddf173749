package outage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// queued is a process on which requests wait in the store when that is lost, and whose share of 10 a minute is 5.
func queued(t *testing.T, asks ...store.Op) (r *rig, ids []store.ID) {
	t.Helper()
	r = newRig(t, store.FailShare, perMinute(10))
	for _, op := range asks {
		ids = append(ids, r.noted(op, store.Waiting))
	}
	r.joins(2)
	r.Begin(r.now, 0)
	return r, ids
}

func ofClass(class uint8, op store.Op) store.Op {
	op.Class = class
	return op
}

func poll(id store.ID) store.Op { return store.Op{Kind: store.OpPoll, ID: id} }

// untilFree is a window, its slack, and how long others may count on a member that is silent.
const untilFree = 80 * time.Second

// served lets the share become free, and returns the tickets that have to be told.
func (r *rig) served() []store.ID {
	r.Helper()
	r.pass(untilFree)
	told, _ := r.Serve(r.now)
	return told
}

// forced are the charges of a list of operations that is sent to the store.
func forced(ops []store.Op) (sum int64) {
	for i := range ops {
		if ops[i].Force {
			for _, a := range ops[i].Amounts {
				sum += a.N
			}
		}
	}
	return sum
}

func TestWhoWaitsInTheStoreTakesPartInTheShare(t *testing.T) {
	t.Parallel()
	low, high, one := ofClass(1, waiting(ask(1))), ofClass(0, waiting(ask(1))), waiting(ask(1))
	r, ids := queued(t, low, low, high, low)
	told, next := r.Serve(r.now)
	if len(told) > 0 || next <= r.now {
		t.Errorf("at once %v were granted, and the next look is at %v", told, next)
	}
	late := r.is(r.alone(ofClass(1, one)), store.Waiting)
	first := r.is(r.alone(ofClass(0, one)), store.Waiting)
	if told := r.served(); !slices.Equal(told, append(slices.Clone(ids), first)) {
		t.Fatalf("%v are told, want those of the store's queue %v and %v, of a higher class", told, ids, first)
	}
	got := map[store.ID]bool{}
	for _, id := range ids {
		res := r.alone(poll(id))
		here := r.is(res, store.Granted)
		if here == id || got[here] || res.GrantedAt != r.now || res.Waited != untilFree {
			t.Errorf("%v was granted as %v at %v after %v", id, here, res.GrantedAt, res.Waited)
		}
		got[here] = true
		if again := r.alone(poll(id)); r.is(again, store.Granted) != here {
			t.Errorf("asked again it is %v, not %v", again.ID, here)
		}
	}
	r.is(r.alone(poll(late)), store.Waiting)
	if o := r.Outage(r.session); o.Granted != 5 {
		t.Errorf("%d were granted", o.Granted)
	}
	if _, waiting := r.Notes(); waiting != 0 {
		t.Errorf("%d still wait in the store", waiting)
	}
	back := r.Return(r.now)
	for _, id := range ids {
		if got := kinds(back.Ops, id); !slices.Equal(got, []store.OpKind{store.OpCancel}) {
			t.Errorf("of %v the store is told %v", id, got)
		}
	}
	charged := slices.IndexFunc(back.Ops, func(op store.Op) bool { return op.Kind == store.OpAcquire })
	withdrawn := slices.IndexFunc(back.Ops, func(op store.Op) bool { return op.Kind == store.OpCancel })
	if sum := forced(back.Ops); sum != 5 || withdrawn < charged { // else others could have the room in between
		t.Errorf("%d are charged, from operation %d on, and tickets are withdrawn from %d on", sum, charged, withdrawn)
	}
}

// The queue is in order of arrival, not of ticket numbers.
func TestWhoWaitsInTheStoreGoesInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(6))
	other := &outage.Session{ID: session + 1, Spec: r.session.Spec, Member: true}
	r.Join(other)
	mine := r.session
	var ids []store.ID
	for i := range 8 {
		r.session = other
		op := waiting(ask(1))
		if i%3 == 0 {
			r.session = mine
		}
		op.ID.Session = r.session.ID
		r.numbers = uint64(100 - i)
		ids = append(ids, r.noted(op, store.Waiting))
	}
	r.joins(2)
	r.Begin(r.now, 0)
	for round := range 2 {
		told := r.served()
		if len(told) != 3 {
			t.Fatalf("%d were granted", len(told))
		}
		for _, id := range ids[3*round : 3*round+3] {
			if !slices.Contains(told, id) {
				t.Errorf("round %d: %v were granted, of %v", round, told, ids)
			}
			r.is(r.alone(store.Op{Kind: store.OpClose, ID: r.is(r.alone(poll(id)), store.Granted)}), store.Ended)
		}
	}
	if told := r.served(); !slices.Contains(told, ids[6]) || !slices.Contains(told, ids[7]) {
		t.Errorf("in the end %v were granted", told)
	}
}

// A grant that its caller has not collected when the store is back is taken back, and the ticket goes on waiting in the
// store.
func TestAnUncollectedGrantGoesBack(t *testing.T) {
	t.Parallel()
	r, ids := queued(t, waiting(ask(3)), waiting(ask(2)))
	for attempt := range 3 { // each time the whole share is there
		told := r.served()
		if !slices.Equal(told, ids) {
			t.Fatalf("attempt %d: %v were granted, of %v", attempt, told, ids)
		}
		back := r.Return(r.now)
		if sum := forced(back.Ops); sum != 0 || len(kinds(back.Ops, ids[0]))+len(kinds(back.Ops, ids[1])) > 0 {
			t.Errorf("attempt %d: the store is told %+v", attempt, back.Ops)
		}
		if res := r.alone(poll(ids[0])); res.State != store.Waiting || res.ID != ids[0] {
			t.Errorf("attempt %d: it is %v", attempt, res)
		}
		if attempt < 2 {
			r.Stay(attempt == 1, r.now, 0)
			continue
		}
		if told, later := r.End(back); len(told)+len(later) > 0 {
			t.Errorf("%v are told, and the store %v", told, later)
		}
	}
	if queued := r.Queued(); !slices.Equal(queued, ids) {
		t.Errorf("%v wait in the store", queued)
	}
}

func TestWhatEndsWhileItWaitsInBothPlaces(t *testing.T) {
	t.Parallel()
	bounded := waiting(ask(1))
	bounded.Wait = time.Minute
	for name, test := range map[string]func(r *rig, id store.ID){
		"its deadline": func(r *rig, id store.ID) {
			r.pass(59 * time.Second)
			if told, next := r.Serve(r.now); len(told) > 0 || next != r.now.Add(time.Second) {
				r.Errorf("before its deadline %v are told, and the next look is %v later", told, next.Sub(r.now))
			}
			r.pass(time.Second)
			if told, _ := r.Serve(r.now); !slices.Equal(told, []store.ID{id}) {
				r.Errorf("at its deadline %v are told", told)
			}
			r.is(r.alone(poll(id)), store.Ended)
		},
		"its caller, before a grant": func(r *rig, id store.ID) {
			r.is(r.alone(store.Op{Kind: store.OpCancel, ID: id}), store.Ended)
		},
		"its caller, before it has the grant": func(r *rig, id store.ID) {
			r.pass(59 * time.Second)
			r.served()
			r.is(r.alone(store.Op{Kind: store.OpCancel, ID: id}), store.Ended)
			r.is(r.alone(poll(id)), store.Ended)
			r.is(r.alone(ask(5)), store.Granted) // the whole share is there
			r.pass(5 * time.Minute)              // and nothing of that counts in the end
		},
		"its session": func(r *rig, id store.ID) {
			r.served()
			r.Leave(r.session)
		},
		"a session that refuses": func(r *rig, id store.ID) {
			r.session.Spec.OnFailure = store.FailClosed
			if r.Decide(r.session, []store.Op{{Kind: store.OpCancel, ID: id}}, r.now) {
				r.Error("it was decided")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := bounded
			if name != "its deadline" {
				op = waiting(ask(1))
			}
			r, ids := queued(t, op)
			test(r, ids[0])
			if _, waiting := r.Notes(); waiting != 0 {
				t.Errorf("%d wait", waiting)
			}
			if told, _ := r.Serve(r.now.Add(3 * time.Minute)); len(told) > 0 {
				t.Errorf("%v are told", told)
			}
			back := r.Return(r.now)
			if got := kinds(back.Ops, ids[0]); !slices.Equal(got, []store.OpKind{store.OpCancel}) || forced(back.Ops) != 0 {
				t.Errorf("of it the store is told %v, and charged with %d", got, forced(back.Ops))
			}
		})
	}
}

// A reply of the store about a ticket can arrive after the outage began.
func TestALateWordOfTheStore(t *testing.T) {
	t.Parallel()
	late := func(r *rig, id store.ID) store.Result {
		ops := []store.Op{poll(id)}
		ops[0].Result = store.Result{ID: id, State: store.Granted, Now: r.now, GrantedAt: r.now}
		if undo := r.Note(r.session, ops, false); len(undo) > 0 {
			r.Errorf("%v is to be undone", undo)
		}
		return ops[0].Result
	}
	t.Run("it waits here", func(t *testing.T) {
		t.Parallel()
		r, ids := queued(t, waiting(ask(5)))
		if res := late(r, ids[0]); res.ID != ids[0] {
			t.Errorf("it is %v", res.ID)
		}
		if told := r.served(); len(told) > 0 {
			t.Errorf("%v were granted a second time", told)
		}
		if open, _ := r.Notes(); open != 1 {
			t.Errorf("%d are open", open)
		}
	})
	t.Run("it was granted here and is not collected", func(t *testing.T) {
		t.Parallel()
		r, ids := queued(t, waiting(ask(5)))
		r.served()
		if res := late(r, ids[0]); res.ID != ids[0] {
			t.Errorf("it is %v", res.ID)
		}
		r.is(r.alone(ask(5)), store.Granted) // the share is free
		r.is(r.alone(store.Op{Kind: store.OpClose, ID: ids[0]}), store.Ended)
		if got := kinds(r.Return(r.now).Ops, ids[0]); !slices.Equal(got, []store.OpKind{store.OpClose}) {
			t.Errorf("of it the store is told %v", got)
		}
	})
	t.Run("it was granted here and is collected", func(t *testing.T) {
		t.Parallel()
		r, ids := queued(t, waiting(ask(5)))
		r.served()
		here := r.is(r.alone(poll(ids[0])), store.Granted)
		if res := late(r, ids[0]); res.ID != here {
			t.Errorf("it is %v, and its caller has %v", res.ID, here)
		}
		back := r.Return(r.now)
		if got := kinds(back.Ops, ids[0]); !slices.Equal(got, []store.OpKind{store.OpCancel}) || forced(back.Ops) != 5 {
			t.Errorf("of it the store is told %v, and charged with %d", got, forced(back.Ops))
		}
	})
	t.Run("it begins to wait", func(t *testing.T) {
		t.Parallel()
		r, _ := queued(t)
		id := r.noted(waiting(ask(5)), store.Waiting)
		if told := r.served(); !slices.Equal(told, []store.ID{id}) {
			t.Errorf("%v were granted", told)
		}
	})
}

// Operations under the number with which a ticket waited apply to the ticket that was granted instead.
func TestBothNumbersMeanTheSameTicket(t *testing.T) {
	t.Parallel()
	r, ids := queued(t, waiting(ask(5)))
	r.served()
	here := r.is(r.alone(poll(ids[0])), store.Granted)
	r.is(r.alone(store.Op{Kind: store.OpAnswer, ID: ids[0]}), store.Granted)
	back := r.Return(r.now)
	if got := kinds(back.Ops, here); !slices.Equal(got, []store.OpKind{store.OpAcquire, store.OpAnswer}) {
		t.Errorf("of it the store is told %v", got)
	}
	r.Stay(false, r.now, 0)
	r.is(r.alone(store.Op{Kind: store.OpClose, ID: ids[0]}), store.Ended)
	r.is(r.alone(poll(here)), store.Ended)
	r.is(r.alone(poll(ids[0])), store.Ended)
	if got := kinds(r.Return(r.now).Ops, ids[0]); !slices.Equal(got, []store.OpKind{store.OpCancel}) {
		t.Errorf("of the one that waited the store is told %v", got)
	}
}

// renewing is a process that loses the store while a ticket waits to be renewed.
func renewing(t *testing.T) (*rig, store.ID) {
	r := newRig(t, store.FailShare, perMinute(10))
	id := r.noted(ask(1), store.Granted)
	r.noted(store.Op{Kind: store.OpRenew, ID: id, Wait: -1}, store.Waiting)
	r.joins(2)
	r.Begin(r.now, 0)
	if told, next := r.Serve(r.now); len(told) > 0 || next != r.now.Add(3*time.Second) {
		t.Errorf("%v were told, the next is at %v", told, next)
	}
	r.is(r.alone(poll(id)), store.Waiting)
	return r, id
}

// A ticket that waits to be renewed ends when the process may use its share: its caller asks anew and gets some of it.
func TestATicketThatWaitsToBeRenewedEndsWhenTheShareBegins(t *testing.T) {
	t.Parallel()
	r, id := renewing(t)
	r.pass(3 * time.Second)
	if told, _ := r.Serve(r.now); !slices.Equal(told, []store.ID{id}) {
		t.Errorf("%v were told", told)
	}
	r.is(r.alone(poll(id)), store.Ended)
	r.pass(70 * time.Second) // what was charged before has come back
	r.is(r.alone(ask(1)), store.Granted)
	if got := kinds(r.Return(r.now).Ops, id); !slices.Equal(got, []store.OpKind{store.OpCancel}) {
		t.Errorf("of the one that waited the store is told %v", got)
	}
}

// If the store is back before that, the ticket goes on waiting there, in its place.
func TestATicketThatWaitsToBeRenewedKeepsItsPlaceInAShortOutage(t *testing.T) {
	t.Parallel()
	r, id := renewing(t)
	r.pass(time.Second)
	r.Serve(r.now)
	r.End(r.Return(r.now))
	if queued := r.Queued(); !slices.Equal(queued, []store.ID{id}) {
		t.Errorf("%v wait in the store", queued)
	}
}

// A ticket that is spent with its grant is spent here too.
func TestASpentTicketOfTheStoresQueueEndsWithItsGrant(t *testing.T) {
	t.Parallel()
	op := waiting(ask(5))
	op.Spent = true
	r, ids := queued(t, op)
	r.served()
	r.is(r.alone(poll(ids[0])), store.Granted)
	r.pass(70 * time.Second) // more than the window and less than the ticket's time
	r.is(r.alone(ask(5)), store.Granted)
}

// When limits move, tickets that wait in both places move once.
func TestLearnMovesWhoWaitsInBothPlacesOnce(t *testing.T) {
	t.Parallel()
	r, ids := queued(t, waiting(ask(5)))
	spec := *r.Spec()
	spec.Limits = []store.Limit{{Name: "day", Kind: store.Rolling, Unit: "requests", Size: 3, Window: time.Minute}, perMinute(10)}
	r.Learn(spec)
	ops := r.Restate(r.now)
	if i := slices.IndexFunc(ops, func(op store.Op) bool { return op.ID == ids[0] }); i < 0 || !slices.Equal(ops[i].Amounts, []store.Amount{{Unit: "requests", Limit: "minute", N: 5}}) {
		t.Errorf("it says %+v", ops)
	}
}

func TestASpentTicketIsRestatedAsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t, store.FailShare, perMinute(10))
	op := waiting(ask(1))
	op.Spent = true
	id := r.noted(op, store.Waiting)
	ops := r.Restate(r.now)
	if i := slices.IndexFunc(ops, func(op store.Op) bool { return op.ID == id }); i < 0 || !ops[i].Spent {
		t.Errorf("it says %+v", ops)
	}
	done := poll(id)
	r.noted(done, store.Granted)
	if open, waiting := r.Notes(); open+waiting != 0 {
		t.Errorf("%d are open and %d wait after its grant", open, waiting)
	}
}

// A ticket can be granted without the store, outlive the outage, and end in the next one.
func TestATicketOfAnOutageEndsInTheNext(t *testing.T) {
	t.Parallel()
	r, granted, _ := returned(t)
	back := r.Return(r.now)
	for i := range back.Ops {
		back.Ops[i].Result = store.Result{ID: back.Ops[i].ID, State: store.Granted, Now: r.now, Share: 2}
	}
	r.End(back)
	r.Begin(r.now, 0)
	r.is(r.alone(store.Op{Kind: store.OpClose, ID: granted}), store.Ended)
	if got := kinds(r.Return(r.now).Ops, granted); !slices.Equal(got, []store.OpKind{store.OpClose}) {
		t.Errorf("of it the store is told %v", got)
	}
}

// After a failed return, a ticket that waits here may also wait in the store. It is withdrawn there, whatever becomes of it
// here.
func TestWhatTheStoreHeardOnAnAttemptIsWithdrawn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(r *rig, waits store.ID){
		"it is granted": func(r *rig, waits store.ID) {
			r.pass(untilFree)
			if told, _ := r.Serve(r.now); !slices.Equal(told, []store.ID{waits}) {
				r.Fatalf("%v were granted", told)
			}
			if here := r.is(r.alone(poll(waits)), store.Granted); here == waits {
				r.Error("it was granted under the number that the store has heard")
			}
		},
		"it is granted and cancelled": func(r *rig, waits store.ID) {
			r.pass(untilFree)
			r.Serve(r.now)
			r.is(r.alone(store.Op{Kind: store.OpCancel, ID: waits}), store.Ended)
		},
		"its deadline is over": func(r *rig, waits store.ID) {
			r.pass(5 * time.Minute)
			r.Serve(r.now)
			r.is(r.alone(poll(waits)), store.Ended)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, store.FailShare, perMinute(4))
			r.joins(2)
			r.Begin(r.now, 0)
			r.pass(time.Second)
			op := ask(2)
			op.Wait = 4 * time.Minute
			waits := r.is(r.alone(op), store.Waiting)
			r.Return(r.now)
			r.Stay(true, r.now, 0)
			test(r, waits)
			if got := kinds(r.Return(r.now).Ops, waits); !slices.Equal(got, []store.OpKind{store.OpCancel}) {
				t.Errorf("of it the store is told %v", got)
			}
		})
	}
}
