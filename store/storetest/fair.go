package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

func ordered(o store.Order, s store.Spec) store.Spec {
	s.Order = o
	return s
}

// agents returns the names of granted tickets, in order. by maps tickets to names.
func (m *member) agents(by map[store.ID]string) []string {
	var list []string
	for _, g := range m.grants {
		if name, ok := by[g.ID]; ok {
			list = append(list, name)
		}
	}
	return list
}

// line queues requests, one for each letter of names, and returns the name of each ticket.
func (m *member) line(names string, req func(name string) request) map[store.ID]string {
	m.Helper()
	by := map[store.ID]string{}
	for _, r := range names {
		by[m.queue(req(string(r)))] = string(r)
	}
	return by
}

func (m *member) inOrder(by map[store.ID]string, want string) {
	m.Helper()
	got := ""
	for _, name := range m.agents(by) {
		got += name
	}
	if got != want {
		m.Errorf("granted in the order %s, want %s", got, want)
	}
}

func one(name string) request { return want(name, 1) }

// classed derives the class of a request from its name: x is p0, y is p1, z is p2.
func classed(name string) request { return want(name, 1).class(name[0] - 'x') }

func turns(s *suite) {
	s.test("first come, first served within an agent", spec(bucket(10, 1)), func(m *member) {
		m.take(want("a", 1))
		var ids []store.ID
		for i := range 10 {
			ids = append(ids, m.queue(want("a", 1).model(string(rune('p'+i%3)))))
		}
		m.pass(2 * time.Second)
		for i, id := range ids {
			m.exactly(id, time.Duration(i+1)*100*time.Millisecond)
		}
	})
	s.test("also where a late one is for another model that no limit tells apart", spec(bucket(10, 1)), func(m *member) {
		m.take(want("a", 1).model("p"))
		var ids []store.ID
		for _, model := range []string{"p", "p", "p", "q", "p"} {
			ids = append(ids, m.queue(want("a", 1).model(model)))
		}
		m.pass(2 * time.Second)
		for i, id := range ids {
			m.exactly(id, time.Duration(i+1)*100*time.Millisecond)
		}
	})
	s.test("agents are equal though one asks for two models", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		two := []*stream{m.stream(want("a", 1).model("p"), 10), m.stream(want("a", 1).model("q"), 10)}
		one := m.stream(want("b", 1).model("p"), 10)
		m.pass(20 * time.Second)
		m.about("the one with two models", float64(total(two)), 100)
		m.about("the one with one model", float64(one.granted), 100)
	})
	s.test("agents of a class take turns", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		by := m.line("aaaaabbc", one)
		m.pass(2 * time.Second)
		m.inOrder(by, "abcabaaa")
	})
	s.test("one who comes late does not catch up", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		by := m.line("aaaaaaaaaa", one)
		m.pass(500 * time.Millisecond)
		for id, name := range m.line("bbbb", one) {
			by[id] = name
		}
		m.pass(2 * time.Second)
		m.inOrder(by, "aaaaababababaa")
	})
	s.test("a dear request costs its agent turns", spec(bucket(10, 10)), func(m *member) {
		m.take(want("x", 10))
		by := m.line("aab", func(name string) request {
			if name == "a" {
				return want(name, 5)
			}
			return want(name, 1)
		})
		for id, name := range m.line("bbbbb", one) {
			by[id] = name
		}
		m.pass(3 * time.Second)
		m.inOrder(by, "abbbbbab")
	})
	s.test("strict order puts a higher class always first", ordered(store.Strict, spec(bucket(10, 1))), func(m *member) {
		m.take(want("a", 1))
		by := m.line("zzyyxx", classed)
		m.pass(250 * time.Millisecond)
		for id, name := range m.line("xy", classed) {
			by[id] = name
		}
		m.pass(2 * time.Second)
		m.inOrder(by, "xxxyyyzz")
	})
	s.test("strict order still takes turns within a class", ordered(store.Strict, spec(bucket(10, 1))), func(m *member) {
		m.take(want("a", 1))
		by := m.line("aaabbb", one)
		m.pass(2 * time.Second)
		m.inOrder(by, "ababab")
	})
	s.test("fifo is first come, first served over everyone", ordered(store.FIFO, spec(bucket(10, 1))), func(m *member) {
		m.take(want("a", 1))
		by := m.line("zzxyxzyyx", classed)
		m.pass(2 * time.Second)
		m.inOrder(by, "zzxyxzyyx")
	})
	s.test("a try does not overtake", spec(bucket(10, 10)), func(m *member) {
		m.take(want("a", 10))
		big := m.queue(want("b", 10))
		m.sleep(500 * time.Millisecond)
		m.refused(want("b", 1).try(), store.CodeOrder)
		m.refused(want("c", 1).try(), store.CodeOrder)
		m.pass(time.Second)
		m.exactly(big, time.Second)
	})
	s.test("a try that can go beside those who wait goes", spec(per(slots(1), store.PerModel)), func(m *member) {
		m.take(want("a", 1).model("opus"))
		m.queue(want("a", 1).model("opus"))
		m.take(want("a", 1).model("haiku").try())
	})
	s.test("a request goes at once if all who waited have left", spec(bucket(10, 10)), func(m *member) {
		m.take(want("a", 5))
		id := m.queue(want("b", 10))
		m.refused(want("c", 1).try(), store.CodeOrder)
		m.cancel(id)
		m.take(want("c", 1).try())
	})
}

func shares(s *suite) {
	contended := spec(bucket(100, 1))
	limits := map[string]store.Spec{
		"a bucket":         contended,
		"a rolling window": spec(rolling(100, time.Second)),
	}
	for name, sp := range limits {
		s.test("classes get their shares of "+name, sp, func(m *member) {
			by := make([]*stream, 3)
			for c := range by {
				by[c] = m.stream(want(fmt.Sprint("agent", c), 1).class(uint8(c)), 40)
			}
			for _, b := range by {
				b.granted = 0 // grants before all were waiting do not count
			}
			m.pass(10 * time.Second)
			for c, weight := range []float64{40, 35, 25} {
				m.about(fmt.Sprint("class ", c), float64(by[c].granted), float64(total(by))*weight/100)
			}
		})
	}
	s.test("shares do not depend on how many agents a class has", contended, func(m *member) {
		var by [3][]*stream
		for c, agents := range []int{1, 3, 6} {
			for a := range agents {
				by[c] = append(by[c], m.stream(want(fmt.Sprint("agent", c, a), 1).class(uint8(c)), 120/agents))
			}
		}
		m.pass(10 * time.Second)
		all := total(slices.Concat(by[:]...))
		for c, weight := range []float64{40, 35, 25} {
			m.about(fmt.Sprint("class ", c), float64(total(by[c])), float64(all)*weight/100)
		}
	})
	s.test("shares do not depend on what a request costs", spec(bucket(1000, 20)), func(m *member) {
		var used [3]*stream
		for c, cost := range []int64{1, 10, 3} {
			used[c] = m.stream(want(fmt.Sprint("agent", c), cost).class(uint8(c)), int(150/cost))
		}
		m.pass(20 * time.Second)
		all := used[0].granted + 10*used[1].granted + 3*used[2].granted
		for c, weight := range []float64{40, 35, 25} {
			cost := float64(used[c].req.op.Amounts[0].N)
			m.about(fmt.Sprint("class ", c), float64(used[c].granted)*cost, float64(all)*weight/100)
		}
	})
	s.test("what one class leaves the others share by weight", contended, func(m *member) {
		a := m.stream(want("a", 1).class(0), 40)
		b := m.stream(want("b", 1).class(2), 40)
		m.pass(10 * time.Second)
		all := float64(a.granted + b.granted)
		m.about("p0", float64(a.granted), all*40/65)
		m.about("p2", float64(b.granted), all*25/65)
	})
	for c := range uint8(3) {
		s.test(fmt.Sprintf("a lone class gets everything/p%d", c), contended, func(m *member) {
			a := m.stream(want("a", 1).class(c), 40)
			m.pass(20 * time.Second)
			if a.granted != 2001 {
				m.Errorf("%d granted in 20 s at 100 a second, want 2001", a.granted)
			}
		})
	}
	s.test("agents of a class are equal", contended, func(m *member) {
		var by []*stream
		for a, depth := range []int{15, 60, 15, 100, 15} {
			by = append(by, m.stream(want(fmt.Sprint("agent", a), 1), depth))
		}
		m.pass(10 * time.Second)
		for _, b := range by {
			m.about(b.req.op.Agent, float64(b.granted), float64(total(by))/5)
		}
	})
	s.test("nobody starves", spec(bucket(50, 1)), func(m *member) {
		var by []*stream
		for a := range 20 {
			by = append(by, m.stream(want(fmt.Sprint("agent", a), 1).class(uint8(a%3)), 10))
		}
		m.pass(10 * time.Second)
		for _, b := range by {
			// The smallest share is 25% over six agents: about two grants a second.
			if b.gap > 2*time.Second {
				m.Errorf("%s waited %v between two grants", b.req.op.Agent, b.gap)
			}
		}
	})
	s.test("an agent that settles for less than it asked has its turns back", spec(bucket(200, 20)), func(m *member) {
		a, b := m.stream(want("a", 10), 30), m.stream(want("b", 1), 30)
		a.used = []int64{1}
		m.pass(20 * time.Second)
		m.about("a", float64(a.granted), float64(a.granted+b.granted)/2)
	})
	s.test("use while nobody waited is not held against anyone", contended, func(m *member) {
		for range 500 {
			m.close(m.take(want("a", 1)))
			m.sleep(10 * time.Millisecond)
		}
		a, b := m.stream(want("a", 1), 30), m.stream(want("b", 1), 30)
		m.pass(10 * time.Second)
		m.about("a", float64(a.granted), float64(a.granted+b.granted)/2)
	})
}

func total(streams []*stream) (n int) {
	for _, s := range streams {
		n += s.granted
	}
	return n
}
