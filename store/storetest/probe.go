package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// crowd queues n requests of one agent.
func (m *member) crowd(n int) {
	m.Helper()
	for range n {
		m.queue(want("crowd", 1))
	}
}

// paused pauses the pool for a minute, with a crowd waiting.
func (m *member) paused(crowd int) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
	m.crowd(crowd)
}

// only checks how many of the crowd have been granted.
func (m *member) only(n int) {
	m.Helper()
	if len(m.grants) != n {
		m.Fatalf("%v after the start %d have gone, want %d", m.elapsed(), len(m.grants), n)
	}
}

func probes(s *suite) {
	sp := spec(plenty())
	s.test("exactly one probe goes out when a pause ends", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute)
		m.only(1)
		m.exactly(m.grants[0].ID, time.Minute)
		if g := m.onlyGate(); g.Phase != "probing" {
			m.Errorf("%s, want probing", g.Phase)
		}
		if res := m.refused(want("b", 1).class(0).try(), store.CodeProbe); !res.Held {
			m.Error("want held")
		}
		m.pass(1900 * time.Millisecond)
		m.only(1)
	})
	s.test("a probe passes with an ok", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute + 300*time.Millisecond)
		m.answer(m.grants[0].ID, store.VerdictOK)
		m.collect()
		m.only(2)
		m.exactly(m.grants[1].ID, time.Minute+300*time.Millisecond)
		if g := m.onlyGate(); g.Phase != "ramping" {
			m.Errorf("%s, want ramping", g.Phase)
		}
	})
	s.test("a probe passes when no refusal has come for two seconds", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute + 2*time.Second)
		m.only(2)
		m.exactly(m.grants[1].ID, time.Minute+2*time.Second)
	})
	s.test("a refused probe pauses again", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute + 500*time.Millisecond)
		m.answer(m.grants[0].ID, store.VerdictThrottled)
		m.pausedFor(time.Minute)
		m.pass(59 * time.Second)
		m.only(1)
		m.pass(time.Second)
		m.only(2)
	})
	s.test("a refusal that comes after the two seconds pauses again", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute + 2200*time.Millisecond)
		m.answer(m.grants[0].ID, store.VerdictThrottled)
		m.pausedFor(time.Minute)
	})
	s.test("an unsent probe is replaced at once", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute + 500*time.Millisecond)
		m.cancel(m.grants[0].ID)
		m.collect()
		m.only(2)
		m.exactly(m.grants[1].ID, time.Minute+500*time.Millisecond)
	})
	s.test("a spent probe proves nothing: the next goes two seconds later", sp, func(m *member) {
		m.paused(10)
		m.pass(time.Minute)
		m.spend(m.grants[0].ID)
		m.pass(1900 * time.Millisecond)
		m.only(1)
		m.pass(100 * time.Millisecond)
		m.only(2)
		m.exactly(m.grants[1].ID, time.Minute+2*time.Second)
		if g := m.onlyGate(); g.Phase != "probing" {
			m.Errorf("%s, want probing", g.Phase)
		}
	})
	s.test("so does a probe whose holder died", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		m.queue(want("dead", 1).class(0))
		m.sleep(time.Minute + 500*time.Millisecond)
		m.takeTold()
		m.crowd(5)
		m.pass(2400 * time.Millisecond)
		m.only(0)
		m.pass(200 * time.Millisecond)
		m.only(1)
	})
	s.test("three blank probes in a row start the ramp", sp, func(m *member) {
		m.paused(20)
		m.pass(time.Minute)
		m.spend(m.grants[0].ID)
		m.pass(2 * time.Second)
		m.spend(m.grants[1].ID)
		m.pass(2 * time.Second)
		m.only(3)
		m.spend(m.grants[2].ID)
		m.collect()
		if g := m.onlyGate(); g.Phase != "ramping" {
			m.Errorf("%s, want ramping", g.Phase)
		}
		m.only(4)
	})
	s.test("the probe is the highest class's", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		by := m.line("zyx", classed)
		m.pass(time.Minute)
		m.inOrder(by, "x")
	})
	s.test("each scope has its own probe", sp, func(m *member) {
		for _, model := range []string{"opus", "haiku"} {
			m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute, Scope: store.PerModel, Model: model})
			m.queue(want("a", 1).model(model))
			m.queue(want("a", 1).model(model))
		}
		m.pass(time.Minute + time.Second)
		m.only(2)
	})
	s.test("a ticket that is not the probe does not speak for it", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute, Scope: store.PerModel, Model: "opus"})
		m.queue(want("a", 1).model("opus"))
		m.queue(want("a", 1).model("opus"))
		m.pass(time.Minute)
		m.answer(m.grants[0].ID, store.VerdictError)
		m.close(m.grants[0].ID)
		for range 3 {
			m.spend(m.take(want("b", 1).model("haiku")))
		}
		m.pass(1900 * time.Millisecond)
		m.only(1)
		m.pass(100 * time.Millisecond)
		m.only(2)
	})
}

// longPauses tests pauses that a hint makes longer than the backoff's cap, which is a quarter of an hour here.
func longPauses(s *suite) {
	sp := spec(plenty())
	begin := func(m *member, hint time.Duration) {
		m.Helper()
		m.throttle(store.Op{RetryAfter: hint})
		m.crowd(10)
	}
	const cap = 15 * time.Minute
	s.test("a long hint holds everybody, and one request for all probes it at the cap's interval", sp, func(m *member) {
		begin(m, 6*time.Hour)
		m.pausedFor(6 * time.Hour)
		if g := m.onlyGate(); g.Probe.Sub(m.now()) != cap {
			m.Errorf("the first probe goes in %v", g.Probe.Sub(m.now()))
		}
		for n := range 3 {
			m.pass(cap - time.Second)
			m.only(n)
			m.pass(time.Second)
			m.only(n + 1)
			m.refused(want("b", 1).class(0).try(), store.CodePaused)
			m.answer(m.grants[n].ID, store.VerdictThrottled)
			m.pausedFor(6*time.Hour - time.Duration(n+1)*cap)
		}
	})
	s.test("its success ends the pause", sp, func(m *member) {
		begin(m, 6*time.Hour)
		m.pass(cap)
		m.only(1)
		m.answer(m.grants[0].ID, store.VerdictOK)
		if g := m.onlyGate(); g.Phase != "ramping" || g.Consecutive != 0 {
			m.Errorf("%+v", g)
		}
		m.flow(5 * time.Second)
		m.only(10)
	})
	s.test("its silence does not", sp, func(m *member) {
		begin(m, 6*time.Hour)
		m.pass(cap + time.Minute)
		m.only(1)
		m.pausedFor(6*time.Hour - cap - time.Minute)
	})
	s.test("an unsent probe is replaced, a lost one is not", sp, func(m *member) {
		begin(m, 6*time.Hour)
		m.pass(cap)
		m.cancel(m.grants[0].ID)
		m.collect()
		m.only(2)
		m.spend(m.grants[1].ID)
		m.pass(time.Minute)
		m.only(2)
	})
	s.test("nobody probes a quota that is gone", sp, func(m *member) {
		id := m.take(want("a", 1))
		m.sleep(time.Millisecond)
		m.answered(store.Op{ID: id, Verdict: store.VerdictExhausted, RetryAfter: 6 * time.Hour})
		m.crowd(10)
		m.pass(5 * time.Hour)
		m.only(0)
		m.pausedFor(time.Hour)
	})
	s.test("nor a pause by hand", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: 6 * time.Hour})
		m.crowd(10)
		m.pass(5 * time.Hour)
		m.only(0)
	})
	s.test("an absurd hint counts as none", sp, func(m *member) {
		m.throttle(store.Op{RetryAfter: store.MaxHint + time.Microsecond})
		m.pausedFor(time.Minute)
		m.answered(store.Op{ID: m.sitOut(), Verdict: store.VerdictThrottled, RetryAfter: 1<<63 - 1})
		m.pausedFor(2 * time.Minute)
		m.answered(store.Op{ID: m.sitOut(), Verdict: store.VerdictExhausted, RetryAfter: 1<<63 - 1})
		m.pausedFor(4 * time.Minute)
		m.answered(store.Op{ID: m.sitOut(), Verdict: store.VerdictOverloaded, RetryAfter: 1<<63 - 1})
		m.pausedFor(5 * time.Second)
	})
	s.test("who repeats a hint without a ticket does not put the probes off", sp, func(m *member) {
		begin(m, 6*time.Hour)
		for range 14 {
			m.pass(time.Minute)
			m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictThrottled, RetryAfter: 7 * time.Hour})
		}
		m.pass(time.Minute)
		m.only(1)
	})
}

// flow lets time pass and answers every grant at once, with success.
func (m *member) flow(d time.Duration) {
	m.Helper()
	m.collect()
	for end := m.elapsed() + d; ; m.pass(min(10*time.Millisecond, end-m.elapsed())) {
		for ; m.flowed < len(m.grants); m.flowed++ {
			m.answered(store.Op{ID: m.grants[m.flowed].ID, Verdict: store.VerdictOK})
			m.collect()
		}
		if m.elapsed() >= end {
			return
		}
	}
}

func ramps(s *suite) {
	sp := spec(plenty())
	grows := func(m *member, totals ...int) {
		m.Helper()
		m.flow(10 * time.Millisecond)
		for _, total := range totals {
			m.only(total)
			m.flow(500 * time.Millisecond)
		}
	}
	s.test("grants come faster with every success after a probe", sp, func(m *member) {
		m.paused(100)
		m.pass(time.Minute)
		grows(m, 2, 5, 15, 25, 35)
	})
	s.test("and after a resume", sp, func(m *member) {
		m.paused(100)
		m.pass(time.Second)
		m.ends(store.Op{Kind: store.OpResume})
		grows(m, 1, 2, 7, 17, 27)
	})
	s.test("as many are under way as were accepted, and one more", sp, func(m *member) {
		m.paused(100)
		m.ends(store.Op{Kind: store.OpResume})
		m.pass(1900 * time.Millisecond)
		m.only(1) // two seconds of silence are a success
		m.pass(1900 * time.Millisecond)
		m.only(3)
		for n := range 3 {
			m.answer(m.grants[n].ID, store.VerdictOK)
		}
		m.pass(time.Second)
		m.only(7)
	})
	s.test("class order is strict while it lasts", sp, func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		by := m.line("zzzzyyyyxxxx", classed)
		m.pass(time.Minute)
		m.flow(5 * time.Second)
		m.inOrder(by, "xxxxyyyyzzzz")
	})
	s.test("it ends when limits bind", spec(bucket(4, 4)), func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		m.crowd(60)
		m.pass(time.Minute)
		m.flow(5 * time.Second)
		if g := m.snapshot().Gates; len(g) != 0 {
			m.Errorf("%+v", g)
		}
		n := len(m.grants)
		m.pass(5 * time.Second)
		m.only(n + 20)
	})
	s.test("a refusal in the middle pauses again", sp, func(m *member) {
		m.paused(100)
		m.pass(time.Minute)
		m.flow(1700 * time.Millisecond)
		m.pass(300 * time.Millisecond)
		n := len(m.grants)
		m.answer(m.grants[n-1].ID, store.VerdictThrottled)
		m.answer(m.grants[n-2].ID, store.VerdictThrottled)
		m.pausedFor(time.Minute)
		if g := m.onlyGate(); g.Consecutive != 1 {
			m.Errorf("%d consecutive, want 1", g.Consecutive)
		}
		m.pass(30 * time.Second)
		m.only(n)
	})
}

func unexplained(s *suite) {
	sp := spec(guarded(rolling(1000, time.Hour), store.GuardAuto), slots(50))
	refuse := func(m *member) {
		m.Helper()
		id := m.take(want("a", 1, 1))
		m.sleep(time.Millisecond)
		m.answered(store.Op{ID: id, Verdict: store.VerdictThrottled, RetryAfter: time.Second})
		m.close(id)
		m.ends(store.Op{Kind: store.OpResume})
		m.sleep(15 * time.Second)
	}
	slackAndSize := func(m *member, slack time.Duration, size int64) {
		m.Helper()
		if l := m.limit(0); l.Slack != slack || l.Size != size {
			m.Errorf("slack %v, size %d; want %v and %d", l.Slack, l.Size, slack, size)
		}
	}
	s.test("a refusal that the ledger cannot explain doubles the slack, and the next cuts the limit", sp, func(m *member) {
		slackAndSize(m, 30*time.Second, 1000)
		refuse(m)
		slackAndSize(m, time.Minute, 1000)
		refuse(m)
		slackAndSize(m, 2*time.Minute, 950)
		refuse(m)
		slackAndSize(m, 4*time.Minute, 900)
		refuse(m)
		slackAndSize(m, 7*time.Minute+30*time.Second, 850) // at most an eighth of the window
		m.sleep(time.Hour)
		slackAndSize(m, 7*time.Minute+30*time.Second, 860) // 1% an hour comes back
	})
	s.test("one an hour only widens the slack", sp, func(m *member) {
		refuse(m)
		m.sleep(time.Hour)
		refuse(m)
		slackAndSize(m, 2*time.Minute, 1000)
	})
	s.test("a burst of refusals counts once", sp, func(m *member) {
		a, b := m.take(want("a", 1, 1)), m.take(want("a", 1, 1))
		m.sleep(time.Second)
		m.answer(a, store.VerdictThrottled)
		m.answer(b, store.VerdictThrottled)
		slackAndSize(m, time.Minute, 1000)
	})
	s.test("a cut limit still takes what it can hold as a whole, alone", sp, func(m *member) {
		refuse(m)
		refuse(m)
		m.sleep(2 * time.Hour)
		m.sleep(time.Minute)
		if size := m.limit(0).Size; size >= 1000 {
			m.Fatalf("size %d, want less than 1000", size)
		}
		m.take(want("a", 1000, 1))
	})
	s.test("limits of our own are not to blame", spec(rolling(1000, time.Hour), slots(50)), func(m *member) {
		refuse(m)
		refuse(m)
		if l := m.limit(0); l.Size != 1000 {
			m.Errorf("size %d, want 1000", l.Size)
		}
	})
}
