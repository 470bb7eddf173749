package storetest

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// meters bounds the meters of each limit.
func meters(s store.Spec, n int) store.Spec {
	s.MaxMeters = n
	return s
}

func crowds(s *suite) {
	s.test("scopes beyond the bound share one meter, and the others keep theirs", meters(spec(per(rolling(2, time.Minute), store.PerModel)), 20), func(m *member) {
		m.take(want("a", 1).model("one"))
		m.take(want("a", 1).model("two"))
		m.take(want("a", 1).model("three")) // the first two models have their own meters
		m.take(want("a", 1).model("four"))
		m.refused(want("a", 1).model("three").try(), store.CodeLimit)
		m.refused(want("a", 1).model("five").try(), store.CodeLimit)
		m.take(want("a", 1).model("one"))
		m.take(want("a", 1).model("two"))
		m.refused(want("a", 1).model("one").try(), store.CodeLimit)
	})
	s.test("a scope leaves the shared meter when nothing is charged to it", meters(spec(per(slots(2), store.PerAgent)), 10), func(m *member) {
		var held []store.ID
		for i := range 10 {
			held = append(held, m.take(want(fmt.Sprint("own", i), 1)))
		}
		late, other := m.take(want("late", 1)), m.take(want("other", 1))
		m.refused(want("late", 1).try(), store.CodeLimit)
		for _, id := range held {
			m.close(id)
		}
		m.sleep(3 * time.Minute) // idle meters are dropped by then
		for range 5 {
			m.do(store.Op{Kind: store.OpPoll, ID: late})
			m.sleep(time.Second)
		}
		m.refused(want("late", 1).try(), store.CodeLimit) // its open tickets are charged to the shared meter
		m.close(late)
		m.close(other)
		m.take(want("late", 2))
		m.take(want("other", 2))
	})
	s.test("those who wait for the shared meter go in turn", meters(spec(per(slots(1), store.PerModel)), 10), func(m *member) {
		m.take(want("a", 1).model("own"))
		first := m.take(want("a", 1).model("x"))
		next, last := m.queue(want("a", 1).model("y")), m.queue(want("b", 1).model("z"))
		m.close(first)
		m.pass(0)
		m.state(next, store.Granted)
		m.close(next)
		m.pass(0)
		m.state(last, store.Granted)
	})
	s.test("thousands of names leave a bounded list", meters(spec(per(rolling(1, time.Minute), store.PerUser)), 50), func(m *member) {
		ops := make([]store.Op, 0, 2000)
		for i := range 2000 {
			ops = append(ops, want("a", 1).user(fmt.Sprint("user", i)).try().op)
		}
		granted := 0
		for _, r := range m.apply(ops...) {
			if r.State == store.Granted {
				granted++
			}
		}
		if granted != 51 {
			m.Errorf("%d granted, want 51: one for each meter", granted)
		}
		if got := len(m.snapshot().Limits); got != 51 {
			m.Errorf("%d meters, want 51", got)
		}
	})
}
