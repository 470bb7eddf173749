package storetest

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/store"
)

func isClosed(err error) bool { return errors.Is(err, store.ErrClosed) }

func (m *member) onlyGate() store.PauseState {
	m.Helper()
	gates := m.snapshot().Gates
	if len(gates) != 1 {
		m.Fatalf("%d gates, want 1: %+v", len(gates), gates)
	}
	return gates[0]
}

// throttle sends a request that the provider refuses.
func (m *member) throttle(op store.Op) {
	m.Helper()
	id := m.take(want("victim", 1).model(op.Model))
	m.sleep(time.Millisecond)
	op.ID, op.Verdict = id, store.VerdictThrottled
	m.answered(op)
	m.close(id)
}

// pausedFor checks how long the pool is still paused.
func (m *member) pausedFor(d time.Duration) {
	m.Helper()
	g := m.onlyGate()
	if got := g.Until.Sub(m.now()); g.Phase != "paused" || got != d {
		m.Fatalf("%s for %v, want paused for %v", g.Phase, got, d)
	}
}

// sitOut waits until the pause is over and returns the probe.
func (m *member) sitOut() store.ID {
	m.Helper()
	id := m.queue(want("prober", 1))
	m.pass(m.onlyGate().Until.Sub(m.now()))
	m.grantedAt(id)
	return id
}

func pauses(s *suite) {
	sp := spec(plenty())
	s.test("one refusal pauses everybody", sp, func(m *member) {
		other := join(m.T, m.harness, sp)
		other.throttle(store.Op{Cause: "429 from the provider"})
		m.pausedFor(time.Minute)
		if g := m.onlyGate(); g.Scope != "" || g.Consecutive != 1 || g.Since != m.now() || g.Cause != "429 from the provider" {
			m.Errorf("%+v", g)
		}
		for c := range uint8(3) {
			res := m.refused(want("a", 1).class(c).try(), store.CodePaused)
			if res.Reason.At.Sub(m.now()) != time.Minute || !res.Held {
				m.Errorf("refused until %v (held: %v), want a minute from now and held", res.Reason.At.Sub(m.now()), res.Held)
			}
		}
		id := m.queue(want("a", 1))
		m.pass(time.Minute)
		m.exactly(id, time.Minute+time.Millisecond)
	})
	s.test("fifty refusals of one burst escalate once", sp, func(m *member) {
		var ids []store.ID
		for range 50 {
			ids = append(ids, m.take(want("a", 1)))
		}
		for _, id := range ids {
			m.sleep(10 * time.Millisecond)
			m.answer(id, store.VerdictThrottled)
		}
		if g := m.onlyGate(); g.Consecutive != 1 || g.Until.Sub(m.began) != time.Minute+10*time.Millisecond {
			m.Errorf("%d consecutive, until %v", g.Consecutive, g.Until.Sub(m.began))
		}
		if c := m.snapshot().Counters; c.Throttled != 50 {
			m.Errorf("%d throttled, want 50", c.Throttled)
		}
	})
	s.test("a late success from before the pause does not end it", sp, func(m *member) {
		late := m.take(want("a", 1))
		later := m.take(want("a", 1))
		m.sleep(time.Second)
		m.throttle(store.Op{})
		m.answer(late, store.VerdictOK)
		if g := m.onlyGate(); g.Phase != "paused" || g.Consecutive != 1 {
			m.Fatalf("%+v", g)
		}
		probe := m.sitOut()
		m.answer(later, store.VerdictOK)
		if g := m.onlyGate(); g.Phase != "probing" || g.Consecutive != 1 {
			m.Fatalf("%+v", g)
		}
		m.answer(probe, store.VerdictThrottled)
		m.pausedFor(2 * time.Minute)
	})
	s.test("a late refusal from before the pause does not begin another", sp, func(m *member) {
		late := m.take(want("a", 1))
		m.sleep(time.Second)
		m.throttle(store.Op{})
		probe := m.sitOut()
		m.answer(probe, store.VerdictOK)
		m.pass(30 * time.Second)
		m.take(want("a", 1)) // the pause is forgotten
		m.answer(late, store.VerdictThrottled)
		m.take(want("a", 1))
	})
	s.test("pauses double up to the cap, and a success starts over", sp, func(m *member) {
		m.throttle(store.Op{})
		for _, minutes := range []time.Duration{1, 2, 4, 8, 15, 15} {
			m.pausedFor(minutes * time.Minute)
			probe := m.sitOut()
			m.answer(probe, store.VerdictThrottled)
			m.close(probe)
		}
		m.answer(m.sitOut(), store.VerdictOK)
		m.pass(time.Second)
		m.throttle(store.Op{})
		m.pausedFor(time.Minute)
	})
	s.test("hints overrule the formula", sp, func(m *member) {
		m.throttle(store.Op{RetryAfter: 7 * time.Second})
		m.pausedFor(7 * time.Second)
		for _, c := range []struct{ hint, want time.Duration }{
			{time.Millisecond, 2 * time.Second}, // the second in a row counts for at least two seconds
			{time.Second, 4 * time.Second},
			{9 * time.Second, 9 * time.Second},
			{48 * time.Hour, 24 * time.Hour},
		} {
			m.answered(store.Op{ID: m.sitOut(), Verdict: store.VerdictThrottled, RetryAfter: c.hint})
			m.pausedFor(c.want)
		}
	})
	s.test("a longer hint of the same burst prolongs the pause", sp, func(m *member) {
		a, b := m.take(want("a", 1)), m.take(want("a", 1))
		m.sleep(time.Second)
		m.answered(store.Op{ID: a, Verdict: store.VerdictThrottled, RetryAfter: 5 * time.Second})
		m.answered(store.Op{ID: b, Verdict: store.VerdictThrottled, RetryAfter: 30 * time.Second})
		m.pausedFor(30 * time.Second)
		if g := m.onlyGate(); g.Consecutive != 1 {
			m.Errorf("%d consecutive, want 1", g.Consecutive)
		}
	})
	s.test("an overload backs off on its own scale", sp, func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(time.Second)
		m.answer(id, store.VerdictOverloaded)
		for _, seconds := range []time.Duration{5, 10, 20, 40, 60, 60} {
			m.pausedFor(seconds * time.Second)
			m.answer(m.sitOut(), store.VerdictOverloaded)
		}
		m.pausedFor(time.Minute)
		if g := m.onlyGate(); g.Consecutive != 0 {
			m.Errorf("%d consecutive refusals, want none: these were overloads", g.Consecutive)
		}
		m.answer(m.sitOut(), store.VerdictThrottled)
		m.pausedFor(time.Minute) // the first refusal
	})
	s.test("a quota that is gone pauses until it is back", sp, func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(time.Second)
		m.answered(store.Op{ID: id, Verdict: store.VerdictExhausted, RetryAfter: 40 * time.Hour})
		m.pausedFor(40 * time.Hour)
	})
	s.test("a quota that is gone for nobody knows how long backs off like a refusal", sp, func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(time.Second)
		m.answer(id, store.VerdictExhausted)
		m.pausedFor(time.Minute)
		m.answer(m.sitOut(), store.VerdictExhausted)
		m.pausedFor(2 * time.Minute)
	})
	for _, v := range []store.Verdict{store.VerdictNone, store.VerdictOK, store.VerdictBilling, store.VerdictError} {
		s.test("nobody pauses for/"+v.String(), sp, func(m *member) {
			m.answer(m.take(want("a", 1)), v)
			if g := m.snapshot().Gates; len(g) != 0 {
				m.Errorf("%+v", g)
			}
			m.take(want("a", 1))
		})
	}
	s.test("many who tell of the same refusal without a ticket escalate it once", spec(plenty()), func(m *member) {
		refusal := store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled}
		for range 50 {
			m.ends(refusal)
		}
		m.pausedFor(time.Minute)
		m.sleep(time.Minute)
		m.ends(refusal) // no request was granted since, but this refusal comes after the pause
		m.pausedFor(2 * time.Minute)
	})
	s.test("an answer that no ticket belongs to pauses too", sp, func(m *member) {
		m.sleep(time.Second)
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled})
		m.pausedFor(time.Minute)
		if c := m.snapshot().Counters; c.Throttled != 1 || c.Last429 != m.now() {
			m.Errorf("throttled %d, last at %d", c.Throttled, c.Last429)
		}
	})
	s.test("a pause by hand, and its end", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Hour, Cause: "maintenance"})
		m.pausedFor(time.Hour)
		if g := m.onlyGate(); g.Cause != "maintenance" || g.Consecutive != 0 {
			m.Errorf("%+v", g)
		}
		a, b := m.queue(want("a", 1)), m.queue(want("b", 1))
		m.pass(time.Minute)
		m.ends(store.Op{Kind: store.OpResume})
		m.pass(2 * time.Second)
		m.exactly(a, time.Minute)
		m.exactly(b, time.Minute+2*time.Second) // when silence has shown that the first was accepted
	})
	s.test("a pause by hand does not shorten the provider's", sp, func(m *member) {
		m.throttle(store.Op{RetryAfter: time.Hour})
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		m.pausedFor(time.Hour)
	})
	s.test("resuming forgets the refusals", sp, func(m *member) {
		m.throttle(store.Op{})
		m.answer(m.sitOut(), store.VerdictThrottled)
		m.pausedFor(2 * time.Minute)
		m.ends(store.Op{Kind: store.OpResume})
		m.pass(5 * time.Second)
		m.throttle(store.Op{})
		m.pausedFor(time.Minute)
	})
}

func gateScopes(s *suite) {
	sp := spec(plenty())
	s.test("a refusal that proves a model leaves the others alone", sp, func(m *member) {
		m.throttle(store.Op{Scope: store.PerModel, Model: "opus"})
		if g := m.onlyGate(); g.Scope != "model=opus" {
			m.Errorf("scope %q", g.Scope)
		}
		if res := m.do(want("a", 1).model("haiku").try().op); res.State != store.Granted || res.Held {
			m.Errorf("%v, held: %v; want granted and not held", res.State, res.Held)
		}
		m.refused(want("a", 1).model("opus").try(), store.CodePaused)
		m.take(want("a", 1))
	})
	s.test("a refusal that proves a key leaves the others alone", sp, func(m *member) {
		id := m.take(want("a", 1).key("one").model("opus"))
		m.sleep(time.Second)
		m.answered(store.Op{ID: id, Verdict: store.VerdictThrottled, Scope: store.PerKey | store.PerModel})
		m.refused(want("a", 1).key("one").model("opus").try(), store.CodePaused)
		m.take(want("a", 1).key("two").model("opus"))
		m.take(want("a", 1).key("one").model("haiku"))
		if g := m.onlyGate(); g.Scope != "model=opus,key=one" {
			m.Errorf("scope %q", g.Scope)
		}
	})
	s.test("scopes escalate apart", sp, func(m *member) {
		m.throttle(store.Op{Scope: store.PerModel, Model: "opus"})
		m.sleep(time.Second)
		m.throttle(store.Op{Scope: store.PerModel, Model: "haiku"})
		gates := m.snapshot().Gates
		if len(gates) != 2 || gates[0].Consecutive != 1 || gates[1].Consecutive != 1 {
			m.Fatalf("%+v", gates)
		}
		if gates[0].Scope != "model=haiku" || gates[0].Until.Sub(gates[1].Until) != time.Second+time.Millisecond {
			m.Errorf("%+v", gates)
		}
	})
	s.test("a success of one model does not end the pause of another", sp, func(m *member) {
		m.throttle(store.Op{Scope: store.PerModel, Model: "opus"})
		m.sleep(time.Second)
		m.answer(m.take(want("a", 1).model("haiku")), store.VerdictOK)
		if g := m.onlyGate(); g.Phase != "paused" || g.Consecutive != 1 {
			m.Errorf("%+v", g)
		}
	})
	s.test("those who wait for a paused model do not hold up the others", sp, func(m *member) {
		m.throttle(store.Op{Scope: store.PerModel, Model: "opus"})
		m.queue(want("a", 500_000).model("opus").class(0))
		m.take(want("b", 900_000).model("haiku").class(2))
	})
	s.test("nor do those who were in line before its pause began", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		opus := m.queue(want("a", 1).model("opus").class(0))
		first := m.queue(want("b", 1).model("haiku").class(2))
		second := m.queue(want("b", 1).model("haiku").class(2))
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute, Scope: store.PerModel, Model: "opus"})
		m.pass(time.Second)
		m.exactly(first, 100*time.Millisecond)
		m.exactly(second, 200*time.Millisecond)
		if m.wasGranted(opus) {
			m.Errorf("the paused one went")
		}
		m.pass(2 * time.Minute)
		if !m.wasGranted(opus) {
			m.Errorf("the paused one never went")
		}
	})
	s.test("an observation gates the scope that it names", sp, func(m *member) {
		m.sleep(time.Second)
		m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled, Scope: store.PerModel, Model: "opus"})
		m.refused(want("a", 1).model("opus").try(), store.CodePaused)
		m.take(want("a", 1).model("haiku"))
	})
	s.test("a scope within the caller's own is the whole pool's", sp, func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(time.Second)
		m.answered(store.Op{ID: id, Verdict: store.VerdictThrottled, Scope: store.PerAgent})
		m.refused(want("b", 1).try(), store.CodePaused)
	})
	s.test("a pause by hand may be for one model", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute, Scope: store.PerModel, Model: "opus"})
		m.refused(want("a", 1).model("opus").try(), store.CodePaused)
		m.take(want("a", 1).model("haiku"))
	})
}
