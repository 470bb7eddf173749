package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// rejecting tests the counts of requests that the provider rejects as wrong.
func rejecting(s *suite) {
	is := func(m *member, want ...store.Rejections) {
		m.Helper()
		if got := m.snapshot().Rejections; !slices.Equal(got, want) {
			m.Errorf("%v after the start: rejections are %+v, want %+v", m.elapsed(), got, want)
		}
	}
	send := func(m *member, model string, answer store.Op) {
		m.Helper()
		answer.ID = m.take(want("a", 1).model(model))
		m.answered(answer)
		m.close(answer.ID)
	}
	wrong := store.Op{Verdict: store.VerdictOK, Rejected: 404, Cause: "no such path"}
	s.test("rejections are counted beside all answers of a minute", spec(slots(100)), func(m *member) {
		is(m)
		for range 4 {
			send(m, "", store.Op{Verdict: store.VerdictOK})
		}
		is(m)
		for range 3 {
			send(m, "", wrong)
		}
		send(m, "", store.Op{Verdict: store.VerdictNone}) // may be no answer
		send(m, "", store.Op{Verdict: store.VerdictError, Cause: "status 502"})
		is(m, store.Rejections{Rejected: 3, Answers: 8, Status: 404, Last: m.now(), Cause: "no such path"})
		last := m.now()
		m.sleep(59 * time.Second)
		is(m, store.Rejections{Rejected: 3, Answers: 8, Status: 404, Last: last, Cause: "no such path"})
		m.sleep(12 * time.Second)
		is(m)
	})
	s.test("a rejection is no failure of the provider", spec(slots(100)), func(m *member) {
		for range 10 {
			send(m, "", store.Op{Verdict: store.VerdictError, Rejected: 408, Cause: "slow"})
		}
		if got := m.snapshot().Trouble; got != (store.Trouble{}) {
			m.Errorf("rejections are a streak of failures: %+v", got)
		}
		is(m, store.Rejections{Rejected: 10, Answers: 10, Status: 408, Last: m.now(), Cause: "slow"})
	})
	s.test("each model has its own count", spec(slots(100)), func(m *member) {
		send(m, "good", store.Op{Verdict: store.VerdictOK})
		send(m, "bad", wrong)
		send(m, "bad", store.Op{Verdict: store.VerdictOK, Rejected: 400})
		m.ends(store.Op{Kind: store.OpObserve, Model: "bad", Verdict: store.VerdictThrottled, Force: true})
		m.ends(store.Op{Kind: store.OpObserve, Model: "other", Verdict: store.VerdictOK, Rejected: 401, Cause: "who?"})
		is(m,
			store.Rejections{Rejected: 3, Answers: 5, Status: 401, Mixed: true, Last: m.now(), Cause: "who?"},
			store.Rejections{Model: "bad", Rejected: 2, Answers: 3, Status: 400, Mixed: true, Last: m.now()},
			store.Rejections{Model: "other", Rejected: 1, Answers: 1, Status: 401, Last: m.now(), Cause: "who?"})
	})
	s.test("others see them", spec(slots(100)), func(m *member) {
		send(m, "", wrong)
		other := join(m.T, m.harness, spec(slots(100)))
		send(other, "", wrong)
		is(m, store.Rejections{Rejected: 2, Answers: 2, Status: 404, Last: m.now(), Cause: "no such path"})
		is(other, store.Rejections{Rejected: 2, Answers: 2, Status: 404, Last: m.now(), Cause: "no such path"})
	})
	s.test("models beyond the bound are counted together", spec(slots(100)), func(m *member) {
		for i := range 40 {
			send(m, fmt.Sprint("model", i), wrong)
		}
		if got := m.snapshot().Rejections; len(got) == 0 || got[0].Rejected != 40 || got[0].Answers != 40 || len(got) > 20 {
			m.Errorf("of 40 models: %+v", got)
		}
		m.sleep(2 * time.Minute)
		send(m, "new", wrong)
		is(m, store.Rejections{Rejected: 1, Answers: 1, Status: 404, Last: m.now(), Cause: "no such path"},
			store.Rejections{Model: "new", Rejected: 1, Answers: 1, Status: 404, Last: m.now(), Cause: "no such path"})
	})
	s.test("the common count outlives the counts of single models", spec(slots(100)), func(m *member) {
		for i := range 17 {
			send(m, fmt.Sprint("model", i), wrong)
		}
		m.sleep(30 * time.Second)
		for i := range 16 {
			send(m, fmt.Sprint("model", i), wrong)
		}
		m.sleep(45 * time.Second) // the common count is the oldest now
		for i := range 3 {
			send(m, fmt.Sprint("late", i), wrong)
		}
		if got := m.snapshot().Rejections; len(got) != 17 || got[0].Rejected != 19 {
			m.Errorf("of 19 models: %+v", got)
		}
	})
}
