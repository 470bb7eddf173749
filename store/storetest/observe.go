package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// states returns an observation of one limit. Use unstated for values that are not stated.
func states(limit int, size, remaining int64, resetIn time.Duration) []store.Observed {
	return []store.Observed{{Limit: place(limit), Size: size, Remaining: remaining, ResetIn: resetIn}}
}

const unstated = -1

func observations(s *suite) {
	hour := func(size int64) store.Limit { return store.Limit{Kind: store.Fixed, Size: size, Window: time.Hour} }
	observe := func(m *member, o []store.Observed) {
		m.Helper()
		m.ends(store.Op{Kind: store.OpObserve, Observed: o})
	}
	s.test("a size is learned", spec(hour(0)), func(m *member) {
		m.take(want("a", 3))
		observe(m, states(0, 10, unstated, unstated))
		if l := m.limit(0); l.Size != 10 || l.Used != 3 || l.Remaining != 7 {
			m.Errorf("size %d, used %d, remaining %d; want 10, 3, 7", l.Size, l.Used, l.Remaining)
		}
		m.refused(want("a", 11), store.CodeCapacity)
	})
	s.test("a configured size caps what is learned", spec(hour(10)), func(m *member) {
		observe(m, states(0, 100, unstated, unstated))
		if l := m.limit(0); l.Size != 10 {
			m.Errorf("size %d, want 10", l.Size)
		}
		observe(m, states(0, 8, unstated, unstated))
		if l := m.limit(0); l.Size != 8 {
			m.Errorf("size %d, want 8", l.Size)
		}
		observe(m, states(0, 9, unstated, unstated))
		if l := m.limit(0); l.Size != 9 {
			m.Errorf("size %d, want 9: the provider has changed its mind", l.Size)
		}
	})
	bucket := store.Limit{Kind: store.Bucket, Window: time.Minute}
	s.test("a bucket's window is learned from limit, remaining and reset", spec(bucket), func(m *member) {
		id := m.take(want("a", 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 10_000, 9_999, 8640*time.Millisecond)})
		if l := m.limit(0); l.Kind != store.Bucket || l.Window != 24*time.Hour || l.Size != 10_000 {
			m.Errorf("%d in %v as %v, want 10000 in a day as a bucket", l.Size, l.Window, l.Kind)
		}
	})
	s.test("a bucket that answers contradict is counted as a rolling window", spec(bucket), func(m *member) {
		id := m.take(want("a", 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 10, 9, time.Minute)})
		if l := m.limit(0); l.Kind != store.Rolling || l.Window != time.Minute || l.Used != 1 || l.Outside != 0 {
			m.Errorf("%d used, %d of it by others, in %v as %v; want 1 in a minute as a rolling window", l.Used, l.Outside, l.Window, l.Kind)
		}
	})
	guess := hour(10)
	guess.SizeIsDefault = true
	s.test("a size that is a guess gives way to what is stated", spec(guess), func(m *member) {
		m.refused(want("a", 11), store.CodeCapacity)
		observe(m, states(0, 100, unstated, unstated))
		if l := m.limit(0); l.Size != 100 {
			m.Errorf("size %d, want 100", l.Size)
		}
		join(m.T, m.harness, spec(guess)) // another member with a default size
		if l := m.limit(0); l.Size != 100 {
			m.Errorf("size %d, want 100 still", l.Size)
		}
		observe(m, states(0, 8, unstated, unstated))
		if l := m.limit(0); l.Size != 8 {
			m.Errorf("size %d, want 8", l.Size)
		}
	})
	s.test("a bucket with a burst of its own never becomes a window", spec(
		store.Limit{Kind: store.Bucket, Size: 1, Burst: 11, Window: time.Second},
	), func(m *member) {
		m.close(m.take(want("a", 3)))
		m.sleep(1500 * time.Millisecond)
		id := m.take(want("a", 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 11, 7, unstated)}) // 4 used: as a window would count
		m.close(id)
		if l := m.limit(0); l.Kind != store.Bucket {
			m.Errorf("it is counted as %v", l.Kind)
		}
		m.sleep(time.Minute)
		m.take(want("a", 11)) // more than a window of 1 could hold
	})
	s.test("a ticket's answer teaches its own scope", spec(per(hour(0), store.PerModel), plenty()), func(m *member) {
		id := m.take(want("a", 1, 1).model("opus"))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 5, unstated, unstated)})
		m.refused(want("a", 6, 1).model("opus"), store.CodeCapacity)
		m.take(want("a", 6, 1).model("haiku"))
		m.ends(store.Op{Kind: store.OpObserve, Model: "haiku", Observed: states(0, 7, unstated, unstated)})
		m.refused(want("a", 8, 1).model("haiku"), store.CodeCapacity)
	})
	s.test("a learned size is not forgotten when nothing uses it", spec(per(hour(0), store.PerModel), plenty()), func(m *member) {
		m.ends(store.Op{Kind: store.OpObserve, Model: "opus", Observed: states(0, 5, unstated, unstated)})
		for range 50 {
			m.sleep(time.Hour)
			m.close(m.take(want("a", 1, 1).model("haiku")))
		}
		m.refused(want("a", 6, 1).model("opus"), store.CodeCapacity)
	})
	s.test("the provider knows nothing of limits of our own", spec(per(rolling(5, time.Minute), store.PerAgent)), func(m *member) {
		id := m.take(want("a", 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 2, 0, unstated)})
		m.take(want("a", 4))
	})
	s.test("a learned size lets in those it has room for", spec(rolling(2, time.Minute), hour(0)), func(m *member) {
		m.take(want("a", 2, 1))
		m.queue(want("a", 1, 1))
		observe(m, states(0, 100, unstated, unstated))
		m.collect()
		if len(m.grants) != 0 {
			m.Error("a configured limit was widened")
		}
	})
	s.test("a reset is learned", spec(hour(5)), func(m *member) {
		id := m.take(want("a", 5))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 5, 0, 10*time.Minute)})
		m.close(id)
		next := m.queue(want("b", 5))
		m.pass(11 * time.Minute)
		m.exactly(next, 10*time.Minute+1200*time.Millisecond) // at the end of the doubt
	})
	s.test("a tighter statement narrows the doubt", spec(hour(5)), func(m *member) {
		observe(m, []store.Observed{{Limit: place(0), Size: 5, Remaining: 5, ResetIn: 10 * time.Minute, Slop: 2 * time.Second}})
		observe(m, []store.Observed{{Limit: place(0), Size: 5, Remaining: 5, ResetIn: 10 * time.Minute, Slop: 100 * time.Millisecond}})
		if left := m.limit(0).Reset.Sub(m.now()); left != 10*time.Minute+100*time.Millisecond {
			m.Errorf("the reset is over in %v, want 10m0.1s", left)
		}
	})
	s.test("until a reset is known the window is kept as a rolling one", spec(hour(5)), func(m *member) {
		id := m.take(want("a", 5))
		m.answer(id, store.VerdictOK)
		m.close(id)
		next := m.queue(want("b", 5))
		m.pass(time.Hour + time.Minute)
		m.between(next, time.Hour, time.Hour+slice(time.Hour))
	})
	s.test("what others use is found out and charged until the reset", spec(hour(100)), func(m *member) {
		id := m.take(want("a", 10))
		m.answered(store.Op{ID: id, Verdict: store.VerdictOK, Observed: states(0, 100, 60, 10*time.Minute)})
		m.close(id)
		if l := m.limit(0); l.Used != 40 || l.Outside != 30 || l.Remaining != 60 {
			m.Errorf("used %d, outside %d, remaining %d; want 40, 30, 60", l.Used, l.Outside, l.Remaining)
		}
		m.refused(want("a", 61).try(), store.CodeLimit)
		m.sleep(11 * time.Minute)
		if l := m.limit(0); l.Used != 0 || l.Outside != 0 {
			m.Errorf("used %d, outside %d after the reset; want none", l.Used, l.Outside)
		}
	})
	s.test("a remaining that our own use explains teaches nothing", spec(hour(100)), func(m *member) {
		a, b := m.take(want("a", 10)), m.take(want("a", 20))
		m.answered(store.Op{ID: a, Verdict: store.VerdictOK, Observed: states(0, 100, 90, 10*time.Minute)})
		m.answered(store.Op{ID: b, Verdict: store.VerdictOK, Observed: states(0, 100, 70, 10*time.Minute)})
		if l := m.limit(0); l.Used != 30 || l.Outside != 0 {
			m.Errorf("used %d, outside %d; want 30 and none", l.Used, l.Outside)
		}
	})
	s.test("nonsense is ignored, field by field", spec(hour(100)), func(m *member) {
		m.take(want("a", 10))
		for _, o := range []store.Observed{
			{Size: 1}, {Limit: place(1), Size: 1}, {Limit: "other", Size: 1},
			{Size: -5, Remaining: -1, ResetIn: -1}, {Size: store.MaxAmount + 1, Remaining: -1, ResetIn: -1},
			{Size: 0, Remaining: 0, ResetIn: -1}, {Size: -1, Remaining: -1, ResetIn: 1000 * time.Hour},
			{Size: 100, Remaining: 200, ResetIn: -1},
		} {
			observe(m, []store.Observed{o})
		}
		if l := m.limit(0); l.Size != 100 || l.Used != 10 || l.Outside != 0 || l.Reset != 0 {
			m.Errorf("%+v", l)
		}
	})
	s.test("an outside use explains a refusal", spec(hour(100)), func(m *member) {
		id := m.take(want("a", 10))
		m.sleep(time.Second)
		m.answered(store.Op{ID: id, Verdict: store.VerdictThrottled, Observed: states(0, 100, 0, 10*time.Minute)})
		if l := m.limit(0); l.Slack != 30*time.Second {
			m.Errorf("slack %v, want 30s: somebody else used the quota up", l.Slack)
		}
	})
}
