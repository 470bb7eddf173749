package storetest

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// restated opens the pool once more, through the same store, with limits that replace the earlier ones.
func (m *member) restated(sp store.Spec) *member {
	m.Helper()
	sp.Restate = true
	return join(m.T, m.harness, sp)
}

// restating tests what happens to the users of a pool when its limits are replaced. All keep what they have, and
// continue under the new limits.
func restating(s *suite) {
	s.test("more room lets in who waits", spec(rolling(1, time.Hour)), func(m *member) {
		held := m.take(want("a", 1))
		first, second := m.queue(want("b", 1)), m.queue(want("b", 1))
		n := m.restated(spec(rolling(2, time.Hour)))
		m.collect()
		m.exactly(first, 0)
		m.state(second, store.Waiting)
		n.used(0, 2)
		n.answer(held, store.VerdictOK)
		n.close(held)
		n.refused(want("c", 1).try(), store.CodeLimit)
	})
	s.test("less room keeps what is charged", spec(slots(3)), func(m *member) {
		a, b := m.take(want("a", 1)), m.take(want("b", 1))
		n := m.restated(spec(slots(1)))
		n.used(0, 2)
		c := n.queue(want("c", 1))
		n.close(a)
		n.state(c, store.Waiting)
		m.close(b)
		n.collect()
		n.exactly(c, 0)
	})
	s.test("a limit that nobody had for a while counts again for whoever has it", spec(rolling(9, time.Hour), rolling(2, time.Minute)), func(m *member) {
		m.close(m.take(want("a", 1, 1)))
		both := spec(rolling(9, time.Hour), rolling(2, time.Minute))
		for _, sp := range []store.Spec{spec(rolling(9, time.Hour)), both} {
			if err := m.pool.Close(); err != nil { // it is alone, every time
				m.Fatal(err)
			}
			m = join(m.T, m.harness, sp)
		}
		m.used(1, 1)
		m.take(want("a", 1, 1))
		m.refused(want("a", 1, 1).try(), store.CodeLimit)
	})
	s.test("a new limit counts for those who were there before it", spec(rolling(9, time.Hour)), func(m *member) {
		n := m.restated(spec(rolling(9, time.Hour), rolling(2, time.Minute), store.Limit{Kind: store.Rolling, Unit: "tokens", Size: 5, Window: time.Minute, Guard: store.GuardOff}))
		one := want("a").unit("requests", 1)
		m.close(m.take(one))
		n.used(1, 1)
		n.used(2, 0)
		m.take(one)
		m.refused(one.try(), store.CodeLimit)
		n.refused(want("b", 1, 1).try(), store.CodeLimit)
	})
	s.test("a size that was said before does not count", spec(slots(1)), func(m *member) {
		n := m.restated(spec(slots(5)))
		n.take(want("a", 1))
		m.take(want("a", 1))
		if l := n.limit(0); l.Size != 5 {
			n.Errorf("the size is %d", l.Size)
		}
		o := n.restated(spec(slots(3)))
		if l := o.limit(0); l.Size != 3 || l.Used != 2 {
			o.Errorf("%d of %d are used", l.Used, l.Size)
		}
	})
	s.test("another window takes over what is charged", spec(rolling(3, time.Minute)), func(m *member) {
		held := m.take(want("a", 1))
		m.close(m.take(want("a", 2)))
		waits := m.queue(want("b", 1))
		n := m.restated(spec(rolling(4, 10*time.Minute)))
		m.collect()
		m.exactly(waits, 0)
		n.used(0, 4)
		n.refused(want("c", 1).try(), store.CodeLimit)
		n.close(held)
		n.pass(10*time.Minute + 10*time.Second)
		n.used(0, 0)
	})
	s.test("who waits does so for the new window", spec(rolling(2, time.Hour)), func(m *member) {
		m.close(m.take(want("a", 2)))
		waits := m.queue(want("b", 1))
		m.restated(spec(rolling(2, time.Minute)))
		m.collect()
		m.state(waits, store.Waiting)
		m.pass(time.Minute + time.Second)
		m.between(waits, time.Minute, time.Minute+time.Second)
	})
	s.test("another kind", spec(rolling(2, time.Hour)), func(m *member) {
		held := m.take(want("a", 2))
		waits := m.queue(want("b", 1))
		n := m.restated(spec(slots(2)))
		n.used(0, 2)
		m.state(waits, store.Waiting)
		n.close(held)
		m.collect()
		m.exactly(waits, 0)
		n.used(0, 1)
	})
	restatingSeveral(s)
	s.test("who does not restate keeps to what is in force", spec(rolling(2, time.Minute)), func(m *member) {
		for what, sp := range map[string]store.Spec{"another window": spec(rolling(2, time.Hour)), "no limit": spec()} {
			if _, err := m.harness.Store.Pool(context.Background(), sp); err == nil {
				m.Errorf("%s was taken on", what)
			}
		}
		m.take(want("a", 2))
		n := join(m.T, m.harness, spec(rolling(9, time.Minute)))
		n.refused(want("a", 1).try(), store.CodeLimit)
	})
}

// named gives a limit a name.
func named(l store.Limit, name string) store.Limit {
	l.Name = name
	return l
}

// restatingSeveral is restating with limits that are added, removed and reordered.
func restatingSeveral(s *suite) {
	minute, places, hour := named(rolling(2, time.Minute), "minute"), named(slots(2), "places"), named(rolling(3, time.Hour), "hour")
	s.test("a limit goes", spec(minute, places), func(m *member) {
		held := m.take(want("a", 2, 2))
		waits := m.queue(want("b", 1, 1))
		n := m.restated(spec(places))
		n.used(0, 2)
		m.state(waits, store.Waiting)
		n.close(held)
		m.collect()
		m.exactly(waits, 0) // the limit "minute" is gone
		m.take(want("a", 9, 1))
		n.refused(want("c", 1).try(), store.CodeLimit)
	})
	s.test("all limits go", spec(minute), func(m *member) {
		held := m.take(want("a", 2))
		waits := m.queue(want("b", 1))
		n := m.restated(spec())
		m.collect()
		m.exactly(waits, 0)
		n.take(want("c"))
		n.close(held)
		m.close(waits)
	})
	s.test("a limit comes", spec(places), func(m *member) {
		held := m.take(want("a", 2))
		first, second := m.queue(want("b", 1)), m.queue(want("b", 2))
		n := m.restated(spec(places, named(rolling(1, time.Hour), "hour")))
		n.close(held)
		m.collect()
		m.exactly(first, 0)
		m.close(first)
		m.collect()
		if len(m.gone) != 1 || m.gone[0] != second { // the limit can never hold so much
			m.Errorf("gone are %v", m.gone)
		}
		n.used(1, 1)
	})
	s.test("limits change places", spec(minute, places, hour), func(m *member) {
		held := m.take(want("a", 1, 2, 1))
		waits := m.queue(want("b", 1, 1, 2))
		n := m.restated(spec(hour, minute, places))
		n.used(0, 1)
		n.used(1, 1)
		n.used(2, 2)
		m.used(1, 2)
		n.close(held)
		m.collect()
		m.exactly(waits, 0)
		n.used(0, 3)
		n.used(1, 2)
		n.used(2, 1)
		r := n.refused(want("c", 1, 0, 0).try(), store.CodeLimit)
		if r.Reason.Limit != "hour" {
			n.Errorf("for the new session it is limit %s", r.Reason.Limit)
		}
		if r = m.refused(want("c", 0, 0, 1).try(), store.CodeLimit); r.Reason.Limit != "hour" {
			m.Errorf("for the old session it is limit %s", r.Reason.Limit)
		}
	})
	s.test("what was said comes back", spec(minute), func(m *member) {
		held := m.take(want("a", 1))
		n := m.restated(spec(named(rolling(5, time.Hour), "minute"), places))
		n.take(want("a", 1, 1))
		o := n.restated(spec(minute))
		o.used(0, 2)
		o.refused(want("a", 1).try(), store.CodeLimit)
		o.close(held)
		o.pass(time.Minute + time.Second)
		o.used(0, 0)
	})
	s.test("a limit goes and comes back", spec(minute, places), func(m *member) {
		m.close(m.take(want("a", 2, 1)))
		n := m.restated(spec(places))
		n.take(want("a", 1))
		o := n.restated(spec(minute, places))
		o.used(0, 2)
		o.refused(want("a", 1, 1).try(), store.CodeLimit)
		m.refused(want("a", 1, 1).try(), store.CodeLimit)
		n.refused(want("a").unit("requests", 1).try(), store.CodeLimit) // it does not know the limit "minute", but counts against it all the same
	})
	s.test("everyone keeps their place", spec(slots(1)), func(m *member) {
		held := m.take(want("a", 1))
		var line []store.ID
		for range 5 {
			line = append(line, m.queue(want("b", 1)))
		}
		n := m.restated(spec(named(slots(1), "others"), plenty()))
		m.collect()
		first := m.grants[0].ID // the limit that held it is gone
		if first != line[0] {
			m.Fatalf("%v goes first", first)
		}
		n.close(held)
		for i, id := range line {
			m.collect()
			if len(m.grants) != i+1 || m.grants[i].ID != id {
				m.Fatalf("after %d: %v", i, m.grants)
			}
			n.close(id)
		}
	})
	s.test("one scope each", spec(per(slots(1), store.PerAgent)), func(m *member) {
		a := m.take(want("a", 1))
		m.take(want("b", 1))
		waits := m.queue(want("a", 1))
		n := m.restated(spec(guarded(per(slots(1), store.PerAgent), store.GuardStrict), plenty()))
		m.state(waits, store.Waiting)
		n.refused(want("b", 1).try(), store.CodeLimit)
		n.close(a)
		m.collect()
		m.exactly(waits, 0)
		n.take(want("c", 1, 1))
	})
}
