package storetest

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

func maxWaiting(n int, s store.Spec) store.Spec {
	s.MaxWaiting = n
	return s
}

// tick is how late a ticket may expire.
const tick = 100 * time.Millisecond

func waiting(s *suite) {
	s.test("no more than max_waiting wait", maxWaiting(2, spec(slots(1))), func(m *member) {
		id := m.take(want("a", 1))
		first := m.queue(want("a", 1))
		m.queue(want("b", 1))
		m.refused(want("c", 1), store.CodeFull)
		m.close(id)
		m.collect()
		m.state(first, store.Granted)
		m.queue(want("c", 1))
		m.refused(want("d", 1), store.CodeFull)
	})
	s.test("a full queue is no bar to one who need not wait", maxWaiting(1, spec(per(slots(1), store.PerModel))), func(m *member) {
		m.take(want("a", 1).model("opus"))
		m.queue(want("a", 1).model("opus"))
		m.take(want("a", 1).model("haiku"))
		m.refused(want("a", 1).model("haiku"), store.CodeFull)
	})
	s.test("a try never waits, so it is told what it lacks", maxWaiting(0, spec(slots(1))), func(m *member) {
		m.take(want("a", 1))
		m.refused(want("a", 1).try(), store.CodeLimit)
		m.refused(want("a", 1), store.CodeFull)
	})
	s.test("everyone who waits is told the limit, not only who is next", spec(plenty(), slots(1)), func(m *member) {
		m.take(want("a", 1, 1))
		for _, id := range []store.ID{m.queue(want("a", 1, 1)), m.queue(want("b", 1, 1)), m.queue(want("c", 1, 1))} {
			if r := m.poll(id).Reason; r.Code != store.CodeLimit || r.Limit != m.name(1) {
				m.Errorf("it waits for %v, limit %s; want the second", r.Code, r.Limit)
			}
		}
	})
	s.test("a wait past the deadline is refused at once, with the time to come back", spec(bucket(1, 1)), func(m *member) {
		m.take(want("a", 1))
		res := m.refused(want("a", 1).wait(900*time.Millisecond), store.CodeDeadline)
		if at := res.Reason.At.Sub(m.began); at != time.Second || res.Reason.Limit != m.name(0) {
			m.Errorf("refused until %v for limit %s, want 1s and the first", at, res.Reason.Limit)
		}
		id := m.queue(want("a", 1).wait(time.Second))
		res = m.refused(want("a", 1).wait(1500*time.Millisecond), store.CodeDeadline)
		if at := res.Reason.At.Sub(m.began); at != 2*time.Second {
			m.Errorf("refused until %v, want 2s", at)
		}
		m.pass(time.Second)
		m.exactly(id, time.Second)
	})
	s.test("a refused try says when to come back", spec(rolling(1, time.Minute)), func(m *member) {
		m.take(want("a", 1))
		m.sleep(10 * time.Second)
		at := m.refused(want("a", 1).try(), store.CodeLimit).Reason.At.Sub(m.began)
		if at < time.Minute || at > time.Minute+slice(time.Minute) {
			m.Errorf("refused until %v, want a minute", at)
		}
	})
	s.test("a deadline within a pause is refused at once", spec(plenty()), func(m *member) {
		m.do(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		res := m.refused(want("a", 1).wait(59*time.Second), store.CodeDeadline)
		if res.Reason.At.Sub(m.began) != time.Minute {
			m.Errorf("refused until %v, want 1m", res.Reason.At.Sub(m.began))
		}
		m.queue(want("a", 1).wait(time.Minute))
	})
	s.test("a waiting entry expires at its deadline", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		id := m.queue(want("b", 1).wait(5 * time.Second))
		m.sleep(5*time.Second - 1)
		m.state(id, store.Waiting)
		m.pass(tick)
		m.state(id, store.Ended)
		if len(m.gone) != 1 || m.gone[0] != id {
			m.Errorf("told that %v are gone, want %v", m.gone, id)
		}
		m.close(held)
		m.take(want("c", 1).try())
	})
	s.test("a waiting entry expires when its caller is silent", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		dead, live := m.queue(want("b", 1).alive(3*time.Second)), m.queue(want("c", 1).alive(3*time.Second))
		for range 5 {
			m.sleep(2 * time.Second)
			m.poll(live)
		}
		m.state(live, store.Waiting)
		m.state(dead, store.Ended)
		m.close(held)
		m.collect()
		m.state(live, store.Granted)
	})
	s.test("a session that is heard of keeps all its entries, and no deadline moves", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		first, second := m.queue(want("b", 1).alive(3*time.Second)), m.queue(want("c", 1).alive(3*time.Second))
		short := m.queue(want("d", 1).alive(3 * time.Second).wait(5 * time.Second))
		for range 5 {
			m.sleep(2 * time.Second)
			if res := m.do(store.Op{Kind: store.OpPoll, Alive: 4 * time.Second}); res.State != store.Granted {
				m.Fatalf("the session is %v", res.State)
			}
		}
		m.state(short, store.Ended)
		m.close(held)
		m.collect()
		m.state(first, store.Granted)
		m.sleep(7 * time.Second) // and now nothing is heard of it
		m.state(second, store.Ended)
	})
	s.test("polling does not move the deadline", spec(slots(1)), func(m *member) {
		m.take(want("a", 1))
		id := m.queue(want("b", 1).alive(3 * time.Second).wait(5 * time.Second))
		for range 5 {
			m.sleep(time.Second + tick/5)
			m.poll(id)
		}
		m.state(id, store.Ended)
	})
	s.test("a dead waiter does not block", spec(bucket(1, 10)), func(m *member) {
		m.take(want("a", 10))
		m.queue(want("dead", 10).alive(time.Second))
		next := m.queue(want("b", 5))
		m.pass(6 * time.Second)
		m.exactly(next, 5*time.Second)
	})
	s.test("a grant that nobody collects goes back after a second, and the next one goes", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		dead, next := m.queue(want("b", 1)), m.queue(want("c", 1))
		m.close(held)
		m.sleep(900 * time.Millisecond)
		m.used(0, 1)
		m.takeTold() // and it is not collected
		m.sleep(200 * time.Millisecond)
		m.collect()
		m.between(next, time.Second, time.Second+tick)
		m.state(dead, store.Ended)
		m.used(0, 1)
	})
	s.test("an uncollected grant goes back though nobody waits", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		dead := m.queue(want("b", 1))
		m.close(held)
		m.sleep(time.Second + tick)
		m.used(0, 0)
		if n := m.snapshot().InFlight; n != 0 {
			m.Errorf("%d in flight, want 0", n)
		}
		m.state(dead, store.Ended)
	})
	s.test("thousands wait and all of them go", spec(bucket(1000, 1)), func(m *member) {
		for a := range 50 {
			for range 60 {
				m.do(want(fmt.Sprint("agent", a), 1).class(uint8(a % 3)).op)
			}
		}
		m.pass(3 * time.Second)
		if len(m.grants) != 2999 {
			m.Errorf("%d of 2999 went in three seconds", len(m.grants))
		}
	})
}

func watching(s *suite) {
	s.test("each session is told of its own tickets, once", spec(bucket(10, 1)), func(m *member) {
		other := join(m.T, m.harness, spec(bucket(10, 1)))
		m.take(want("a", 1))
		var mine, theirs []store.ID
		for range 5 {
			mine, theirs = append(mine, m.queue(want("a", 1))), append(theirs, other.queue(want("b", 1)))
		}
		m.sleep(500 * time.Millisecond)
		m.collect()
		other.collect()
		m.sleep(500 * time.Millisecond)
		m.collect()
		other.collect()
		for who, c := range map[*member][]store.ID{m: mine, other: theirs} {
			if len(who.grants) != 5 {
				who.Fatalf("told of %d, want 5", len(who.grants))
			}
			for i, id := range c {
				if who.grants[i].ID != id {
					who.Errorf("told of %v as number %d, want %v", who.grants[i].ID, i, id)
				}
			}
		}
	})
	s.test("what an operation's own result says is not told", spec(slots(1)), func(m *member) {
		m.close(m.take(want("a", 1)))
		id := m.take(want("a", 1))
		m.refused(want("a", 1).try(), store.CodeLimit)
		m.cancel(m.queue(want("a", 1)))
		m.cancel(id)
		m.sleep(time.Minute)
		if ids := m.takeTold(); len(ids) != 0 {
			m.Errorf("told of %v, want nothing", ids)
		}
	})
	s.test("a poll that finds a grant collects it", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		id := m.queue(want("b", 1))
		m.close(held)
		m.state(id, store.Granted)
		m.sleep(30 * time.Second)
		m.state(id, store.Granted)
	})
	s.test("another session's answer wakes those who wait", spec(slots(1)), func(m *member) {
		other := join(m.T, m.harness, spec(slots(1)))
		held := other.take(want("b", 1))
		id := m.queue(want("a", 1))
		m.sleep(3 * time.Second)
		other.close(held)
		m.collect()
		m.exactly(id, 3*time.Second)
	})
	s.test("a session may act on another's ticket", spec(slots(1)), func(m *member) {
		other := join(m.T, m.harness, spec(slots(1)))
		id := m.take(want("a", 1))
		other.state(id, store.Granted)
		other.close(id)
		m.state(id, store.Ended)
	})
	s.test("nothing is granted without being told", spec(bucket(50, 5), slots(3)), func(m *member) {
		waiting := map[store.ID]bool{}
		for a := range 60 {
			res := m.do(want(fmt.Sprint("agent", a%7), int64(a%5), int64(a%2)).class(uint8(a % 3)).op)
			waiting[res.ID] = res.State == store.Waiting
			m.sleep(7 * time.Millisecond)
			m.collect()
		}
		for range 300 {
			m.pass(20 * time.Millisecond)
			for id, w := range waiting {
				m.collect()
				if res := m.poll(id); w && res.State == store.Granted && !m.wasGranted(id) {
					m.Fatalf("%v was granted and not told", id)
				} else if res.State == store.Granted {
					m.close(id)
					delete(waiting, id)
				}
			}
		}
		if len(waiting) != 0 {
			m.Errorf("%d never went", len(waiting))
		}
	})
}
