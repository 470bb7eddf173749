package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// sized fails the test if a limit does not have this size.
func (m *member) sized(limit int, size int64) {
	m.Helper()
	if l := m.limit(limit); l.Size != size {
		m.Errorf("limit %d has the size %d, want %d", limit, l.Size, size)
	}
}

// leaves closes the member's session.
func (m *member) leaves() {
	m.Helper()
	if err := m.pool.Close(); err != nil {
		m.Fatal(err)
	}
}

// called gives a spec the name of a member.
func called(name string, sp store.Spec) store.Spec {
	sp.Member = name
	return sp
}

// sizes tests limits for which members state different sizes. The smallest size of a present member applies.
func sizes(s *suite) {
	s.test("one that leaves no longer counts", spec(rolling(4, time.Hour)), func(m *member) {
		small := join(m.T, m.harness, spec(rolling(2, time.Hour)))
		m.sized(0, 2)
		m.take(want("a", 2))
		first, second := m.queue(want("b", 1)), m.queue(want("b", 2))
		small.leaves()
		m.sized(0, 4)
		m.collect()
		m.exactly(first, 0)
		m.state(second, store.Waiting)
		m.used(0, 3)
	})
	s.test("a newcomer does not enlarge a limit", spec(slots(3)), func(m *member) {
		large := join(m.T, m.harness, spec(slots(9)))
		large.sized(0, 3)
		m.leaves()
		large.sized(0, 9)
		larger := join(m.T, m.harness, spec(slots(20)))
		larger.sized(0, 9)
		larger.leaves()
		large.sized(0, 9)
	})
	s.test("the smallest of those who are left", spec(slots(8)), func(m *member) {
		two, four := join(m.T, m.harness, spec(slots(2))), join(m.T, m.harness, spec(slots(4)))
		m.sized(0, 2)
		two.leaves()
		m.sized(0, 4)
		six := join(m.T, m.harness, spec(slots(6)))
		four.leaves()
		m.sized(0, 6)
		six.leaves()
		m.sized(0, 8)
	})
	s.test("each limit by itself", called("first", spec(slots(8), rolling(3, time.Hour))), func(m *member) {
		a := join(m.T, m.harness, called("a", spec(slots(2), rolling(9, time.Hour))))
		b := join(m.T, m.harness, called("b", spec(slots(4), rolling(1, time.Hour))))
		m.sized(0, 2)
		m.sized(1, 1)
		a.leaves()
		m.sized(0, 4)
		m.sized(1, 1)
		if l := m.limit(0); l.By != "b" {
			m.Errorf("it is that of %q", l.By)
		}
		b.leaves()
		m.sized(0, 8)
		m.sized(1, 3)
		if l := m.limit(1); l.By != "first" {
			m.Errorf("it is that of %q", l.By)
		}
	})
	s.test("who only looks states nothing", spec(slots(3)), func(m *member) {
		look := spec(slots(1))
		look.ReadOnly = true
		looks := join(m.T, m.harness, look)
		m.sized(0, 3)
		looks.leaves()
		m.sized(0, 3)
	})
	s.test("what was restated stays when the earlier session goes", spec(slots(2)), func(m *member) {
		n := m.restated(spec(slots(5)))
		m.leaves()
		n.sized(0, 5)
		o := n.restated(spec(slots(3)))
		n.leaves()
		o.sized(0, 3)
	})
	s.test("a bucket fills by its size of the time", spec(bucket(10, 10)), func(m *member) {
		small := join(m.T, m.harness, spec(bucket(1, 1)))
		m.take(want("a", 1))
		m.pass(500 * time.Millisecond)
		small.leaves()
		m.refused(want("a", 10).try(), store.CodeLimit) // half of one is still there
		m.take(want("a", 9))
	})
}
