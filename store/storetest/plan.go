package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// planned returns a window of a subscription.
func planned(size int64, window time.Duration) store.Limit {
	l := stock(size, window)
	l.Plan, l.Estimated, l.Late = true, true, true
	return l
}

func planWindows(s *suite) {
	const hour = time.Hour
	end := Start.Add(hour + doubt)
	sp := func() store.Spec { return paced(spec(planned(1000, hour))) }
	// While lower classes are eased in, they leave all of it at first, and four fifths after a twentieth of the
	// window.
	const eased = hour / 20
	easedUntil := func(left int64) store.Time { return sinks(1000, 5*eased, Start.Add(doubt+5*eased), left) }
	word := func(m *member, used int64) {
		m.Helper()
		m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 1000, 1000-used, hour-m.elapsed())})
	}
	used := func(m *member, want int64) {
		m.Helper()
		if l := m.limit(0); l.Used != want || l.Outside != 0 {
			m.Fatalf("%d used, %d of it by others, want %d", l.Used, l.Outside, want)
		}
	}
	s.test("the provider's word counts, whatever the ledger says", sp(), func(m *member) {
		id := m.take(want("b", 100).class(0))
		m.answer(id, store.VerdictOK)
		m.close(id, 300)
		used(m, 300)
		word(m, 120)
		used(m, 120)
		word(m, 500)
		used(m, 500)
		held := m.take(want("b", 50).class(0))
		word(m, 400)
		used(m, 450) // requests in flight are not included
		m.close(held, 20)
		used(m, 420)
		word(m, 410)
		used(m, 410)
	})
	s.test("a reset that comes closer takes nothing into the next window", sp(), func(m *member) {
		m.sleep(30 * time.Minute)
		word(m, 1000)
		m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 1000, 0, 2*time.Second)})
		used(m, 1000)
		m.sleep(2*time.Second + 2*doubt)
		used(m, 0)
		m.take(want("b", 10))
	})
	models := store.Limit{Unit: "requests", Kind: store.Rolling, Size: 100, Window: time.Minute, Per: store.PerModel}
	s.test("agents have their part of requests, not of windows", spec(models, planned(1000, hour)), func(m *member) {
		m.take(want("b", 1, 1).model("opus"))
		if a := m.snapshot().Agents; len(a) != 1 || a[0].Allocated != 100 {
			m.Errorf("the agents are %+v, want one that has 100", a)
		}
	})
	s.test("lower classes are eased in after a reset", sp(), func(m *member) {
		m.take(want("b", 1))
		m.kept(want("b", 10), store.CodePace, easedUntil(989))
		m.kept(want("c", 99).class(2), store.CodePace, easedUntil(900))
		m.take(want("a", 10).class(0)) // not the highest
	})
	s.test("without a person they take it all", sp(), func(m *member) {
		m.sleep(eased + doubt)
		m.take(want("b", 1000))
	})
	s.test("with a person they are paced", sp(), func(m *member) {
		m.sleep(eased + doubt)
		m.beat("a", 0)
		m.take(want("b", 240)) // 95% of the window is left: of 800 they leave 760
		m.kept(want("b", 10), store.CodePace, sinks(800, hour, end, 750))
		m.take(want("a", 700).class(0))
	})
	s.test("a person that has used it is expected again", sp(), func(m *member) {
		m.sleep(eased + doubt)
		id := m.take(want("a", 0).class(0)) // charged when it is over
		m.answer(id, store.VerdictOK)
		m.close(id, 10)
		m.sleep(10 * time.Minute) // no agent is live
		m.kept(want("b", 500), store.CodePace, sinks(800, hour, end, 490))
	})
	s.test("pacing can be off", spec(planned(1000, hour)), func(m *member) {
		m.beat("a", 0)
		m.take(want("b", 1000))
	})
	two := func() store.Spec {
		week := planned(1000, 10*hour)
		return paced(spec(week, planned(1000, hour)))
	}
	s.test("who uses the longer window is expected in the shorter one", two(), func(m *member) {
		m.sleep(10*hour/40 + doubt) // easing in takes at most a quarter of an hour
		id := m.take(want("a", 0).class(0))
		m.answer(id, store.VerdictOK)
		m.close(id, 10, 10)
		m.sleep(hour) // the shorter one has been reset
		m.take(want("b", 1, 300))
		m.refused(want("b", 1, 300).try(), store.CodePace)
	})
	s.test("after a window that was used up they come back one after the other", sp(), func(m *member) {
		m.sleep(30 * time.Minute)
		word(m, 1000)
		var all []*stream
		for _, agent := range []string{"b", "c", "d", "e"} {
			all = append(all, m.stream(want(agent, 10), 3))
		}
		id := m.take(want("a", 0).class(0)) // the highest class learns what the provider states
		m.close(id)
		granted := func() (n int) {
			for _, st := range all {
				n += st.granted
			}
			return n
		}
		m.sleep(30*time.Minute - step)
		m.pass(step)
		if n := granted(); n != 0 {
			m.Fatalf("%d went before the reset", n)
		}
		m.pass(10 * time.Second)
		if n := granted(); n < 1 || n > 3 {
			m.Errorf("%d went in the first 10 s after the reset, want about one in 9 s", n)
		}
		m.pass(time.Minute)
		if n := granted(); n < 6 || n > 10 {
			m.Errorf("%d went in the first 70 s after the reset, want about one in 9 s", n)
		}
	})
}
