package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

func snapshots(s *suite) {
	s.test("counters", spec(bucket(10, 3)), func(m *member) {
		for range 2 {
			m.take(want("a", 1))
		}
		m.take(want("b", 1).again())
		m.queue(want("b", 1).again())
		m.pass(time.Second)
		id := m.take(want("a", 1))
		m.answer(id, store.VerdictThrottled)
		c := m.snapshot().Counters
		if c.Sent != 5 || c.Retried != 2 || c.Throttled != 1 || c.Waited != 100*time.Millisecond {
			m.Errorf("%+v", c)
		}
		if c.First != m.began || c.Last != m.now() || c.Last429 != m.now() || c.Peak < 3 || c.Peak > 4 {
			m.Errorf("%+v", c)
		}
	})
	s.test("callers, busiest first", spec(bucket(10, 10)), func(m *member) {
		for range 3 {
			m.take(want("b", 1))
		}
		m.take(want("c", 1))
		m.take(want("a", 1))
		m.cancel(m.take(want("a", 1)))
		var got []string
		for _, c := range m.snapshot().Callers {
			got = append(got, fmt.Sprint(c.Agent, c.Sent))
		}
		if want := []string{"b3", "a1", "c1"}; !slices.Equal(got, want) {
			m.Errorf("%v, want %v", got, want)
		}
	})
	s.test("who filled a bucket holds it until it has drained", spec(bucket(5, 10)), func(m *member) {
		m.sleep(time.Duration(55*time.Second.Microseconds()-int64(m.now())%time.Minute.Microseconds()+time.Minute.Microseconds()) * time.Microsecond) // late in a minute, of which the bucket's time is a small part
		for range 5 {
			m.take(want("x", 1))
			m.take(want("y", 1))
		}
		m.sleep(1100 * time.Millisecond) // longer than its second
		m.queue(want("a", 8))
		if got := m.snapshot().Queue[0].HeldBy; !slices.Equal(got, []string{"x", "y"}) {
			m.Errorf("held by %v, want x and y", got)
		}
	})
	s.test("the queue in order, with positions and times", spec(bucket(1, 10)), func(m *member) {
		m.take(want("x", 10))
		m.sleep(250 * time.Millisecond)
		for _, name := range []string{"a", "a", "b"} {
			m.queue(want(name, 2).model("opus"))
		}
		m.queue(want("c", 1).class(0))
		snap := m.snapshot()
		var got []string
		for i, w := range snap.Queue {
			if w.Position != i+1 || w.Since != m.now() {
				m.Errorf("%+v", w)
			}
			got = append(got, fmt.Sprint(w.Agent, w.Class, w.Model, w.Expected.Sub(m.began)))
		}
		if want := []string{"c01s", "a1opus3s", "b1opus5s", "a1opus7s"}; !slices.Equal(got, want) {
			m.Errorf("%v, want %v", got, want)
		}
		if !slices.Equal(snap.Waiting, []int{1, 3, 0}) {
			m.Errorf("waiting by class: %v", snap.Waiting)
		}
		if r := snap.Queue[0].Reason; r.Code != store.CodeLimit || r.Limit != m.name(0) {
			m.Errorf("%+v", r)
		}
		if !slices.Equal(snap.Queue[0].HeldBy, []string{"x"}) {
			m.Errorf("held by %v, want x", snap.Queue[0].HeldBy)
		}
	})
	s.test("expected times come true when nobody else comes", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		for i := range 20 {
			m.queue(want(fmt.Sprint("agent", i%3), 1).class(uint8(i % 2)))
		}
		expected := map[store.ID]store.Time{}
		for _, w := range m.snapshot().Queue {
			expected[w.ID] = w.Expected
		}
		m.pass(3 * time.Second)
		for id, at := range expected {
			if got := m.grantedAt(id); got != at {
				m.Errorf("expected at %v, granted at %v", at.Sub(m.began), got.Sub(m.began))
			}
		}
	})
	s.test("limits, scoped ones by their values", spec(slots(9), per(slots(5), store.PerAgent|store.PerModel)), func(m *member) {
		m.take(want("b", 1, 2).model("opus"))
		m.take(want("a", 1, 3).model("opus"))
		var got []string
		for _, l := range m.snapshot().Limits {
			got = append(got, fmt.Sprint(l.Limit, " ", l.Scope, " ", l.Size, l.Used, l.Remaining))
		}
		if want := []string{"a  9 2 7", "b agent=a,model=opus 5 3 2", "b agent=b,model=opus 5 2 3"}; !slices.Equal(got, want) {
			m.Errorf("%q, want %q", got, want)
		}
	})
	s.test("gates, while they hold", spec(plenty()), func(m *member) {
		if g := m.snapshot().Gates; len(g) != 0 {
			m.Fatalf("%+v", g)
		}
		m.throttle(store.Op{Cause: "too many", Scope: store.PerModel, Model: "opus"})
		want := store.PauseState{
			Scope: "model=opus", Phase: "paused", Until: m.now().Add(time.Minute), Since: m.now(), Consecutive: 1, Cause: "too many", Agent: "victim",
		}
		if g := m.onlyGate(); g != want {
			m.Errorf("%+v, want %+v", g, want)
		}
		m.sleep(time.Minute)
		if g := m.onlyGate(); g.Phase != "probing" {
			m.Errorf("%+v", g)
		}
	})
	s.test("reading changes nothing", spec(bucket(10, 1), per(slots(2), store.PerAgent)), func(m *member) {
		m.take(want("x", 1, 1))
		ids := m.line("aabbc", func(name string) request { return want(name, 1, 1) })
		for range 100 {
			m.pass(7 * time.Millisecond)
			m.snapshot()
		}
		m.inOrder(ids, "abcab")
	})
	s.test("lists are bounded", spec(slots(1)), func(m *member) {
		m.take(want("x", 1))
		for i := range store.MaxListed + 50 {
			m.queue(want(fmt.Sprint("agent", i), 1))
		}
		snap := m.snapshot()
		if len(snap.Queue) != store.MaxListed || len(snap.Callers) > store.MaxListed || snap.Waiting[1] != store.MaxListed+50 {
			m.Errorf("%d listed, %d callers, %d waiting", len(snap.Queue), len(snap.Callers), snap.Waiting[1])
		}
	})
	s.test("its time is the store's", spec(slots(1)), func(m *member) {
		m.sleep(time.Hour)
		if snap := m.snapshot(); snap.Now != m.now() || snap.Now.Sub(m.began) != time.Hour {
			m.Errorf("%v after the start, want an hour", snap.Now.Sub(m.began))
		}
	})
}

func leaks(s *suite) {
	limits := spec(
		guarded(rolling(40, time.Minute), store.GuardAuto), slots(6), per(bucket(5, 10), store.PerAgent),
		guarded(per(bucket(20, 20), store.PerModel), store.GuardStrict),
		store.Limit{Kind: store.Fixed, Size: 500, Window: time.Hour, Reset: Start},
	)
	clean := func(m *member) {
		m.Helper()
		snap := m.snapshot()
		if snap.InFlight != 0 || !slices.Equal(snap.Waiting, []int{0, 0, 0}) || len(snap.Queue) != 0 {
			m.Errorf("in flight %d, waiting %v", snap.InFlight, snap.Waiting)
		}
		for _, l := range snap.Limits {
			if l.Used != 0 || l.Outstanding != 0 {
				m.Errorf("limit %s of %q: used %d, outstanding %d; want none", l.Limit, l.Scope, l.Used, l.Outstanding)
			}
		}
	}
	// churn runs a mixed crowd. end decides what happens to ticket i.
	churn := func(m *member, end func(i int, id store.ID)) {
		m.Helper()
		n := 0
		for i := range 400 {
			r := want(fmt.Sprint("agent", i%7), 1+int64(i%3), int64(i%2), int64(i%4), int64(i%5), 1).
				class(uint8(i % 3)).model(fmt.Sprint("model", i%2)).ttl(time.Minute).wait(20 * time.Second).alive(5 * time.Second)
			if res := m.do(r.op); res.State == store.Granted {
				end(i, res.ID)
			}
			m.pass(50 * time.Millisecond)
			for ; n < len(m.grants); n++ {
				end(n, m.grants[n].ID)
			}
		}
	}
	s.test("when everything was closed", limits, func(m *member) {
		churn(m, func(i int, id store.ID) {
			m.answer(id, store.VerdictOK)
			m.close(id, int64(i%5), -1, -1, int64(i%7))
		})
		m.sleep(3 * time.Hour)
		clean(m)
	})
	s.test("when everyone dies", limits, func(m *member) {
		churn(m, func(int, store.ID) {})
		m.sleep(3 * time.Hour)
		clean(m)
	})
	s.test("when everything ends in another way", limits, func(m *member) {
		churn(m, func(i int, id store.ID) {
			switch i % 6 {
			case 0:
				m.close(id)
			case 1:
				m.spend(id)
			case 2:
				m.cancel(id)
			case 3:
				m.do(store.Op{Kind: store.OpRenew, ID: id, Wait: time.Second})
			case 4:
				m.answer(id, store.VerdictError)
			}
		})
		m.sleep(3 * time.Hour)
		clean(m)
	})
	s.test("scoped meters that stand for nothing are dropped", spec(per(bucket(5, 5), store.PerAgent)), func(m *member) {
		for i := range 2000 {
			m.close(m.take(want(fmt.Sprint("agent", i), 1)))
		}
		for range 200 {
			m.sleep(time.Second)
			m.take(want("a", 0))
		}
		if n := len(m.snapshot().Limits); n > 10 {
			m.Errorf("%d meters are kept", n)
		}
	})
}
