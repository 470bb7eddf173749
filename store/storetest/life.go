package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func life(s *suite) {
	s.test("granted, answered, closed", spec(slots(1)), func(m *member) {
		res := m.do(want("a", 1).op)
		if res.GrantedAt != m.now() || res.Waited != 0 || res.Now != m.now() || res.ID.N == 0 || res.ID.Session == 0 {
			m.Errorf("unexpected result %+v at %d", res, m.now())
		}
		m.state(res.ID, store.Granted)
		m.answer(res.ID, store.VerdictOK)
		m.state(res.ID, store.Granted)
		m.close(res.ID)
		m.state(res.ID, store.Ended)
	})
	s.test("a grant says how long it waited", spec(bucket(1, 1)), func(m *member) {
		m.take(want("a", 1))
		m.queue(want("a", 1))
		m.pass(2 * time.Second)
		g := m.grants[0]
		if g.Waited != time.Second || g.GrantedAt.Sub(m.began) != time.Second || g.Now < g.GrantedAt {
			m.Errorf("waited %v, granted after %v", g.Waited, g.GrantedAt.Sub(m.began))
		}
	})
	s.test("a ticket that is never closed expires", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(7 * time.Second))
		next := m.queue(want("b", 1))
		m.sleep(7*time.Second - 1)
		m.state(id, store.Granted)
		m.pass(tick)
		m.state(id, store.Ended)
		m.between(next, 7*time.Second, 7*time.Second+tick)
		m.close(id) // too late, which has no effect
		m.used(0, 1)
	})
	s.test("an answered ticket expires too", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(time.Second))
		m.answer(id, store.VerdictOK)
		m.sleep(time.Second + tick)
		m.state(id, store.Ended)
		m.used(0, 0)
	})
	s.test("asking about a ticket does not prolong it", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(5 * time.Second))
		for range 5 {
			m.sleep(time.Second)
			m.poll(id)
		}
		m.sleep(tick)
		m.state(id, store.Ended)
	})
	s.test("a ticket lives for days at the most, and that long if it may", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(store.MaxTTL))
		for range 23 {
			m.sleep(time.Hour)
			m.state(id, store.Granted)
		}
		m.sleep(time.Hour + tick)
		m.state(id, store.Ended)
		m.used(0, 0)
	})
	for name, prepare := range map[string]func(m *member) store.ID{
		"while it waits": func(m *member) store.ID {
			m.take(want("x", 5, 1, 5))
			return m.queue(want("a", 5, 1, 5))
		},
		"when it has been granted unasked": func(m *member) store.ID {
			held := m.take(want("x", 5, 1, 5))
			id := m.queue(want("a", 5, 1, 5))
			m.cancel(held)
			return id
		},
		"when it is held": func(m *member) store.ID { return m.take(want("a", 5, 1, 5)) },
	} {
		s.test("cancel gives everything back/"+name, spec(
			bucket(1, 9), slots(1), guarded(rolling(9, time.Minute), store.GuardAuto),
		), func(m *member) {
			id := prepare(m)
			before := m.snapshot()
			m.cancel(id)
			m.state(id, store.Ended)
			after := m.snapshot()
			if name == "while it waits" {
				if after.Waiting[1] != 0 || after.InFlight != before.InFlight {
					m.Errorf("waiting %d, in flight %d", after.Waiting[1], after.InFlight)
				}
				return
			}
			for i := range 3 {
				m.used(i, 0)
			}
			if after.InFlight != 0 || after.Counters.Sent != 0 {
				m.Errorf("in flight %d, sent %d; want none", after.InFlight, after.Counters.Sent)
			}
			m.take(want("b", 9, 1, 9))
		})
	}
	for name, l := range map[string]store.Limit{
		"rolling": rolling(5, time.Minute), "bucket": bucket(1, 5), "places": slots(5),
		"fixed":        {Kind: store.Fixed, Size: 5, Window: time.Hour, Guard: store.GuardOff, Reset: Start},
		"rolling auto": guarded(rolling(5, time.Minute), store.GuardAuto),
		"bucket auto":  guarded(bucket(1, 5), store.GuardAuto),
		"fixed auto":   {Kind: store.Fixed, Size: 5, Window: time.Hour, Reset: Start},
		"unphased":     {Kind: store.Fixed, Size: 5, Window: time.Hour},
	} {
		s.test("cancel after a while gives everything back/"+name, spec(l), func(m *member) {
			id := m.take(want("a", 5))
			m.sleep(2 * time.Second)
			m.cancel(id)
			m.used(0, 0)
			m.take(want("b", 5))
		})
	}
	s.test("what a cancelled ticket frees goes to the next", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		next := m.queue(want("b", 1))
		m.cancel(id)
		m.collect()
		m.exactly(next, 0)
	})
	s.test("a cancel after the answer ends the ticket and keeps the charge", spec(guarded(rolling(5, time.Minute), store.GuardAuto), slots(1)), func(m *member) {
		id := m.take(want("a", 2, 1))
		m.answer(id, store.VerdictOK)
		m.cancel(id)
		m.used(0, 2)
		m.used(1, 0)
	})
	s.test("a spent ticket frees its place and keeps its charge", spec(guarded(rolling(5, time.Minute), store.GuardAuto), slots(1)), func(m *member) {
		id := m.take(want("a", 2, 1))
		m.spend(id)
		m.state(id, store.Ended)
		m.used(0, 2)
		m.used(1, 0)
		if n := m.snapshot().InFlight; n != 0 {
			m.Errorf("%d in flight, want 0", n)
		}
	})
	s.test("a strictly guarded spent ticket is ended for its caller", spec(guarded(rolling(5, time.Minute), store.GuardStrict), slots(1)), func(m *member) {
		id := m.take(want("a", 2, 1).ttl(time.Minute))
		m.spend(id)
		m.state(id, store.Ended)
		m.cancel(id)
		m.close(id)
		m.used(0, 2)
		m.used(1, 0)
		m.sleep(3 * time.Minute)
		m.used(0, 0)
		if n := m.snapshot().InFlight; n != 0 {
			m.Errorf("%d in flight, want 0", n)
		}
	})
	s.test("closing a ticket that waits takes it out of the line", spec(slots(1)), func(m *member) {
		m.take(want("a", 1))
		id := m.queue(want("b", 1))
		m.close(id)
		m.state(id, store.Ended)
	})
	s.test("an answer to a ticket that waits makes no sense", spec(slots(1)), func(m *member) {
		m.take(want("a", 1))
		id := m.queue(want("b", 1))
		if res := m.do(store.Op{Kind: store.OpAnswer, ID: id}); res.State != store.Refused || res.Reason.Code != store.CodeInvalid {
			m.Errorf("got %v (%v), want refused as invalid", res.State, res.Reason.Code)
		}
		m.state(id, store.Waiting)
	})
}

func renewing(s *suite) {
	renew := func(m *member, id store.ID, wait time.Duration) store.Result {
		m.Helper()
		return m.do(store.Op{Kind: store.OpRenew, ID: id, Wait: wait})
	}
	s.test("a renewed ticket is charged once, from now on", spec(rolling(5, time.Minute), slots(1)), func(m *member) {
		id := m.take(want("a", 3, 1))
		m.sleep(30 * time.Second)
		res := renew(m, id, 0)
		if res.State != store.Granted || res.ID != id || res.GrantedAt != m.now() {
			m.Fatalf("got %+v", res)
		}
		m.used(0, 3)
		m.used(1, 1)
		m.sleep(31 * time.Second)
		m.used(0, 3)
		m.sleep(30 * time.Second)
		m.used(0, 0)
		if c := m.snapshot(); c.Counters.Sent != 1 || c.InFlight != 1 {
			m.Errorf("sent %d, in flight %d; want 1 and 1", c.Counters.Sent, c.InFlight)
		}
	})
	s.test("it goes before those who wait", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		m.queue(want("a", 1))
		m.queue(want("b", 1).class(0))
		if res := renew(m, id, -1); res.State != store.Granted {
			m.Errorf("got %v, want granted", res.State)
		}
	})
	for _, o := range []store.Order{store.Fair, store.Strict, store.FIFO} {
		s.test("it may have to wait, at the front of its line/"+o.String(), ordered(o, spec(plenty())), func(m *member) {
			id := m.take(want("a", 1))
			m.do(store.Op{Kind: store.OpPause, RetryAfter: 10 * time.Second})
			others := []store.ID{m.queue(want("a", 1)), m.queue(want("a", 1))}
			if o == store.FIFO {
				m.cancel(others[0])
				m.cancel(others[1])
				others = []store.ID{m.queue(want("b", 1))}
			}
			if res := renew(m, id, -1); res.State != store.Waiting || res.Reason.Code != store.CodePaused {
				m.Fatalf("got %v (%v), want waiting (paused)", res.State, res.Reason.Code)
			}
			m.used(0, 0)
			m.pass(10 * time.Second)
			m.exactly(id, 10*time.Second)
			for _, other := range others {
				m.state(other, store.Waiting)
			}
		})
	}
	s.test("it may be refused, and is given back", spec(plenty()), func(m *member) {
		for _, wait := range []time.Duration{0, time.Second} {
			id := m.take(want("a", 1))
			m.do(store.Op{Kind: store.OpPause, RetryAfter: 10 * time.Second})
			if res := renew(m, id, wait); res.State != store.Refused {
				m.Fatalf("got %v, want refused", res.State)
			}
			m.state(id, store.Ended)
			m.used(0, 0)
			m.do(store.Op{Kind: store.OpResume})
			m.sleep(20 * time.Second)
		}
	})
	s.test("it has a new time to live", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(5 * time.Second))
		m.sleep(4 * time.Second)
		m.do(store.Op{Kind: store.OpRenew, ID: id, TTL: 8 * time.Second})
		m.sleep(8*time.Second - 1)
		m.state(id, store.Granted)
		m.sleep(tick)
		m.state(id, store.Ended)
		m.used(0, 0)
	})
	s.test("what has been answered is not renewed", spec(guarded(rolling(5, time.Minute), store.GuardAuto)), func(m *member) {
		id := m.take(want("a", 1))
		m.answer(id, store.VerdictOK)
		granted := m.now()
		m.sleep(time.Second)
		if res := renew(m, id, 0); res.State != store.Granted || res.GrantedAt != granted {
			m.Errorf("got %v of %v, want the grant as it was", res.State, res.GrantedAt)
		}
	})
	s.test("what has ended is not renewed", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		m.close(id)
		if res := renew(m, id, 0); res.State != store.Ended {
			m.Errorf("got %v, want ended", res.State)
		}
		m.used(0, 0)
	})
}
