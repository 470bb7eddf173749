package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func touching() store.Op { return store.Op{Kind: store.OpTouch, TTL: time.Minute} }

// touch sends a member's report and checks the share in the result.
func (m *member) touch(share int64) {
	m.Helper()
	m.touchAs(touching(), share)
}

func (m *member) touchAs(op store.Op, share int64) {
	m.Helper()
	if r := m.do(op); r.State != store.Granted || r.Share != share {
		m.Errorf("%v after the start: the touch was %v, a share of one in %d, want one in %d", m.elapsed(), r.State, r.Share, share)
	}
}

// withheld checks what is withheld from a limit.
func (m *member) withheld(i int, want int64) {
	m.Helper()
	l := m.limit(i)
	if l.Withheld != want || l.Remaining != max(l.Size-l.Used-want, 0) {
		m.Errorf("%v after the start: %d withheld and %d remaining of limit %d, want %d withheld", m.elapsed(), l.Withheld, l.Remaining, i, want)
	}
}

// inTouch tests members that may be cut off.
func inTouch(s *suite) {
	s.test("what a silent member may use is withheld until its lease and a window are over", spec(rolling(10, 10*time.Second)), func(m *member) {
		m.touch(2)
		m.withheld(0, 0)
		m.sleep(4500 * time.Millisecond)
		m.withheld(0, 0)
		m.sleep(500 * time.Millisecond)
		m.withheld(0, 5)
		m.take(want("a", 5))
		m.refused(want("a", 1).try(), store.CodeLimit)
		m.sleep(64 * time.Second)
		m.withheld(0, 5)
		m.take(want("a", 5))
		waits := m.queue(want("a", 5))
		m.pass(4 * time.Second)
		m.withheld(0, 0)
		m.between(waits, 70*time.Second, 71*time.Second)
		if n := len(m.snapshot().Members); n != 0 {
			m.Errorf("%d members are remembered", n)
		}
	})
	s.test("one that is heard of again has its share back at once, and so have the others", spec(rolling(10, 10*time.Second)), func(m *member) {
		m.touch(2)
		m.sleep(6 * time.Second)
		waits := m.queue(want("a", 8))
		if l := m.snapshot().Members; len(l) != 1 || !l[0].Silent || l[0].Share != 2 || l[0].Expires.Sub(l[0].Touched) != time.Minute {
			m.Errorf("members: %+v", l)
		}
		m.touch(2)
		m.collect()
		m.exactly(waits, 6*time.Second)
		if l := m.snapshot().Members; len(l) != 1 || l[0].Silent {
			m.Errorf("members: %+v", l)
		}
	})
	s.test("one that leaves gives its share back, also by closing", spec(rolling(10, 10*time.Second)), func(m *member) {
		other := join(m.T, m.harness, spec(rolling(10, 10*time.Second)))
		m.touch(2)
		other.touch(3)
		m.sleep(6 * time.Second)
		m.withheld(0, 8)
		m.ends(store.Op{Kind: store.OpTouch, Spent: true})
		m.ends(store.Op{Kind: store.OpTouch, Spent: true}) // a second time
		m.withheld(0, 3)
		if err := other.pool.Close(); err != nil {
			m.Fatal(err)
		}
		m.withheld(0, 0)
	})
	s.test("shares are equal, and never more than the whole whoever knows of them", spec(plenty()), func(m *member) {
		other, third := join(m.T, m.harness, spec(plenty())), join(m.T, m.harness, spec(plenty()))
		m.touch(2)
		other.touch(3)
		third.touch(6) // what is left: the first two may believe that they have a half and a third
		m.touch(4)     // it counts with a half until it confirms the new share
		other.touch(4) // likewise
		third.touch(6) // so nothing is free yet
		known := touching()
		known.Share = 4
		m.touchAs(known, 4)
		other.touchAs(known, 4)
		third.touch(4)
	})
	s.test("a touch that was stuck does nothing", spec(rolling(10, 10*time.Second)), func(m *member) {
		m.touch(2)
		late := touching()
		late.Until = m.now().Add(time.Second)
		m.sleep(time.Second)
		m.touchAs(late, 2)
		m.sleep(6 * time.Second)
		if r := m.do(late); r.State != store.Refused || r.Reason.Code != store.CodeDeadline {
			m.Errorf("it was %v (%v)", r.State, r.Reason.Code)
		}
		m.withheld(0, 5)
	})
	s.test("a bucket gives the others a part of its burst and its rate", spec(bucket(4, 8)), func(m *member) {
		m.touch(2)
		m.sleep(5 * time.Second)
		m.withheld(0, 4)
		for range 4 {
			m.take(want("a", 1))
		}
		began := m.elapsed()
		first, second := m.queue(want("a", 1)), m.queue(want("a", 1))
		m.pass(2 * time.Second)
		m.exactly(first, began+500*time.Millisecond)
		m.exactly(second, began+time.Second)
	})
	s.test("places are withheld until the lease is over", spec(slots(4), plenty()), func(m *member) {
		m.touch(2)
		m.sleep(5 * time.Second)
		m.take(want("a", 2))
		waits := m.queue(want("a", 1).wait(2 * time.Minute))
		m.pass(56 * time.Second)
		m.between(waits, 60*time.Second, 61*time.Second)
	})
	s.test("of long windows, and of limits of somebody's own, nothing is withheld", spec(
		rolling(10, time.Hour), per(rolling(10, time.Minute), store.PerAgent), rolling(10, 10*time.Minute),
	), func(m *member) {
		m.touch(2)
		m.sleep(5 * time.Second)
		m.take(want("a", 10, 10, 5))
		m.withheld(0, 0)
		m.withheld(1, 0)
		m.withheld(2, 5)
	})
	s.test("what is kept of a small limit rounds down", spec(slots(1)), func(m *member) {
		m.touch(2)
		m.sleep(5 * time.Second)
		m.take(want("a", 1))
	})
	s.test("a touch that makes no sense is refused", spec(plenty()), func(m *member) {
		for _, op := range []store.Op{{TTL: -1}, {TTL: 25 * time.Hour}, {Share: -1}, {Until: -1}} {
			op.Kind = store.OpTouch
			if r := m.do(op); r.State != store.Refused || r.Reason.Code != store.CodeInvalid {
				m.Errorf("%+v was %v (%v)", op, r.State, r.Reason.Code)
			}
		}
		if n := len(m.snapshot().Members); n != 0 {
			m.Errorf("%d members", n)
		}
	})
}

// forgotten tests a store that has lost its memory.
func forgotten(s *suite) {
	forget := store.Op{Kind: store.OpForget}
	provider := func(l store.Limit) store.Limit { return guarded(l, store.GuardAuto) }
	s.test("everyone is held for a moment, and then goes on with care", spec(slots(100)), func(m *member) {
		m.ends(forget)
		m.refused(want("a", 1).try(), store.CodePaused)
		if g := m.snapshot().Gates; len(g) != 1 || g[0].Cause != "the store lost its memory" || g[0].Until != m.now().Add(3*time.Second) {
			m.Errorf("gates: %+v", g)
		}
		m.ends(store.Op{Kind: store.OpResume}) // this pause cannot be ended by hand
		waits := m.queue(want("a", 1))
		m.sleep(time.Second)
		m.ends(forget) // the same loss, noticed by another member
		m.pass(2 * time.Second)
		m.exactly(waits, 3*time.Second)
	})
	s.test("what is held is said by force, and is held again", spec(slots(2), provider(rolling(10, 10*time.Second))), func(m *member) {
		m.ends(forget)
		id := m.take(want("a", 1, 3).number(7).forced())
		m.take(want("a", 1, 1).number(8).forced())
		m.used(0, 2)
		m.used(1, 14)
		if id.N != 7 {
			m.Errorf("it is ticket %d", id.N)
		}
		m.state(id, store.Granted)
		if r := m.do(want("a", 1, 3).number(7).forced().op); r.State != store.Granted { // a second time
			m.Errorf("it is %v", r.State)
		}
		m.used(1, 14)
		waits := m.queue(want("b", 1))
		m.pass(4 * time.Second)
		m.state(waits, store.Waiting)
		m.answer(id, store.VerdictOK)
		m.close(id)
		m.collect()
		m.exactly(waits, 4*time.Second) // it is the probe; forced requests are not
	})
	s.test("what is left of a window counts as spent for one", spec(provider(rolling(10, 10*time.Second))), func(m *member) {
		id := m.take(want("a", 4))
		m.answer(id, store.VerdictOK)
		m.close(id)
		m.sleep(5 * time.Second)
		m.ends(forget)
		m.used(0, 10)
		if l := m.limit(0); l.Outside != 0 {
			m.Errorf("%d are said to be others'", l.Outside)
		}
		few, rest := m.queue(want("a", 4)), m.queue(want("a", 6))
		m.pass(20 * time.Second)
		m.between(few, 10*time.Second, 10*time.Second+slice(10*time.Second))
		m.between(rest, 16_250*time.Millisecond, 16_250*time.Millisecond+2*slice(10*time.Second)) // a window and the longest slack
	})
	s.test("a bucket is full, a window is so until its reset", spec(
		store.Limit{Kind: store.Bucket, Size: 1, Burst: 5, Window: time.Second},
		store.Limit{Kind: store.Fixed, Size: 5, Window: time.Minute, Reset: Start.Add(-30 * time.Second)},
	), func(m *member) {
		m.ends(forget)
		m.used(0, 5)
		m.used(1, 5)
		drop, window := m.queue(want("a", 5)), m.queue(want("b", 0, 5))
		m.pass(40 * time.Second)
		m.between(drop, 6*time.Second, 6100*time.Millisecond)
		m.between(window, 31_200*time.Millisecond, 31_200*time.Millisecond)
	})
	s.test("also one that is not known yet", spec(per(provider(rolling(10, 10*time.Second)), store.PerModel), provider(rolling(0, 10*time.Second))), func(m *member) {
		m.ends(forget)
		m.sleep(4 * time.Second)
		m.refused(want("a", 1).model("new").try(), store.CodeLimit)
		m.ends(store.Op{Kind: store.OpObserve, Observed: states(1, 20, unstated, unstated)})
		m.used(1, 20)
	})
	s.test("long windows, and limits of our own, are left alone", spec(
		provider(rolling(10, time.Hour)), rolling(10, time.Minute), per(provider(rolling(10, time.Minute)), store.PerAgent),
	), func(m *member) {
		m.ends(forget)
		m.sleep(3 * time.Second)
		m.take(want("a", 10, 10, 10))
	})
}
