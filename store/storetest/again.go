package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

func again(s *suite) {
	ask := func(n uint64) request { return want("a", 2, 1).number(n) }
	limits := spec(rolling(10, time.Minute), slots(3))
	same := func(m *member, r request, want store.State) store.Result {
		m.Helper()
		res := m.do(r.op)
		if res.State != want || res.ID.N != r.op.ID.N {
			m.Fatalf("asked again for %d: %v for %v, want %v", r.op.ID.N, res.State, res.ID, want)
		}
		return res
	}
	s.test("an acquire that is repeated while it is held is the same ticket", limits, func(m *member) {
		first := same(m, ask(7), store.Granted)
		m.sleep(time.Second)
		second := same(m, ask(7), store.Granted)
		if second.GrantedAt != first.GrantedAt || second.ID != first.ID {
			m.Errorf("%+v became %+v", first, second)
		}
		m.used(0, 2)
		m.used(1, 1)
		if c := m.snapshot().Counters; c.Sent != 1 {
			m.Errorf("%d sent, want 1", c.Sent)
		}
	})
	s.test("while it waits it keeps its place", limits, func(m *member) {
		held := m.take(want("x", 1, 3))
		same(m, ask(7), store.Waiting)
		same(m, ask(8), store.Waiting)
		same(m, ask(7), store.Waiting)
		if w := m.snapshot().Waiting[1]; w != 2 {
			m.Errorf("%d wait, want 2", w)
		}
		m.close(held)
		m.collect()
		m.used(1, 2)
		if m.grants[0].ID.N != 7 {
			m.Errorf("%d went first, want 7", m.grants[0].ID.N)
		}
	})
	s.test("when it was granted meanwhile it is collected", limits, func(m *member) {
		held := m.take(want("x", 1, 3))
		same(m, ask(7), store.Waiting)
		m.close(held)
		same(m, ask(7), store.Granted)
		m.sleep(5 * time.Second)
		same(m, ask(7), store.Granted)
		m.used(1, 1)
	})
	s.test("when it is granted by the same batch it is collected", limits, func(m *member) {
		held := m.take(want("x", 1, 3))
		same(m, ask(7), store.Waiting)
		got := m.apply(ask(7).try().op, store.Op{Kind: store.OpClose, ID: held})
		if got[0].State != store.Granted {
			m.Errorf("%v, want granted", got[0].State)
		}
		m.sleep(0)
		if ids := m.takeTold(); len(ids) != 0 {
			m.Errorf("told of %v, which was in the result", ids)
		}
		m.sleep(time.Minute)
		same(m, ask(7), store.Granted)
		m.used(1, 1)
	})
	s.test("when it is answered nothing is undone", limits, func(m *member) {
		res := same(m, ask(7), store.Granted)
		m.answer(res.ID, store.VerdictOK)
		same(m, ask(7), store.Granted)
	})
	for name, end := range map[string]func(m *member, id store.ID){
		"closed":    func(m *member, id store.ID) { m.close(id) },
		"spent":     func(m *member, id store.ID) { m.spend(id) },
		"cancelled": func(m *member, id store.ID) { m.cancel(id) },
		"expired":   func(m *member, _ store.ID) { m.sleep(11 * time.Minute) },
	} {
		s.test("an id that has ended is never granted again/"+name, limits, func(m *member) {
			res := same(m, ask(7), store.Granted)
			end(m, res.ID)
			same(m, ask(7), store.Ended)
			m.sleep(2 * time.Minute)
			same(m, ask(7), store.Ended)
			m.used(0, 0)
		})
	}
	s.test("a refused id is not granted later", limits, func(m *member) {
		m.take(want("x", 0, 3))
		m.refused(ask(7).try(), store.CodeLimit)
		same(m, ask(7), store.Ended)
	})
	s.test("numbers that were passed over have ended", limits, func(m *member) {
		same(m, ask(7), store.Granted)
		same(m, ask(5), store.Ended)
		same(m, ask(9), store.Granted)
		if res := m.do(want("a", 1).op); res.ID.N <= 9 {
			m.Errorf("the store gave out %d after 9", res.ID.N)
		}
	})
	s.test("numbers of sessions are apart", limits, func(m *member) {
		other := join(m.T, m.harness, limits)
		a, b := same(m, ask(7), store.Granted), same(other, ask(7), store.Granted)
		if a.ID == b.ID {
			m.Errorf("two sessions share the ticket %v", a.ID)
		}
		m.close(a.ID)
		other.state(b.ID, store.Granted)
	})
	s.test("what nobody has seen is unknown", limits, func(m *member) {
		id := m.take(want("a", 1))
		unknown := store.ID{Session: id.Session, N: id.N + 100}
		for _, kind := range []store.OpKind{store.OpPoll, store.OpCancel, store.OpRenew, store.OpAnswer, store.OpClose} {
			if res := m.do(store.Op{Kind: kind, ID: unknown}); res.State != store.Unknown {
				m.Errorf("operation %d on an unknown ticket: %v", kind, res.State)
			}
			if res := m.do(store.Op{Kind: kind, ID: store.ID{Session: 1 << 60, N: 1}}); res.State != store.Unknown {
				m.Errorf("operation %d on a ticket of an unknown session: %v", kind, res.State)
			}
		}
	})
	s.test("what has ended has ended, whatever is asked", limits, func(m *member) {
		id := m.take(want("a", 1))
		m.close(id)
		for _, kind := range []store.OpKind{store.OpPoll, store.OpCancel, store.OpRenew, store.OpAnswer, store.OpClose} {
			if res := m.do(store.Op{Kind: kind, ID: id}); res.State != store.Ended {
				m.Errorf("operation %d on an ended ticket: %v", kind, res.State)
			}
		}
	})
	s.test("a close that is repeated settles once", limits, func(m *member) {
		id := m.take(want("a", 2, 1))
		m.close(id, 5)
		m.close(id, 9)
		m.used(0, 5)
		m.used(1, 0)
		if n := m.snapshot().InFlight; n != 0 {
			m.Errorf("%d in flight, want 0", n)
		}
	})
	s.test("an answer that is repeated counts once", limits, func(m *member) {
		id := m.take(want("a", 2, 1))
		m.answer(id, store.VerdictThrottled)
		m.answer(id, store.VerdictThrottled)
		if g := m.onlyGate(); g.Consecutive != 1 {
			m.Errorf("%d consecutive refusals, want 1", g.Consecutive)
		}
		if c := m.snapshot().Counters; c.Throttled != 1 {
			m.Errorf("%d throttled, want 1", c.Throttled)
		}
	})
	s.test("a cancel that is repeated refunds once", limits, func(m *member) {
		keep, id := m.take(want("a", 2, 1)), m.take(want("a", 2, 1))
		m.cancel(id)
		m.cancel(id)
		m.used(0, 2)
		m.used(1, 1)
		m.close(keep)
	})
	s.test("a renew that is repeated takes once", limits, func(m *member) {
		id := m.take(want("a", 2, 1))
		for range 3 {
			if res := m.do(store.Op{Kind: store.OpRenew, ID: id, Wait: -1}); res.State != store.Granted {
				m.Fatalf("got %v, want granted", res.State)
			}
		}
		m.used(0, 2)
		m.used(1, 1)
	})
	s.test("a renew that waits may be repeated", limits, func(m *member) {
		id := m.take(want("a", 2, 1))
		m.do(store.Op{Kind: store.OpPause, RetryAfter: 5 * time.Second})
		for range 3 {
			if res := m.do(store.Op{Kind: store.OpRenew, ID: id, Wait: -1}); res.State != store.Waiting {
				m.Fatalf("got %v, want waiting", res.State)
			}
		}
		if w := m.snapshot().Waiting[1]; w != 1 {
			m.Errorf("%d wait, want 1", w)
		}
		m.pass(5 * time.Second)
		m.exactly(id, 5*time.Second)
		m.used(0, 2)
	})
	s.test("an observation with an id counts once", limits, func(m *member) {
		op := store.Op{Kind: store.OpObserve, ID: store.ID{N: 5}, Verdict: store.VerdictThrottled}
		m.do(op)
		m.sleep(time.Second)
		m.do(op)
		if g := m.onlyGate(); g.Consecutive != 1 || g.Since != m.began {
			m.Errorf("%+v", g)
		}
	})
	s.test("ids stay apart though a session was idle for long", limits, func(m *member) {
		id := m.take(want("a", 1).ttl(store.MaxTTL))
		for range 30 {
			m.sleep(time.Minute)
			m.snapshot()
		}
		if other := m.take(want("a", 1)); other == id {
			m.Errorf("%v was given out twice", id)
		}
	})
}

func members(s *suite) {
	base := func(size int64) store.Spec { return spec(rolling(size, time.Minute), slots(10)) }
	s.test("the smaller size holds, and charges stay", base(100), func(m *member) {
		m.take(want("a", 30, 1))
		other := join(m.T, m.harness, base(50))
		if l := other.limit(0); l.Size != 50 || l.Used != 30 {
			m.Errorf("size %d, used %d; want 50 and 30", l.Size, l.Used)
		}
		join(m.T, m.harness, base(80))
		if l := m.limit(0); l.Size != 50 || l.Used != 30 {
			m.Errorf("size %d, used %d; want 50 and 30", l.Size, l.Used)
		}
		m.refused(want("a", 51, 1), store.CodeCapacity)
		m.refused(want("a", 21, 1).try(), store.CodeLimit)
		m.take(want("a", 20, 1))
	})
	s.test("a size that one of them knows holds for all", base(0), func(m *member) {
		m.take(want("a", 500, 1))
		join(m.T, m.harness, base(1000))
		if l := m.limit(0); l.Size != 1000 || l.Used != 500 {
			m.Errorf("size %d, used %d; want 1000 and 500", l.Size, l.Used)
		}
		join(m.T, m.harness, base(0))
		if l := m.limit(0); l.Size != 1000 {
			m.Errorf("size %d, want 1000", l.Size)
		}
	})
	s.test("a resize keeps the charges of every kind", spec(bucket(10, 100), slots(10), per(rolling(50, time.Minute), store.PerAgent)), func(m *member) {
		m.take(want("a", 40, 4, 20))
		join(m.T, m.harness, spec(bucket(5, 50), slots(5), per(rolling(25, time.Minute), store.PerAgent)))
		m.used(0, 40)
		m.used(1, 4)
		m.used(2, 20)
		m.sleep(2 * time.Second)
		m.used(0, 30)
	})
	s.test("a new limit may be added", base(100), func(m *member) {
		m.take(want("a", 1, 1))
		other := join(m.T, m.harness, spec(rolling(100, time.Minute), slots(10), slots(1)))
		other.take(want("a", 1, 1, 1))
		other.refused(want("a", 1, 1, 1).try(), store.CodeLimit)
		m.take(want("a", 1)) // it does not know the limit, and asks for one of its own
		m.refused(want("a").unit("requests", 1).try(), store.CodeLimit)
	})
	s.test("a limit that shrinks below what a waiter wants sends it away", base(100), func(m *member) {
		m.take(want("a", 60, 1))
		big, small := m.queue(want("b", 90, 1)), m.queue(want("c", 1, 1))
		join(m.T, m.harness, base(80))
		m.pass(time.Second)
		m.state(big, store.Ended)
		m.grantedAt(small)
	})
	for name, other := range map[string]store.Spec{
		"another kind":   spec(bucket(100, 100), slots(10)),
		"another window": spec(rolling(100, time.Hour), slots(10)),
		"another scope":  spec(per(rolling(100, time.Minute), store.PerAgent), slots(10)),
		"another guard":  spec(guarded(rolling(100, time.Minute), store.GuardStrict), slots(10)),
		"fewer limits":   spec(rolling(100, time.Minute)),
	} {
		s.test("a limit cannot change its nature/"+name, base(100), func(m *member) {
			m.take(want("a", 10, 1))
			if _, err := m.harness.Store.Pool(context.Background(), other); err == nil {
				m.Error("opened with a limit of another nature")
			}
			m.used(0, 10)
		})
	}
	s.test("two sessions share one quota", base(100), func(m *member) {
		other := join(m.T, m.harness, base(100))
		m.take(want("a", 60, 1))
		other.refused(want("b", 50, 1).try(), store.CodeLimit)
		other.take(want("b", 40, 1))
	})
	s.test("pools of different names are apart", base(100), func(m *member) {
		sp := base(100)
		sp.Name = "another"
		other := join(m.T, m.harness, sp)
		m.take(want("a", 100, 1))
		other.take(want("a", 100, 1))
	})
	s.test("a session that closes cancels what waits and keeps what it holds", base(100), func(m *member) {
		other := join(m.T, m.harness, base(100))
		other.take(want("b", 60, 1).ttl(time.Minute))
		other.queue(want("b", 100, 1))
		mine := m.queue(want("a", 40, 1))
		if err := other.pool.Close(); err != nil {
			m.Fatal(err)
		}
		m.collect()
		m.exactly(mine, 0)
		m.used(0, 100)
		if snap := m.snapshot(); snap.InFlight != 2 || snap.Waiting[1] != 0 {
			m.Errorf("in flight %d, waiting %d; want 2 and 0", snap.InFlight, snap.Waiting[1])
		}
		m.pass(3 * time.Minute)
		m.used(0, 0)
		closedErrors(m.T, other.pool)
		if err := other.pool.Close(); err != nil {
			m.Errorf("closing twice: %v", err)
		}
	})
	s.test("a closed store answers so", base(100), func(m *member) {
		m.take(want("a", 100, 1))
		waiting := m.queue(want("a", 100, 1))
		if err := m.harness.Store.Close(); err != nil {
			m.Fatal(err)
		}
		if ids := m.takeTold(); len(ids) != 1 || ids[0] != waiting {
			m.Errorf("told of %v, want %v to look and find it closed", ids, waiting)
		}
		closedErrors(m.T, m.pool)
		if _, err := m.harness.Store.Pool(context.Background(), base(100)); !isClosed(err) {
			m.Errorf("opening a pool of a closed store: %v", err)
		}
		m.sleep(10 * time.Minute)
		if ids := m.takeTold(); len(ids) != 0 {
			m.Errorf("a closed store told of %v", ids)
		}
		if err := m.pool.Close(); err != nil {
			m.Errorf("closing a pool of a closed store: %v", err)
		}
	})
	s.test("a batch too large is refused as a whole", base(100), func(m *member) {
		ops := make([]store.Op, store.MaxBatch+1)
		for i := range ops {
			ops[i] = want("a", 0, 0).op
		}
		if err := m.pool.Apply(context.Background(), ops); err == nil {
			m.Error("accepted")
		}
		if n := m.snapshot().InFlight; n != 0 {
			m.Errorf("%d in flight, want 0", n)
		}
	})
}

func closedErrors(t *testing.T, p store.Pool) {
	t.Helper()
	if err := p.Apply(context.Background(), []store.Op{want("a", 1).op}); !isClosed(err) {
		t.Errorf("apply: %v, want ErrClosed", err)
	}
	if _, err := p.Snapshot(context.Background()); !isClosed(err) {
		t.Errorf("snapshot: %v, want ErrClosed", err)
	}
}
