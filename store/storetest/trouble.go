package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// troubles tests requests that the provider does not serve.
func troubles(s *suite) {
	unreachable := func(why string) store.Op {
		return store.Op{Kind: store.OpObserve, Verdict: store.VerdictUnreachable, Cause: why}
	}
	is := func(m *member, want store.Trouble) {
		m.Helper()
		if got := m.snapshot().Trouble; got != want {
			m.Errorf("%v after the start: the trouble is %+v, want %+v", m.elapsed(), got, want)
		}
	}
	s.test("sends without an answer are a streak that an answer ends", spec(slots(100)), func(m *member) {
		is(m, store.Trouble{})
		began := m.now()
		m.ends(unreachable("no such host"))
		m.sleep(time.Second)
		m.ends(unreachable("connection refused"))
		is(m, store.Trouble{Count: 2, Unreached: true, Since: began, Last: m.now(), Cause: "connection refused"})
		id := m.take(want("a", 1))
		is(m, store.Trouble{Count: 2, Unreached: true, Since: began, Last: m.now(), Cause: "connection refused"})
		m.answer(id, store.VerdictNone) // it proves nothing
		m.close(id)
		is(m, store.Trouble{Count: 2, Unreached: true, Since: began, Last: m.now(), Cause: "connection refused"})
		id = m.take(want("a", 1))
		m.answer(id, store.VerdictOK)
		m.close(id)
		is(m, store.Trouble{})
	})
	s.test("answers that tell of a failure are one too", spec(slots(100)), func(m *member) {
		began := m.now()
		for range 3 {
			id := m.take(want("a", 1))
			m.answered(store.Op{ID: id, Verdict: store.VerdictError, Cause: "status 502"})
			m.close(id)
			m.sleep(time.Second)
		}
		is(m, store.Trouble{Count: 3, Since: began, Last: m.now().Add(-time.Second), Cause: "status 502"})
		id := m.take(want("a", 1))
		m.answered(store.Op{ID: id, Verdict: store.VerdictError}) // it does not say whose fault it is
		m.close(id)
		is(m, store.Trouble{Count: 3, Since: began, Last: m.now().Add(-time.Second), Cause: "status 502"})
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled})
		is(m, store.Trouble{})
	})
	s.test("billing stops are a streak apart from failures", spec(slots(100)), func(m *member) {
		stop := store.Op{Kind: store.OpObserve, Verdict: store.VerdictBilling, Cause: "the credit is used up"}
		m.ends(unreachable("no such host"))
		m.sleep(time.Second)
		began := m.now()
		m.ends(stop) // the provider answers again, but serves nothing
		m.sleep(time.Second)
		m.ends(stop)
		is(m, store.Trouble{Count: 2, Unpaid: true, Since: began, Last: m.now(), Cause: "the credit is used up"})
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictNone})
		is(m, store.Trouble{Count: 2, Unpaid: true, Since: began, Last: m.now(), Cause: "the credit is used up"})
		m.ends(unreachable("reset"))
		is(m, store.Trouble{Count: 1, Unreached: true, Since: m.now(), Last: m.now(), Cause: "reset"})
		m.ends(stop)
		is(m, store.Trouble{Count: 1, Unpaid: true, Since: m.now(), Last: m.now(), Cause: "the credit is used up"})
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictOK})
		is(m, store.Trouble{})
	})
	s.test("a refusal is an answer, an overload is none", spec(slots(100)), func(m *member) {
		m.ends(unreachable("reset"))
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictOverloaded})
		is(m, store.Trouble{Count: 2, Unreached: true, Since: m.now(), Last: m.now(), Cause: "overloaded"})
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled})
		is(m, store.Trouble{})
	})
	s.test("it pauses nobody", spec(slots(100)), func(m *member) {
		for range 10 {
			m.ends(unreachable("reset"))
		}
		m.take(want("a", 1))
	})
	s.test("lost memory is told until it has no effect any more", spec(guarded(rolling(10, time.Minute), store.GuardAuto)), func(m *member) {
		if got := m.snapshot(); got.LostAt != 0 || got.LostUntil != 0 {
			m.Errorf("lost at %v until %v before anything was", got.LostAt, got.LostUntil)
		}
		began := m.now()
		m.ends(store.Op{Kind: store.OpForget})
		got := m.snapshot()
		if d := got.LostUntil.Sub(began); got.LostAt != began || d < time.Minute || d > 70*time.Second {
			m.Errorf("lost at %v, for %v, want now and one window with its slack", got.LostAt, d)
		}
		m.sleep(got.LostUntil.Sub(began) + 250*time.Millisecond) // a slice of the window
		if got := m.snapshot(); got.LostAt != 0 || got.LostUntil != 0 || got.Limits[0].Used != 0 {
			m.Errorf("lost at %v until %v, %d used, when it is over", got.LostAt, got.LostUntil, got.Limits[0].Used)
		}
	})
}
