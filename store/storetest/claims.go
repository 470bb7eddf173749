package storetest

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

func claims(s *suite) {
	s.test("one that needs most of two limits gets there while small ones stream past on each", spec(
		bucket(10, 20), bucket(10, 20),
	), func(m *member) {
		var small []*stream
		m.take(want("first", 20, 20))
		for a := range 3 {
			small = append(small, m.stream(want(fmt.Sprint("left", a), 1, 0), 20), m.stream(want(fmt.Sprint("right", a), 0, 1), 20))
		}
		m.pass(5 * time.Second)
		start := m.elapsed()
		big := m.queue(want("big", 18, 18))
		m.pass(30 * time.Second)
		// Its cost is 1.8 s of each limit. Its turn in a round among seven agents comes before that.
		if at := m.grantedAt(big).Sub(m.began) - start; at > 3*time.Second {
			m.Errorf("the big one waited %v, want about 1.8s", at)
		}
		before := total(small)
		m.pass(10 * time.Second)
		m.about("both limits in ten seconds after that", float64(total(small)-before), 200)
	})
	s.test("it gets there also where one limit is a hundred times faster than the other", spec(
		bucket(100, 10), bucket(1, 10),
	), func(m *member) {
		m.take(want("first", 10, 10))
		small := []*stream{m.stream(want("left1", 1, 0), 20), m.stream(want("left2", 1, 0), 20), m.stream(want("right", 0, 1), 20)}
		m.pass(time.Minute)
		start := m.elapsed()
		big := m.queue(want("big", 1, 5))
		m.pass(30 * time.Second)
		if at := m.grantedAt(big).Sub(m.began) - start; at > 7*time.Second {
			m.Errorf("the big one waited %v, want about 5s and its turn", at)
		}
		before := small[0].granted + small[1].granted
		m.pass(10 * time.Second)
		m.about("the fast limit in ten seconds", float64(small[0].granted+small[1].granted-before), 1000)
	})
	s.test("one who comes new to a slow limit takes turns, whatever a fast one has done", spec(
		bucket(100, 10), bucket(1, 5),
	), func(m *member) {
		m.take(want("first", 10, 5))
		m.stream(want("racer", 1, 0), 20)
		old := m.stream(want("old", 0, 1), 20)
		m.pass(time.Minute)
		fresh := m.stream(want("new", 0, 1), 20)
		before := old.granted
		m.pass(40 * time.Second)
		m.about("the old one", float64(old.granted-before), 20)
		m.about("the new one", float64(fresh.granted), 20)
	})
	s.test("classes keep their shares of a limit that they meet in from different lanes", spec(
		bucket(100, 10), bucket(1000, 100),
	), func(m *member) {
		m.take(want("first", 10, 0))
		p0 := m.stream(want("a", 1, 0).class(0), 50)
		p2 := m.stream(want("b", 1, 1).class(2), 50)
		m.pass(20 * time.Second)
		m.about("p0", float64(p0.granted), 2000*40/65)
		m.about("p2", float64(p2.granted), 2000*25/65)
	})
	s.test("the same with windows and places", spec(rolling(100, 10*time.Second), slots(10)), func(m *member) {
		m.stream(want("left", 1, 0), 20)
		held := make([]store.ID, 10)
		for i := range held {
			held[i] = m.take(want("right", 0, 1).ttl(time.Hour))
		}
		big := m.queue(want("big", 80, 8))
		queued := m.line("rrrrrrrrrrrrrrrrrrrr", func(name string) request { return want(name, 0, 1) })
		m.pass(12 * time.Second)
		for _, id := range held[:8] {
			m.close(id)
			m.pass(time.Second)
		}
		if !m.wasGranted(big) {
			m.Errorf("the big one is still waiting after %v", m.elapsed())
		}
		if n := len(m.agents(queued)); n != 0 {
			m.Errorf("%d of those behind got a place that was claimed", n)
		}
	})
	s.test("a claim leaves the rest to those behind", spec(bucket(10, 10), slots(4)), func(m *member) {
		m.take(want("a", 10, 0))
		big := m.queue(want("b", 10, 3))
		m.take(want("c", 0, 1))
		m.refused(want("d", 0, 1).try(), store.CodeOrder) // three of four slots are claimed
		m.pass(time.Second)
		m.exactly(big, time.Second)
	})
	s.test("a claim ends with the one who made it", spec(bucket(10, 10), slots(4)), func(m *member) {
		m.take(want("a", 10, 0))
		big := m.queue(want("b", 10, 3))
		small := m.queue(want("d", 0, 2))
		m.cancel(big)
		m.collect()
		m.exactly(small, 0)
	})
	s.test("a claim does not bind those ahead", spec(bucket(10, 10), slots(4)), func(m *member) {
		a := m.take(want("a", 0, 4))
		m.take(want("a", 10, 0))
		by := m.line("pq", func(name string) request {
			if name == "p" {
				return want(name, 5, 1)
			}
			return want(name, 10, 4)
		})
		m.pass(600 * time.Millisecond)
		m.close(a)
		m.collect()
		m.inOrder(by, "p")
	})
	s.test("requests for another model are never held up", spec(per(bucket(10, 10), store.PerModel), slots(1000)), func(m *member) {
		for a := range 5 {
			m.stream(want(fmt.Sprint("agent", a), 10, 1).model("opus"), 10)
		}
		for range 100 {
			m.pass(100 * time.Millisecond)
			id := m.take(want("agent0", 1, 1).model("haiku"))
			m.close(id)
		}
	})
	s.test("nor when theirs waits for a place of its own", spec(per(slots(2), store.PerModel), slots(1000)), func(m *member) {
		m.take(want("a", 2, 2).model("opus"))
		m.queue(want("a", 2, 900).model("opus"))
		m.take(want("b", 2, 50).model("haiku"))
		m.refused(want("b", 0, 100).model("sonnet").try(), store.CodeOrder) // claimed by opus
	})
	s.test("requests for another key are never held up", spec(per(bucket(1, 1), store.PerKey)), func(m *member) {
		m.take(want("a", 1).key("one"))
		m.queue(want("a", 1).key("one"))
		m.take(want("a", 1).key("two"))
	})
	s.test("a limit that shrinks under a waiter does not leave it in everyone's way", spec(
		store.Limit{Kind: store.Rolling, Window: time.Minute, Guard: store.GuardOff}, slots(1),
	), func(m *member) {
		id := m.take(want("a", 1, 1))
		big, small := m.queue(want("b", 500, 1)), m.queue(want("c", 1, 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: []store.Observed{{Limit: place(0), Size: 100, Remaining: -1, ResetIn: -1}}})
		m.close(id)
		m.collect()
		m.exactly(small, 0)
		m.state(big, store.Ended)
		m.refused(want("b", 500, 1), store.CodeCapacity)
	})
}

func ownLimits(s *suite) {
	for name, scope := range map[string]store.Scope{"agent": store.PerAgent, "user": store.PerUser, "tool": store.PerTool} {
		s.test("one who lacks a limit per "+name+" holds up nobody", spec(per(bucket(1, 1), scope), bucket(100, 100)), func(m *member) {
			a, b := want("a", 1, 10).user("a").tool("a").class(0), want("b", 1, 10).user("b").tool("b").class(2)
			m.take(a)
			mine := m.queue(a)
			m.take(b.try())
			m.pass(time.Second)
			m.exactly(mine, time.Second)
		})
	}
	s.test("its own line stays in order", spec(per(bucket(10, 10), store.PerAgent)), func(m *member) {
		m.take(want("a", 10))
		first, second := m.queue(want("a", 8)), m.queue(want("a", 1))
		other := m.take(want("b", 5))
		m.close(other)
		m.pass(2 * time.Second)
		m.exactly(first, 800*time.Millisecond)
		m.exactly(second, 900*time.Millisecond)
	})
	s.test("places per agent come back one by one", spec(per(slots(1), store.PerAgent), slots(100)), func(m *member) {
		for _, name := range []string{"a", "b"} {
			held := m.take(want(name, 1, 1))
			ids := []store.ID{m.queue(want(name, 1, 1)), m.queue(want(name, 1, 1)), m.queue(want(name, 1, 1))}
			for _, id := range ids {
				m.state(id, store.Waiting)
				m.close(held)
				m.collect()
				m.state(id, store.Granted)
				held = id
			}
		}
	})
	s.test("agents of one user share its places in turn", spec(per(slots(2), store.PerUser)), func(m *member) {
		held := []store.ID{m.take(want("x", 1).user("u")), m.take(want("x", 1).user("u"))}
		by := m.line("aabbcc", func(name string) request { return want(name, 1).user("u") })
		for len(held) > 0 {
			m.close(held[0])
			held = held[1:]
			n := len(m.grants)
			m.collect()
			for _, g := range m.grants[n:] {
				held = append(held, g.ID)
			}
		}
		if got := len(m.agents(by)); got != 6 {
			m.Errorf("%d of 6 went", got)
		}
	})
	s.test("a big request on a limit per user gets there while small ones stream past", spec(per(bucket(10, 20), store.PerUser)), func(m *member) {
		m.stream(want("small", 1).user("u"), 10)
		m.pass(time.Second)
		big := m.queue(want("big", 18).user("u"))
		m.pass(10 * time.Second)
		if !m.wasGranted(big) {
			m.Error("the big one starves")
		}
	})
	s.test("who waited for a limit of its own and now for something else hands it on", spec(per(slots(1), store.PerAgent), plenty()), func(m *member) {
		held := m.take(want("a", 1, 1).model("haiku"))
		first, second := m.queue(want("a", 1, 1).model("opus")), m.queue(want("a", 1, 1).model("haiku"))
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute, Scope: store.PerModel, Model: "opus"})
		m.close(held)
		m.collect()
		m.exactly(second, 0)
		m.close(second)
		m.pass(time.Minute)
		m.exactly(first, time.Minute)
	})
	s.test("who waits for a common limit keeps none of its own", spec(per(slots(2), store.PerAgent), slots(1)), func(m *member) {
		held := m.take(want("x", 0, 1))
		m.queue(want("a", 1, 1))
		m.take(want("a", 1, 0))
		m.take(want("a", 1, 0))
		m.close(held)
		m.collect()
		if len(m.grants) != 0 {
			m.Error("granted beyond the agent's own limit")
		}
		m.take(want("b", 1, 1))
	})
}
