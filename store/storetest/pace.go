package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func paced(s store.Spec) store.Spec {
	s.Pace = true
	return s
}

func pacing(s *suite) {
	// 100 a minute: a burst of five, then one every 600 ms.
	minute := func() store.Spec { return paced(spec(rolling(100, time.Minute))) }
	const apart = 600 * time.Millisecond
	s.test("lower classes have a burst and then the rate", minute(), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 4))
		m.take(want("b", 1))
		ids := []store.ID{m.queue(want("b", 1)), m.queue(want("b", 1)), m.queue(want("b", 3))}
		m.keptUntil(ids[0], store.CodePace, 0, Start.Add(apart))
		m.keptUntil(ids[1], store.CodePace, 0, Start.Add(2*apart))
		m.keptUntil(ids[2], store.CodePace, 0, Start.Add(5*apart))
	})
	s.test("the burst comes back", minute(), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 5))
		m.sleep(5 * apart)
		m.take(want("b", 5))
		m.sleep(30 * time.Second)
		m.take(want("b", 5)) // and no more than that
		m.refused(want("b", 1).try(), store.CodePace)
	})
	s.test("of a small window the burst is one", paced(spec(rolling(10, time.Minute))), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 1))
		m.keptUntil(m.queue(want("b", 1)), store.CodePace, 0, Start.Add(6*time.Second))
	})
	s.test("lower classes are paced together", minute(), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 3))
		m.take(want("c", 2).class(2))
		m.kept(want("b", 1), store.CodePace, Start.Add(apart))
		m.kept(want("c", 1).class(2), store.CodePace, Start.Add(apart))
	})
	s.test("the highest class and emergencies are not", minute(), func(m *member) {
		m.take(want("b", 5))
		m.take(want("a", 50).class(0))
		m.queue(want("b", 1))
		m.take(want("a", 40).class(0))
		m.take(want("a", 5).emergency())
	})
	s.test("without the highest class nobody is", minute(), func(m *member) {
		m.take(want("b", 90))
		m.take(want("c", 10).class(2))
	})
	s.test("who has asked is alive", minute(), func(m *member) {
		m.take(want("a", 1).class(0))
		m.take(want("b", 5))
		m.refused(want("b", 1).try(), store.CodePace)
	})
	s.test("what went before counts when the highest class comes", minute(), func(m *member) {
		m.take(want("b", 50))
		m.beat("a", 0)
		m.keptUntil(m.queue(want("b", 1)), store.CodePace, 0, Start.Add(46*apart))
	})
	s.test("it ends when the highest class leaves", minute(), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 50))
		waits := m.queue(want("b", 50))
		m.leave("a")
		m.collect()
		m.exactly(waits, 0)
	})
	s.test("it ends when the highest class dies", paced(spec(rolling(24, 24*time.Hour))), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 1))
		m.sleep(time.Minute)
		m.keptUntil(m.queue(want("b", 20)), store.CodePace, 0, Start.Add(store.DefaultLease))
	})
	s.test("it goes on while one of the highest class waits", paced(spec(rolling(24, 24*time.Hour), slots(1))), func(m *member) {
		m.take(want("x", 0, 1).ttl(24 * time.Hour))
		top := m.queue(want("a", 1, 1).class(0))
		m.take(want("b", 1))
		low := m.queue(want("b", 1))
		m.sleep(30 * time.Minute)
		m.state(low, store.Waiting)
		m.cancel(top)
		m.collect()
		m.exactly(low, 30*time.Minute)
	})
	s.test("what is larger than the burst goes when all before it has been worked off", minute(), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 5))
		m.keptUntil(m.queue(want("b", 20)), store.CodePace, 0, Start.Add(5*apart))
		m.keptUntil(m.queue(want("b", 1)), store.CodePace, 0, Start.Add(21*apart)) // 5 and 20, less the 4 that a burst holds
	})
	s.test("a large one does not starve behind small ones in other lanes", paced(spec(rolling(100, time.Minute), plenty())), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 5, 1))
		small := m.stream(want("b", 1, 1), 5)
		m.pass(10 * time.Second)
		large := m.queue(want("c", 30).class(2))
		m.pass(80 * time.Second)
		if !m.wasGranted(large) {
			m.Errorf("it still waits, %d small ones later", small.granted)
		}
	})
	s.test("what comes back unsent does not count", minute(), func(m *member) {
		m.beat("a", 0)
		id := m.take(want("b", 5))
		waits := m.queue(want("b", 1))
		m.cancel(id)
		m.collect()
		m.exactly(waits, 0)
		m.take(want("b", 4))
		m.refused(want("b", 1).try(), store.CodePace)
	})
	s.test("what was used in the end counts", minute(), func(m *member) {
		m.beat("a", 0)
		id := m.take(want("b", 1))
		m.close(id, 5)
		m.kept(want("b", 1), store.CodePace, Start.Add(apart))
	})
	s.test("other kinds are not paced", everywhere(lit(paced(spec(bucket(10, 10), stock(1000, time.Hour), slots(10))))), func(m *member) {
		m.beat("a", 0)
		id := m.take(want("b", 8, 800, 8))
		m.refused(want("b", 1).try(), store.CodeLight)
		m.cancel(id)
		m.take(want("b", 8, 800, 8))
	})
	s.test("each model is paced by itself", paced(spec(per(rolling(100, time.Minute), store.PerModel))), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 5).model("opus"))
		m.take(want("b", 5).model("haiku"))
		m.refused(want("b", 1).model("opus").try(), store.CodePace)
	})
	s.test("the highest class seldom waits, and nothing is wasted", minute(), func(m *member) {
		m.beat("a", 0)
		b, c := m.stream(want("b", 1), 3), m.stream(want("c", 1).class(2), 3)
		m.pass(time.Minute)
		var ids []store.ID
		before := b.granted + c.granted
		var longest time.Duration
		for range 20 {
			m.pass(3 * time.Second)
			m.beat("a", 0)
			r := m.do(want("a", 1).class(0).op)
			ids = append(ids, r.ID)
		}
		m.pass(10 * time.Second)
		for _, id := range ids {
			if m.wasGranted(id) {
				for _, g := range m.grants {
					if g.ID == id {
						longest = max(longest, g.Waited)
					}
				}
			}
		}
		if longest > 5*time.Second {
			m.Errorf("it waited %v", longest)
		}
		m.about("in seventy seconds", float64(b.granted+c.granted-before+len(ids)), 100*70/60)
	})
}
