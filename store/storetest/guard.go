package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Times of the "each guard" tests: what happens to a ticket granted at the start, and when its charge must have come
// back.
const (
	answeredAfter = 700 * time.Millisecond
	closedAfter   = 900 * time.Millisecond
	ttl           = 20 * time.Second
	slackOfMinute = time.Second            // 1.5% would be less than the minimum
	briefOfSecond = 300 * time.Millisecond // time to arrive for a request without a response, on 1/s with a burst of 1
)

func guards(s *suite) {
	ends := map[string]func(m *member, id store.ID){
		"answered": func(m *member, id store.ID) {
			m.sleep(answeredAfter)
			m.answer(id, store.VerdictOK)
			m.sleep(closedAfter - answeredAfter)
			m.close(id)
		},
		"closed with no answer": func(m *member, id store.ID) {
			m.sleep(closedAfter)
			m.close(id)
		},
		"spent":          func(m *member, id store.ID) { m.spend(id) },
		"never heard of": func(m *member, _ store.ID) {},
	}
	for _, c := range []struct {
		guard store.Guard
		bound map[string]time.Duration
	}{
		{store.GuardAuto, map[string]time.Duration{
			"answered": answeredAfter, "closed with no answer": closedAfter, "spent": slackOfMinute, "never heard of": ttl,
		}},
		{store.GuardStrict, map[string]time.Duration{
			"answered": answeredAfter, "closed with no answer": ttl, "spent": ttl, "never heard of": ttl,
		}},
		{store.GuardOff, map[string]time.Duration{
			"answered": 0, "closed with no answer": 0, "spent": 0, "never heard of": 0,
		}},
	} {
		for how, bound := range c.bound {
			s.test("rolling/"+c.guard.String()+"/"+how, spec(guarded(rolling(1, time.Minute), c.guard)), func(m *member) {
				id := m.take(want("a", 1).ttl(ttl))
				next := m.queue(want("b", 1))
				ends[how](m, id)
				m.pass(2 * time.Minute)
				m.between(next, bound+time.Minute, bound+time.Minute+slice(time.Minute)+100*time.Millisecond)
			})
			s.test("bucket/"+c.guard.String()+"/"+how, spec(guarded(bucket(1, 1), c.guard)), func(m *member) {
				id := m.take(want("a", 1).ttl(ttl))
				next := m.queue(want("b", 1))
				ends[how](m, id)
				m.pass(time.Minute)
				if c.guard == store.GuardAuto && how == "spent" {
					bound = briefOfSecond
				}
				m.between(next, bound+time.Second, bound+time.Second+100*time.Millisecond)
			})
		}
	}
	s.test("a fixed window is charged until the ticket's arrival is bounded", spec(
		store.Limit{Kind: store.Fixed, Size: 1, Window: time.Hour, Reset: Start},
	), func(m *member) {
		reset := m.limit(0).Reset
		m.sleep(reset.Sub(m.now()) - 10*time.Second)
		id := m.take(want("a", 1))
		m.pass(time.Minute)
		m.refused(want("b", 1).try(), store.CodeLimit) // it may still arrive in the new window
		m.answer(id, store.VerdictOK)
		m.refused(want("b", 1).try(), store.CodeLimit) // and by now it may have arrived
		m.close(id)
		m.pass(time.Hour)
		m.take(want("b", 1))
	})
	s.test("limits of our own and the provider's are bounded apart", spec(
		guarded(bucket(1, 1), store.GuardAuto), bucket(1, 1),
	), func(m *member) {
		m.take(want("a", 1, 1))
		m.sleep(5 * time.Second)
		m.used(0, 1)
		m.used(1, 0)
	})
	smallLimits(s)
	slowAndQuick(s)
}

// smallLimits tests requests without a response on small limits. The store assumes that they arrive within 30% of the
// window. A refusal shows that they need longer, and restores the full slack.
func smallLimits(s *suite) {
	limits := spec(guarded(bucket(1, 1), store.GuardAuto))
	// apart checks how long after a spent request the next one goes.
	apart := func(m *member, d time.Duration) {
		m.Helper()
		m.sleep(time.Hour) // the pause, its ramp and all charges are over
		start := m.elapsed()
		m.spend(m.take(want("a", 1)))
		next := m.queue(want("b", 1))
		m.pass(time.Minute)
		m.between(next, start+d, start+d+100*time.Millisecond)
		m.close(next)
	}
	// proven ends a pause with a probe that succeeds.
	proven := func(m *member) {
		m.Helper()
		probe := m.sitOut()
		m.answer(probe, store.VerdictOK)
		m.close(probe)
	}
	s.test("a refusal restores the slack of spent requests", limits, func(m *member) {
		apart(m, briefOfSecond+time.Second)
		m.sleep(time.Hour)
		id := m.take(want("a", 1))
		m.answer(id, store.VerdictThrottled)
		m.close(id)
		proven(m)
		apart(m, time.Second+time.Second)
	})
	s.test("a refusal told without a ticket restores the slack of spent requests", limits, func(m *member) {
		apart(m, briefOfSecond+time.Second)
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled})
		proven(m)
		apart(m, time.Second+time.Second)
	})
	s.test("a refusal that is only observed restores nothing", limits, func(m *member) {
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled, Force: true})
		apart(m, briefOfSecond+time.Second)
	})
}

func slowAndQuick(s *suite) {
	limits := spec(guarded(rolling(40, time.Minute), store.GuardAuto))
	// after makes responses take this long to begin, often enough to determine the median.
	after := func(m *member, d time.Duration) {
		m.Helper()
		for range 16 {
			id := m.take(want("a", 1))
			m.sleep(d)
			m.answer(id, store.VerdictOK)
			m.close(id)
		}
		if got := m.snapshot().HeaderTime; got != d {
			m.Fatalf("header time is %v, want %v", got, d)
		}
		m.sleep(2 * time.Minute)
	}
	s.test("where headers are slow the slack bounds arrivals", limits, func(m *member) {
		after(m, 2*slackOfMinute+time.Millisecond)
		start := m.elapsed()
		m.take(want("a", 40))
		next := m.queue(want("b", 1))
		m.pass(2 * time.Minute)
		m.between(next, start+slackOfMinute+time.Minute, start+slackOfMinute+time.Minute+slice(time.Minute))
	})
	s.test("where headers are slow a quick answer still bounds earlier", limits, func(m *member) {
		after(m, 5*time.Second)
		start := m.elapsed()
		id := m.take(want("a", 40))
		m.sleep(300 * time.Millisecond)
		m.answer(id, store.VerdictOK)
		next := m.queue(want("b", 1))
		m.pass(2 * time.Minute)
		bound := start + 300*time.Millisecond
		m.between(next, bound+time.Minute, bound+time.Minute+slice(time.Minute))
	})
	s.test("a median of twice the slack is not slow yet", limits, func(m *member) {
		after(m, 2*slackOfMinute)
		m.take(want("a", 40))
		m.sleep(5 * time.Minute)
		m.used(0, 40)
	})
	s.test("when headers are quick again they alone count", limits, func(m *member) {
		after(m, 5*time.Second)
		after(m, 100*time.Millisecond)
		m.take(want("a", 40))
		m.sleep(5 * time.Minute)
		m.used(0, 40)
	})
	s.test("a strict guard does not care how slow headers are", spec(guarded(rolling(40, time.Minute), store.GuardStrict)), func(m *member) {
		after(m, 10*time.Second)
		m.take(want("a", 40))
		m.sleep(5 * time.Minute)
		m.used(0, 40)
	})
	s.test("a bucket's slow requests drain from the slack on", spec(guarded(bucket(10, 10), store.GuardAuto)), func(m *member) {
		after(m, 3*time.Second)
		start := m.elapsed()
		m.take(want("a", 10))
		next := m.queue(want("b", 10))
		m.pass(10 * time.Second)
		m.between(next, start+2*time.Second, start+2*time.Second+10*time.Millisecond)
	})
}

func settling(s *suite) {
	late := func(l store.Limit) store.Limit { l.Late = true; return guarded(l, store.GuardAuto) }
	for name, l := range map[string]store.Limit{
		"rolling": rolling(100, time.Minute),
		"bucket":  {Kind: store.Bucket, Size: 100, Burst: 100, Window: time.Hour, Guard: store.GuardOff},
		"fixed":   {Kind: store.Fixed, Size: 100, Window: time.Hour, Guard: store.GuardOff, Reset: Start.Add(-time.Minute)},
	} {
		for _, g := range []store.Guard{store.GuardOff, store.GuardAuto, store.GuardStrict} {
			s.test(name+"/"+g.String()+"/less is given back", spec(guarded(l, g)), func(m *member) {
				id := m.take(want("a", 60))
				m.answer(id, store.VerdictOK)
				m.close(id, 10)
				m.used(0, 10)
				m.take(want("a", 90))
			})
			s.test(name+"/"+g.String()+"/more is charged", spec(guarded(l, g)), func(m *member) {
				id := m.take(want("a", 60))
				m.answer(id, store.VerdictOK)
				m.close(id, 150)
				m.used(0, 150)
				if l := m.limit(0); l.Remaining != 0 {
					m.Errorf("%d remaining of an overrun limit, want 0", l.Remaining)
				}
				m.refused(want("a", 1).try(), store.CodeLimit)
			})
		}
	}
	s.test("what is not known stands as estimated", spec(rolling(100, time.Minute), rolling(100, time.Minute)), func(m *member) {
		id := m.take(want("a", 30, 40))
		m.close(id, -1, 50)
		m.used(0, 30)
		m.used(1, 50)
		id = m.take(want("a", 10, 10))
		m.close(id)
		m.used(0, 40)
		m.used(1, 60)
	})
	perAgent := rolling(100, time.Minute)
	perAgent.Per = store.PerAgent
	places := store.Limit{Kind: store.Concurrency, Size: 5}
	s.test("use that was not asked for is charged", spec(rolling(100, time.Minute), rolling(100, time.Minute), perAgent, places), func(m *member) {
		id := m.take(want("a", 1))
		m.answer(id, store.VerdictOK)
		m.close(id, -1, 100, 100, 3)
		m.used(0, 1)
		m.used(1, 100)
		m.used(3, 0) // a slot that was not taken is not in use
		m.refused(want("b", 1, 1).try(), store.CodeLimit)
		m.refused(want("a", 1, 0, 1).try(), store.CodeLimit)
		m.take(want("b", 1, 0, 100))
		m.pass(61 * time.Second)
		m.used(1, 0)
		m.take(want("a", 1, 100, 100))
	})
	s.test("an excess counts from the moment it is settled", spec(rolling(100, time.Minute)), func(m *member) {
		id := m.take(want("a", 60))
		m.sleep(30 * time.Second)
		m.close(id, 100)
		m.pass(31 * time.Second)
		m.used(0, 40)
		m.pass(30 * time.Second)
		m.used(0, 0)
	})
	s.test("an excess of places is not charged", spec(slots(5)), func(m *member) {
		id := m.take(want("a", 2))
		m.close(id, 4)
		m.used(0, 0)
	})
	s.test("late units stay outstanding until close", spec(late(rolling(100, time.Minute)), guarded(rolling(9, time.Minute), store.GuardAuto)), func(m *member) {
		id := m.take(want("a", 60, 1))
		m.sleep(time.Second)
		m.answer(id, store.VerdictOK)
		if a, b := m.limit(0).Outstanding, m.limit(1).Outstanding; a != 60 || b != 0 {
			m.Errorf("outstanding after the answer: %d and %d, want 60 and 0", a, b)
		}
		m.sleep(40 * time.Second)
		m.close(id, 80, -1)
		if a := m.limit(0); a.Outstanding != 0 || a.Used != 80 {
			m.Errorf("after close: outstanding %d, used %d; want 0 and 80", a.Outstanding, a.Used)
		}
		m.pass(59 * time.Second)
		m.used(0, 80)
		m.used(1, 0)
		m.pass(2 * time.Second)
		m.used(0, 0)
	})
	s.test("what a settlement frees lets the next one in", spec(rolling(100, time.Minute)), func(m *member) {
		id := m.take(want("a", 90))
		next := m.queue(want("b", 50))
		m.sleep(time.Second)
		m.close(id, 20)
		m.collect()
		m.exactly(next, time.Second)
	})
	s.test("use that is reported without an answer does not loosen a strict guard", spec(guarded(rolling(100, time.Minute), store.GuardStrict)), func(m *member) {
		id := m.take(want("a", 60).ttl(3 * time.Minute))
		m.close(id, 50)
		m.sleep(2 * time.Minute)
		m.used(0, 50)
		m.sleep(3 * time.Minute)
		m.used(0, 0)
	})
}
