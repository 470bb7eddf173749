package storetest

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/sluicehq/sluice/store"
)

// history reads what the pool remembers since a time. It skips the test if the pool keeps no history.
func (m *member) history(since store.Time) store.History {
	m.Helper()
	r, ok := m.pool.(store.Recorder)
	if !ok {
		m.Skip("this pool remembers nothing")
	}
	h, err := r.History(context.Background(), since)
	if err != nil {
		m.Fatal(err)
	}
	if h.Now != m.now() || h.Since < since {
		m.Errorf("now %v, covered since %v, of %v asked", h.Now.Sub(m.began), h.Since.Sub(m.began), since.Sub(m.began))
	}
	for _, p := range h.Periods {
		if len(p.Amounts) != len(h.Units) || p.Start%60_000_000 != 0 {
			m.Errorf("%+v, with the units %v", p, h.Units)
		}
	}
	return h
}

func (m *member) remembers(since store.Time, want ...store.Period) {
	m.Helper()
	got := m.history(since).Periods
	if len(got) != len(want) {
		m.Fatalf("%d periods, want %d:\n%+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i].PeakAll < got[i].Peak {
			m.Errorf("a peak of %d, and of %d with everybody's", got[i].Peak, got[i].PeakAll)
		}
		got[i].PeakAll = 0
		if !reflect.DeepEqual(got[i], want[i]) {
			m.Errorf("period %d is\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func remembering(s *suite) {
	minute := func(n store.Time) store.Time { return (Start/60_000_000 + n) * 60_000_000 }
	units := func(l store.Limit, unit string) store.Limit { l.Unit = unit; return l }
	sp := func() store.Spec {
		return spec(plenty(), units(plenty(), "tokens"), plenty(), units(slots(1000), "places"))
	}
	s.test("sends by agent, model and minute", sp(), func(m *member) {
		m.remembers(0)
		for _, r := range []request{
			want("b", 1), want("a", 1).model("opus"), want("a", 1).model("haiku"), want("a", 1).model("opus").again(),
		} {
			m.close(m.take(r))
		}
		m.sleep(40 * time.Second)
		m.close(m.take(want("a", 1).model("opus")))
		m.sleep(time.Minute)
		m.close(m.take(want("a", 1).model("opus")))
		want := []store.Period{
			{Agent: "a", Model: "haiku", Start: minute(0), Sent: 1, Peak: 2, Amounts: []int64{1, 0, 0}},
			{Agent: "a", Model: "opus", Start: minute(0), Sent: 2, Retried: 1, Peak: 3, Amounts: []int64{2, 0, 0}},
			{Agent: "b", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 0, 0}},
			{Agent: "a", Model: "opus", Start: minute(1), Sent: 1, Peak: 1, Amounts: []int64{1, 0, 0}},
			{Agent: "a", Model: "opus", Start: minute(2), Sent: 1, Peak: 1, Amounts: []int64{1, 0, 0}},
		}
		m.remembers(0, want...)
		m.remembers(Start, want...)
		m.remembers(minute(1), want[3:]...)
		m.remembers(minute(2)+30_000_000, want[4:]...)
		m.remembers(m.now().Add(time.Hour))
	})
	s.test("what became of them", sp(), func(m *member) {
		var ids []store.ID
		verdicts := []store.Verdict{
			store.VerdictOK, store.VerdictNone, store.VerdictThrottled, store.VerdictExhausted,
			store.VerdictError, store.VerdictOverloaded, store.VerdictBilling,
		}
		for range verdicts {
			ids = append(ids, m.take(want("a", 1)))
		}
		for i, v := range verdicts {
			m.sleep(10 * time.Second) // into the next minute: it counts where it was sent
			m.answer(ids[i], v)
			m.close(ids[i])
		}
		m.remembers(0, store.Period{Agent: "a", Start: minute(0), Sent: 7, Throttled: 2, Failed: 3, Peak: 7, Amounts: []int64{7, 0, 0}})
		if n := m.snapshot().Throttled7d; n != 2 {
			m.Errorf("%d refusals in a week", n)
		}
		m.sleep(6 * 24 * time.Hour)
		if n := m.snapshot().Throttled7d; n != 2 {
			m.Errorf("%d refusals in a week, six days later", n)
		}
		m.sleep(25 * time.Hour)
		if n := m.snapshot().Throttled7d; n != 0 {
			m.Errorf("%d refusals in a week, seven days and an hour later", n)
		}
	})
	s.test("what was used in the end, once for each unit", sp(), func(m *member) {
		h := m.history(0)
		if !reflect.DeepEqual(h.Units, []string{"requests", "tokens", "places"}) {
			m.Fatalf("units %v", h.Units)
		}
		less, more, gone, spent := want("a", 1, 100, 1, 1), want("b", 1, 100, 1, 1), want("c", 1, 100, 1, 1).ttl(time.Second), want("d", 1, 100)
		m.close(m.take(less), 1, 30, 1, 1)
		m.close(m.take(more), 1, 500, 1, 1)
		m.take(gone)
		m.spend(m.take(spent))
		id := m.take(want("e", 1, 100))
		m.answer(id, store.VerdictOK)
		m.sleep(2 * time.Second)
		m.close(id, -1, 7)
		m.remembers(0,
			store.Period{Agent: "a", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 30, 1}},
			store.Period{Agent: "b", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 500, 1}},
			store.Period{Agent: "c", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 100, 1}},
			store.Period{Agent: "d", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 100, 0}},
			store.Period{Agent: "e", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1, 7, 0}},
		)
	})
	s.test("what was not sent is not counted", spec(slots(1)), func(m *member) {
		m.cancel(m.take(want("a", 1).again()))
		m.remembers(0)
		held := m.take(want("b", 1))
		m.refused(want("a", 1).try(), store.CodeLimit)
		m.cancel(m.queue(want("a", 1)))
		m.queue(want("late", 1))
		m.sleep(10 * time.Second)
		m.close(held)
		m.sleep(5 * time.Second) // it is not collected
		m.remembers(0, store.Period{Agent: "b", Start: minute(0), Sent: 1, Peak: 1, Amounts: []int64{1}})
	})
	s.test("a renewed one is counted once, where it was granted last", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(50 * time.Second)
		if r := m.do(store.Op{Kind: store.OpRenew, ID: id}); r.State != store.Granted {
			m.Fatal(r)
		}
		m.remembers(0, store.Period{Agent: "a", Start: minute(1), Sent: 1, Peak: 1, Amounts: []int64{1}})
	})
	s.test("how long they waited", spec(bucket(1, 1)), func(m *member) {
		m.close(m.take(want("a", 1)))
		m.stream(want("a", 1), 1)
		m.pass(3500 * time.Millisecond)
		m.remembers(0, store.Period{Agent: "a", Start: minute(0), Sent: 4, Peak: 1, Waited: 3 * time.Second, Amounts: []int64{4}})
	})
	s.test("an answer to nobody is a refusal of the pool's", sp(), func(m *member) {
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled})
		m.remembers(0)
		if s := m.snapshot(); s.Throttled7d != 1 || s.Counters.Throttled != 1 {
			m.Errorf("%d in a week, %d in all", s.Throttled7d, s.Counters.Throttled)
		}
	})
	s.test("a limit that comes later brings its unit", spec(plenty()), func(m *member) {
		m.close(m.take(want("a", 1)))
		sp := spec(plenty(), units(plenty(), "tokens"))
		later := join(m.T, m.harness, sp)
		later.close(later.take(want("a", 1, 5)))
		later.remembers(0, store.Period{Agent: "a", Start: minute(0), Sent: 2, Peak: 2, Amounts: []int64{2, 5}})
	})
	s.test("there is an end to what is remembered, and it says so", spec(plenty()), func(m *member) {
		const agents, minutes = 1000, 40
		m.history(0)
		for range minutes {
			ops := make([]store.Op, agents)
			for i := range ops {
				ops[i] = want(fmt.Sprint("agent", i), 1).op
			}
			res := m.apply(ops...)
			for i := range ops {
				ops[i] = store.Op{Kind: store.OpClose, ID: res[i].ID}
			}
			m.apply(ops...)
			m.sleep(time.Minute)
		}
		h := m.history(0)
		count := map[store.Time]int{}
		for _, p := range h.Periods {
			count[p.Start] += int(p.Sent)
		}
		for n := range store.Time(minutes) {
			if at := minute(n); at >= h.Since && count[at] != agents {
				m.Errorf("%d of %d are remembered of minute %d, which is covered", count[at], agents, n)
			}
		}
		if h.Since == 0 && len(h.Periods) != agents*minutes || h.Since > m.now().Add(-15*time.Minute) {
			m.Errorf("%d periods, covered since %v", len(h.Periods), h.Since.Sub(m.began))
		}
		if got := m.history(m.now().Add(-5 * time.Minute)); got.Since != m.now().Add(-5*time.Minute) {
			m.Errorf("covered since %v", got.Since.Sub(m.now()))
		}
		if s := m.snapshot(); s.Counters.Sent != agents*minutes {
			m.Errorf("%d sent", s.Counters.Sent)
		}
	})
}

// others tests use of a quota outside Sluice.
func others(s *suite) {
	answer := func(m *member, id store.ID, size, left int64) {
		m.Helper()
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, size, left, unstated)})
		m.close(id)
	}
	stands := func(m *member, used, outside int64) {
		m.Helper()
		l := m.limit(0)
		if l.Used != used || l.Outside != outside || l.Outside > l.Used {
			m.Errorf("%v after the start: %d used, %d of it by others; want %d and %d", m.elapsed(), l.Used, l.Outside, used, outside)
		}
	}
	rough := func(l store.Limit) store.Limit { l.Estimated = true; return l }
	window := guarded(rolling(100, time.Minute), store.GuardAuto)
	s.test("their use of a rolling window is charged for a window", spec(window), func(m *member) {
		id := m.take(want("a", 10))
		m.sleep(100 * time.Millisecond)
		answer(m, id, 100, 60)
		stands(m, 40, 30)
		m.refused(want("a", 61).try(), store.CodeLimit)
		waits := m.queue(want("a", 61))
		m.sleep(time.Minute)
		m.pass(time.Second)
		m.between(waits, time.Minute+100*time.Millisecond, time.Minute+100*time.Millisecond+slice(time.Minute))
		stands(m, 61, 0)
	})
	s.test("what is seen again is not charged again", spec(window), func(m *member) {
		for range 5 {
			answer(m, m.take(want("a", 1)), 100, 60)
		}
		stands(m, 40+4, 39) // each time 60 are left: one more of ours could mean one less of theirs, but that is unknown
	})
	s.test("our own use explains what it can", spec(window), func(m *member) {
		a, b := m.take(want("a", 10)), m.take(want("a", 20))
		answer(m, a, 100, 90)
		answer(m, b, 100, 70)
		stands(m, 30, 0)
	})
	s.test("a slow answer counted what has come back since", spec(window), func(m *member) {
		for range 5 {
			m.close(m.take(want("a", 10)))
		}
		m.sleep(55 * time.Second)
		id := m.take(want("a", 10))
		m.sleep(6 * time.Second) // the fifty have come back meanwhile
		answer(m, id, 100, 40)
		stands(m, 10, 0)
	})
	s.test("and shows what was more than that", spec(window), func(m *member) {
		for range 5 {
			m.close(m.take(want("a", 10)))
		}
		m.sleep(55 * time.Second)
		id := m.take(want("a", 10))
		m.sleep(6 * time.Second)
		answer(m, id, 100, 15)
		stands(m, 35, 25)
	})
	s.test("what they used comes back bit by bit", spec(window), func(m *member) {
		answer(m, m.take(want("a", 1)), 100, 69) // 30 of others
		m.sleep(40 * time.Second)
		answer(m, m.take(want("a", 1)), 100, 58) // 10 more
		stands(m, 42, 40)
		m.sleep(21 * time.Second)
		if l := m.limit(0); l.Used != 11 || l.Outside < 10 || l.Outside > l.Used { // how much of it is theirs is only approximate
			m.Errorf("%d used, %d of it by others; want 11 and about 10", l.Used, l.Outside)
		}
		m.sleep(40 * time.Second)
		stands(m, 0, 0)
	})
	s.test("their use of a bucket drains", spec(guarded(bucket(10, 100), store.GuardAuto)), func(m *member) {
		id := m.take(want("a", 10))
		answer(m, id, 100, 50)
		stands(m, 50, 40)
		m.refused(want("a", 51).try(), store.CodeLimit)
		m.sleep(2 * time.Second)
		stands(m, 30, 30)
		m.sleep(3 * time.Second)
		stands(m, 0, 0)
	})
	s.test("a slow answer counted what has drained since", spec(guarded(bucket(10, 100), store.GuardAuto)), func(m *member) {
		m.close(m.take(want("a", 50)))
		id := m.take(want("a", 10))
		m.sleep(3 * time.Second)
		answer(m, id, 100, 40)
		stands(m, 30, 0)
	})
	s.test("and shows what was more than that, of a bucket", spec(guarded(bucket(10, 100), store.GuardAuto)), func(m *member) {
		m.close(m.take(want("a", 50)))
		id := m.take(want("a", 10))
		m.sleep(3 * time.Second)
		answer(m, id, 100, 20)
		stands(m, 50, 20)
	})
	s.test("of a bucket that is smaller than was thought they cannot have used more than it holds", spec(guarded(bucket(1000, 1000), store.GuardAuto)), func(m *member) {
		m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 5, 0, unstated)})
		if l := m.limit(0); l.Size != 5 || l.Used != 5 || l.Outside != 5 {
			m.Errorf("size %d, used %d, outside %d; want 5 each", l.Size, l.Used, l.Outside)
		}
	})
	s.test("rough costs prove nothing of others", spec(rough(window)), func(m *member) {
		answer(m, m.take(want("a", 10)), 100, 60)
		stands(m, 40, 0)
		m.refused(want("a", 61).try(), store.CodeLimit)
		m.sleep(time.Minute + slice(time.Minute))
		stands(m, 0, 0)
	})
	s.test("nor on a bucket", spec(rough(guarded(bucket(10, 100), store.GuardAuto))), func(m *member) {
		answer(m, m.take(want("a", 10)), 100, 60)
		stands(m, 40, 0)
	})
	s.test("nor on a stock", spec(rough(stock(100, time.Hour))), func(m *member) {
		m.sleep(2 * time.Second) // before that it may be about the previous window
		answer(m, m.take(want("a", 10)), 100, 60)
		stands(m, 40, 0)
	})
	s.test("they explain a refusal on a flow too", spec(window), func(m *member) {
		id := m.take(want("a", 10))
		m.sleep(100 * time.Millisecond)
		m.answered(store.Op{ID: id, Verdict: store.VerdictThrottled, Observed: states(0, 100, 0, unstated)})
		if l := m.limit(0); l.Widened || l.Cut != 0 || l.Outside != 90 {
			m.Errorf("%+v", l)
		}
	})
	s.test("they are not waited for longer than a window", spec(window), func(m *member) {
		answer(m, m.take(want("a", 1)), 100, 0)
		id := m.queue(want("a", 50))
		r := m.poll(id)
		if r.Reason.Code != store.CodeLimit || r.Reason.At.Sub(m.now()) > time.Minute+slice(time.Minute) {
			m.Errorf("%v until %v", r.Reason.Code, r.Reason.At.Sub(m.now()))
		}
		m.keptUntil(id, store.CodeLimit, 0, r.Reason.At)
	})
	s.test("nobody learns of limits of our own", spec(per(window, store.PerUser)), func(m *member) {
		answer(m, m.take(want("a", 1).user("u")), 100, 0)
		stands(m, 1, 0)
	})
}
