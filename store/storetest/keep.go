package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func shared(s store.Spec) store.Spec {
	s.Shares = true
	return s
}

// beat renews an agent's lease, which must succeed.
func (m *member) beat(agent string, class uint8) {
	m.Helper()
	if r := m.do(heartbeat(agent, class)); r.State != store.Granted {
		m.Fatalf("the lease of %s is %v (%v)", agent, r.State, r.Reason.Code)
	}
}

func heartbeat(agent string, class uint8) store.Op {
	return store.Op{Kind: store.OpHeartbeat, Agent: agent, Class: class}
}

func (m *member) leave(agent string) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpLeave, Agent: agent})
}

// stockShares tests what classes keep from each other of a stock. Weights are 40, 35 and 25.
func stockShares(s *suite) {
	const hour = time.Hour
	end := Start.Add(hour + doubt)
	sp := func() store.Spec { return shared(spec(stock(1000, hour))) }
	s.test("the unused share of a class that is alive is kept", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 385).class(2)) // 40 of 65 are a's: 615
		m.keptUntil(m.queue(want("c", 1).class(2)), store.CodeShare, 0, sinks(615, hour, end, 614))
		m.take(want("a", 614).class(0))
	})
	s.test("a lone agent has all", sp(), func(m *member) {
		m.take(want("c", 1000).class(2))
	})
	s.test("shares add up to all there is", sp(), func(m *member) {
		m.beat("a", 0)
		m.beat("b", 1)
		m.beat("c", 2)
		m.take(want("c", 250).class(2))
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		m.take(want("b", 350))
		m.refused(want("b", 1).try(), store.CodeShare)
		m.take(want("a", 400).class(0))
		m.refused(want("a", 1).class(0).try(), store.CodeLimit)
	})
	s.test("more than a share is borrowed where others leave some", sp(), func(m *member) {
		m.beat("a", 0)
		m.beat("c", 2)
		m.take(want("b", 350))
		m.refused(want("b", 1).try(), store.CodeShare)
		m.leave("c") // 400 of 750 are a's now: 533, and 350 of 1000 are used
		m.take(want("b", 117))
		m.refused(want("b", 1).try(), store.CodeShare)
		m.take(want("a", 533).class(0))
	})
	s.test("what is used of a share is not kept any more", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 385).class(2))
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		m.take(want("a", 600).class(0))
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		m.take(want("a", 15).class(0))
		m.refused(want("c", 1).class(2).try(), store.CodeLimit)
	})
	s.test("what is given back is kept again", sp(), func(m *member) {
		m.beat("a", 0)
		id := m.take(want("a", 615).class(0))
		m.cancel(id)
		m.take(want("c", 385).class(2))
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		id = m.take(want("a", 600).class(0))
		m.close(id, 100) // it used 100 of 600
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		m.take(want("a", 515).class(0))
	})
	s.test("who used more than it asked for has used its share", sp(), func(m *member) {
		m.beat("a", 0)
		id := m.take(want("a", 1).class(0))
		m.close(id, 615)
		m.take(want("c", 385).class(2))
	})
	s.test("who leaves gives its share to those who wait at once", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 300).class(2))
		waits := m.queue(want("c", 600).class(2))
		m.pass(time.Second)
		m.leave("a")
		m.collect()
		m.exactly(waits, time.Second)
	})
	s.test("who dies gives its share to those who wait at that moment", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 300).class(2))
		m.sleep(time.Minute)
		m.keptUntil(m.queue(want("c", 600).class(2)), store.CodeShare, 0, Start.Add(store.DefaultLease))
	})
	s.test("who has asked is alive for as long as a lease", sp(), func(m *member) {
		m.take(want("a", 1).class(0))
		m.take(want("c", 300).class(2))
		m.keptUntil(m.queue(want("c", 600).class(2)), store.CodeShare, 0, Start.Add(store.DefaultLease))
	})
	s.test("who waits is alive for as long as it does", shared(spec(stock(1000, hour), slots(1))), func(m *member) {
		m.take(want("x", 0, 1).ttl(hour))
		waits := m.queue(want("a", 1, 1).class(0))
		m.sleep(20 * time.Minute)
		m.take(want("c", 100).class(2))
		m.refused(want("c", 800).class(2).try(), store.CodeShare)
		m.cancel(waits)
		m.take(want("c", 800).class(2))
	})
	s.test("what was used before the reset was known counts", shared(spec(store.Limit{Kind: store.Fixed, Size: 1000, Window: hour})), func(m *member) {
		m.beat("a", 0)
		m.sleep(time.Minute)
		id := m.take(want("a", 615).class(0))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 1000, 385, 50*time.Minute)})
		m.close(id)
		m.take(want("c", 385).class(2)) // all of a's share is used
	})
	s.test("a share that was borrowed is taken back in the next window", sp(), func(m *member) {
		id := m.take(want("c", 1000).class(2))
		m.answer(id, store.VerdictOK)
		m.close(id)
		m.sleep(hour - time.Minute)
		m.beat("b", 1)
		m.refused(want("b", 1).try(), store.CodeLimit)
		m.sleep(end.Sub(m.now()))
		m.take(want("c", 417).class(2)) // 35 of 60 are b's: 583
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
		m.take(want("b", 583))
	})
	s.test("it sinks with the time left", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 385).class(2))
		for range 14 { // it lives through all of it
			m.sleep(4 * time.Minute)
			m.beat("a", 0)
		}
		left := end.Sub(m.now())
		free := 615 - (615*int64(left)/int64(hour) + 1)
		m.take(want("c", free).class(2))
		m.refused(want("c", 3).class(2).try(), store.CodeShare)
	})
	s.test("it binds on a short window too, and on no flow", shared(spec(stock(1000, time.Minute), rolling(1000, hour), bucket(100, 1000))), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 385, 1000, 1000).class(2))
		m.refused(want("c", 1).class(2).try(), store.CodeShare)
	})
	s.test("a large request can go when nobody has used anything", sp(), func(m *member) {
		m.beat("a", 0)
		m.take(want("c", 1000).class(2))
	})
	off := sp()
	off.Lease = -1
	s.test("where nobody counts as alive nothing is kept", off, func(m *member) {
		m.take(want("a", 1).class(0))
		m.take(want("b", 1))
		m.take(want("c", 998).class(2))
	})
	s.test("what the light asks for comes out of the highest class's share", lit(sp()), func(m *member) {
		m.beat("a", 0)
		m.beat("b", 1)
		m.take(want("c", 250).class(2))
		m.take(want("b", 350))
		m.refused(want("b", 1).try(), store.CodeShare)
		m.take(want("a", 350).class(0))
		m.refused(want("a", 1).class(0).try(), store.CodeLight)
		m.take(want("a", 50).emergency())
	})
	s.test("every class goes on while all of them press", shared(lit(spec(stock(600, 10*time.Minute), bucket(20, 20)))), func(m *member) {
		var all []*stream
		for c := range uint8(3) {
			all = append(all, m.stream(want(string('a'+rune(c)), 1, 1).class(c), 3))
		}
		m.pass(21 * time.Minute)
		var sum int
		for c, st := range all {
			sum += st.granted
			if least := []int{440, 385, 275}[c]; st.granted < least {
				m.Errorf("class %d had %d of 1200, want %d", c, st.granted, least)
			}
		}
		if sum < 1180 {
			m.Errorf("%d of 1200 were used", sum)
		}
	})
}

func reserves(s *suite) {
	const hour = time.Hour
	end := Start.Add(hour + doubt)
	reserving := func(s store.Spec, part int64) store.Spec {
		s.Reserve = part
		return s
	}
	s.test("all but emergencies leave it", reserving(spec(stock(1000, hour)), 100), func(m *member) {
		m.take(want("b", 900))
		m.kept(want("b", 1), store.CodeReserve, sinks(100, hour, end, 99))
		m.kept(want("a", 1).class(0), store.CodeReserve, sinks(100, hour, end, 99))
		m.take(want("person", 10).emergency())
		m.keptUntil(m.queue(want("a", 1).class(0)), store.CodeReserve, 0, sinks(100, hour, end, 89))
	})
	s.test("it is not added to the light", reserving(lit(spec(stock(1000, hour))), 100), func(m *member) {
		m.take(want("b", 800))
		m.kept(want("b", 1), store.CodeLight, sinks(200, hour, end, 199))
		m.take(want("a", 100).class(0))
		m.kept(want("a", 1).class(0), store.CodeReserve, sinks(100, hour, end, 99))
	})
	s.test("the larger one counts", reserving(lit(spec(stock(1000, hour))), 300), func(m *member) {
		m.take(want("b", 700))
		m.kept(want("b", 1), store.CodeReserve, sinks(300, hour, end, 299))
	})
	s.test("a large request can go right after the reset", reserving(spec(stock(1000, hour)), 500), func(m *member) {
		m.take(want("b", 1000))
	})
	s.test("there is none on flows", reserving(spec(rolling(100, hour), bucket(10, 10), slots(10)), 500), func(m *member) {
		m.take(want("b", 100, 10, 10))
	})
}
