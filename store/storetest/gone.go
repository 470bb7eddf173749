package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func (r request) tied(t store.Tie) request { r.op.Tie = t; return r }

// keepUp sends a heartbeat of the session.
func (m *member) keepUp() store.State {
	m.Helper()
	return m.do(store.Op{Kind: store.OpPoll, Alive: store.SessionLife}).State
}

// goneSessions tests the tickets of processes that have died.
func goneSessions(s *suite) {
	s.test("a tied ticket lives while its session does, and not past its time to live", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).tied(store.TieBeat).ttl(time.Minute))
		for range 19 {
			m.sleep(store.BeatEvery)
			if state := m.keepUp(); state != store.Granted {
				m.Fatalf("a session with a ticket is %v", state)
			}
		}
		m.state(id, store.Granted)
		m.sleep(store.BeatEvery + tick)
		m.state(id, store.Ended)
		m.used(0, 0)
		if state := m.keepUp(); state != store.Ended {
			m.Errorf("a session without tickets is %v", state)
		}
	})
	s.test("places of a silent session come back within 15 s", spec(slots(8)), func(m *member) {
		var ids []store.ID
		for range 8 {
			ids = append(ids, m.take(want("dead", 1).tied(store.TieBeat)))
		}
		next := m.queue(want("b", 8))
		for range 5 { // the store is used, but no heartbeat arrives
			m.pass(store.BeatEvery)
			m.poll(next)
		}
		m.between(next, store.SessionLife, 15*time.Second)
		for _, id := range ids {
			m.close(id) // it comes back too late, which has no effect
		}
		m.used(0, 8)
		m.close(next)
		m.used(0, 0)
	})
	s.test("a window that a silent session has filled is free one window and the slack later", spec(slackened(30, 3*time.Second)), func(m *member) {
		for range 30 {
			m.take(want("dead", 1).tied(store.TieBeat))
		}
		next := m.queue(want("b", 1))
		for range 15 {
			m.pass(time.Second)
			m.poll(next)
		}
		m.between(next, store.SessionLife+3*time.Second, 15*time.Second+tick)
	})
	s.test("nobody is gone because the store could not be reached", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).tied(store.TieBeat))
		m.sleep(2 * store.SessionLife) // no heartbeat
		m.refused(want("b", 1).try(), store.CodeLimit)
		m.sleep(store.BeatEvery)
		if state := m.keepUp(); state != store.Granted {
			m.Fatalf("the session is %v", state)
		}
		m.sleep(store.SessionLife - store.BeatEvery)
		m.state(id, store.Granted)
	})
	s.test("what a strict guard insists on stays for a session that is only silent", spec(strictly(30)), func(m *member) {
		m.take(want("a", 1).tied(store.TieBeat).ttl(time.Minute))
		other := m.take(want("b", 1))
		for range 6 {
			m.sleep(store.BeatEvery)
			m.poll(other)
		}
		m.inFlight(1)
		m.sleep(time.Minute)
		m.used(0, 2)
	})
	s.test("a session that is said to be gone is bounded at once", spec(slots(2), slackened(10, 3*time.Second), strictly(10)), func(m *member) {
		var ids []store.ID
		for _, tie := range []store.Tie{store.TieBeat, store.TieGone} {
			ids = append(ids, m.take(want("a", 1, 1, 1).tied(tie)))
		}
		m.do(store.Op{Kind: store.OpGone})
		m.do(store.Op{Kind: store.OpGone}) // a second time, which has no effect
		m.used(0, 2)
		m.sleep(time.Second + tick)
		m.used(0, 0)
		m.inFlight(0)
		m.used(1, 2)
		m.sleep(4 * time.Second)
		m.used(1, 0)
		for _, id := range ids {
			m.close(id)
		}
		m.sleep(time.Minute + 2*time.Second)
		m.used(2, 0)
	})
	s.test("a member that is said to be gone leaves its share to the others at once", spec(rolling(10, 10*time.Second)), func(m *member) {
		m.touch(2)
		m.sleep(2 * time.Second)
		m.do(store.Op{Kind: store.OpGone})
		m.sleep(2 * time.Second)
		m.withheld(0, 0)
		if l := m.snapshot().Members; len(l) != 0 {
			m.Errorf("members: %+v", l)
		}
		m.take(want("b", 10))
	})
	s.test("one that was silent before may have used its share alone, up to its end", spec(slackened(10, 3*time.Second), slots(4)), func(m *member) {
		m.touch(2)
		m.sleep(20 * time.Second)
		m.withheld(0, 5)
		m.withheld(1, 2)
		m.do(store.Op{Kind: store.OpGone})
		m.do(store.Op{Kind: store.OpGone})
		m.sleep(time.Second)
		m.withheld(1, 2)
		m.sleep(3 * time.Second)
		m.withheld(1, 0)
		m.withheld(0, 5) // for a window and the slack
		m.sleep(2 * time.Second)
		m.withheld(0, 5)
		m.sleep(4 * time.Second)
		m.withheld(0, 0)
		if l := m.snapshot().Members; len(l) != 0 {
			m.Errorf("members: %+v", l)
		}
	})
	s.test("all sessions of a process are gone together", spec(slots(4)), func(m *member) {
		other := join(m.T, m.harness, spec(slots(4)))
		mine, others := m.take(want("a", 1).tied(store.TieBeat)), other.take(want("b", 1).tied(store.TieBeat))
		from, to := min(mine.Session, others.Session), max(mine.Session, others.Session)
		m.touch(2)
		other.touch(3)
		m.do(store.Op{Kind: store.OpGone, ID: store.ID{Session: from, N: to - from}}) // all but the last
		m.inFlight(2)
		m.sleep(2 * time.Second)
		m.inFlight(1)
		if l := m.snapshot().Members; len(l) != 1 {
			m.Errorf("members: %+v", l)
		}
		m.do(store.Op{Kind: store.OpGone, ID: store.ID{Session: from, N: to - from + 1}})
		m.sleep(2 * time.Second)
		m.inFlight(0)
		if l := m.snapshot().Members; len(l) != 0 {
			m.Errorf("members: %+v", l)
		}
	})
	s.test("thirty killed holders leave the whole rate within 15 s", spec(slackened(30, 3*time.Second)), func(m *member) {
		for range 30 {
			m.take(want("dead", 1).tied(store.TieBeat))
		}
		m.touch(2)
		m.sleep(2 * time.Second)
		m.do(store.Op{Kind: store.OpGone})
		var waits []store.ID
		for range 30 {
			waits = append(waits, m.queue(want("b", 1)))
		}
		for range 13 {
			m.pass(time.Second)
			m.collect()
		}
		for _, id := range waits {
			m.between(id, 3*time.Second, 15*time.Second)
		}
	})
	s.test("tickets that are not tied outlive their session", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		m.do(store.Op{Kind: store.OpGone})
		m.sleep(20 * time.Second)
		m.state(id, store.Granted)
		m.used(0, 1)
	})
	s.test("one that is only ended by word needs no beats", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).tied(store.TieGone))
		for range 10 {
			m.sleep(store.BeatEvery)
			m.refused(want("b", 1).try(), store.CodeLimit)
		}
		m.state(id, store.Granted)
	})
	s.test("a ticket of a gone session can be renewed, answered and cancelled while its place lingers", spec(slots(3)), func(m *member) {
		renewed, answered, given := m.take(want("a", 1).tied(store.TieBeat)), m.take(want("a", 1).tied(store.TieBeat)), m.take(want("a", 1).tied(store.TieBeat))
		m.do(store.Op{Kind: store.OpGone})
		if res := m.do(store.Op{Kind: store.OpRenew, ID: renewed, Wait: -1}); res.State != store.Granted {
			m.Fatalf("renewed: %v", res.State)
		}
		m.answer(answered, store.VerdictOK)
		m.close(answered)
		m.cancel(given)
		m.used(0, 1)
		m.inFlight(1)
		m.sleep(5 * time.Second)
		m.state(renewed, store.Granted)
	})
}

func slackened(size int64, window time.Duration) store.Limit {
	return store.Limit{Kind: store.Rolling, Unit: "requests", Size: size, Window: window, Slack: time.Second}
}

func strictly(size int64) store.Limit {
	return store.Limit{Kind: store.Rolling, Unit: "requests", Size: size, Window: time.Minute, Guard: store.GuardStrict, Slack: time.Second}
}

// inFlight checks how many requests count as in flight.
func (m *member) inFlight(want int64) {
	m.Helper()
	if n := m.snapshot().InFlight; int64(n) != want {
		m.Errorf("%d in flight, want %d", n, want)
	}
}
