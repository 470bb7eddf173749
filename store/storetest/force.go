package storetest

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

func (r request) forced() request   { r.op.Force = true; return r }
func (r request) spentNow() request { r.op.Spent = true; return r }

// forcing tests requests that are counted but not held.
func forcing(s *suite) {
	s.test("a refusal that only counts pauses nobody", spec(guarded(rolling(1000, time.Hour), store.GuardAuto)), func(m *member) {
		slack := m.limit(0).Slack
		for _, v := range []store.Verdict{store.VerdictThrottled, store.VerdictThrottled, store.VerdictExhausted, store.VerdictOverloaded} {
			id := m.take(want("a", 1).forced())
			m.sleep(time.Second)
			m.answered(store.Op{ID: id, Verdict: v, RetryAfter: time.Hour, Force: true})
			m.close(id)
			m.ends(store.Op{Kind: store.OpObserve, Verdict: v, RetryAfter: time.Hour, Force: true})
		}
		if g := m.snapshot().Gates; len(g) != 0 {
			m.Errorf("%+v", g)
		}
		if c := m.snapshot().Counters; c.Throttled != 6 || c.Sent != 4 {
			m.Errorf("%d sent, %d throttled", c.Sent, c.Throttled)
		}
		if l := m.limit(0); l.Slack != slack || l.Size != 1000 {
			m.Errorf("slack %v, size %d", l.Slack, l.Size)
		}
		m.take(want("b", 1))
	})
	s.test("who is let through by force counts all the same", spec(rolling(10, time.Minute), slots(1)), func(m *member) {
		m.take(want("a", 10, 1))
		m.refused(want("b", 1, 1).try(), store.CodeLimit)
		id := m.take(want("b", 3, 1).forced())
		m.used(0, 13)
		m.used(1, 2)
		m.close(id)
		m.used(1, 1)
		if n := m.snapshot().Counters.Sent; n != 2 {
			m.Errorf("%d were sent", n)
		}
	})
	s.test("past those who wait, and with more than a limit can hold", spec(rolling(10, time.Minute)), func(m *member) {
		m.take(want("a", 10))
		waits := m.queue(want("a", 1))
		m.take(want("b", 50).forced())
		m.state(waits, store.Waiting)
		m.used(0, 60)
	})
	s.test("through a pause", spec(plenty()), func(m *member) {
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Hour})
		m.refused(want("a", 1).try(), store.CodePaused)
		m.take(want("a", 1).forced())
		m.pausedFor(time.Hour)
	})
}

// spending tests tickets that end with their grant.
func spending(s *suite) {
	s.test("one of which nothing will be heard holds no place", spec(slots(1), plenty()), func(m *member) {
		id := m.take(want("a", 1, 1).spentNow())
		m.state(id, store.Ended)
		m.take(want("b", 1, 1))
		m.used(1, 2)
	})
	s.test("its arrival counts within the slack", spec(guarded(rolling(1, time.Minute), store.GuardAuto)), func(m *member) {
		m.take(want("a", 1).spentNow())
		next := m.queue(want("a", 1))
		m.sleep(time.Minute)
		m.state(next, store.Waiting)
		m.sleep(2 * time.Second) // the slack, and a slice
		m.collect()
		m.grantedAt(next)
	})
	for name, slow := range map[string]bool{"quick headers": false, "slow headers": true} {
		s.test("its slack begins when its grant is collected/"+name, spec(guarded(rolling(1, time.Minute), store.GuardAuto)), func(m *member) {
			if slow {
				for range 16 {
					id := m.take(want("a", 1))
					m.sleep(5 * time.Second)
					m.answer(id, store.VerdictOK)
					m.close(id)
					m.sleep(2 * time.Minute)
				}
			}
			m.take(want("a", 1).spentNow())
			late, behind := m.queue(want("b", 1).spentNow()), m.queue(want("c", 1))
			m.sleep(slackOfMinute + time.Minute + slice(time.Minute) + 100*time.Millisecond) // now it is granted
			m.sleep(600 * time.Millisecond)                                                  // a busy machine
			r := m.poll(late)
			if r.State != store.Granted || r.GrantedAt != m.now() {
				m.Fatalf("it is %v since %v", r.State, m.now().Sub(r.GrantedAt))
			}
			collected := m.elapsed()
			m.pass(2 * time.Minute)
			m.between(behind, collected+slackOfMinute+time.Minute, collected+slackOfMinute+time.Minute+slice(time.Minute)+100*time.Millisecond)
		})
	}
	s.test("one who waited is spent when it is collected", spec(slots(1)), func(m *member) {
		first := m.take(want("a", 1))
		waits, behind := m.queue(want("b", 1).spentNow()), m.queue(want("c", 1))
		m.close(first)
		m.sleep(0)
		if r := m.poll(waits); r.State != store.Granted {
			m.Fatalf("it is %v", r.State)
		}
		m.state(waits, store.Ended)
		m.collect()
		m.grantedAt(behind)
	})
}

// keeping tests tickets that live longer than expected.
func keeping(s *suite) {
	s.test("a poll lets a held ticket live on", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1).ttl(time.Minute))
		for range 5 {
			m.sleep(50 * time.Second)
			if r := m.do(store.Op{Kind: store.OpPoll, ID: id, TTL: time.Minute}); r.State != store.Granted {
				m.Fatalf("it is %v", r.State)
			}
		}
		m.used(0, 1)
		m.sleep(61 * time.Second)
		m.state(id, store.Ended)
		m.used(0, 0)
	})
}

// looking tests read-only members.
func looking(s *suite) {
	s.test("who only looks leaves limits as they are", spec(rolling(100, time.Minute)), func(m *member) {
		m.take(want("a", 40))
		smaller := spec(rolling(10, time.Minute))
		smaller.ReadOnly = true
		p, err := m.harness.Store.Pool(context.Background(), smaller)
		if err != nil {
			m.Fatal(err)
		}
		snap, err := p.Snapshot(context.Background())
		if err != nil {
			m.Fatal(err)
		}
		if l := snap.Limits[0]; l.Size != 100 || l.Used != 40 {
			m.Errorf("%d of %d are used", l.Used, l.Size)
		}
		m.take(want("a", 60))
	})
	s.test("a size tells whose it is", spec(rolling(100, time.Minute)), func(m *member) {
		small := spec(rolling(10, time.Minute))
		small.Member = "the careful one"
		join(m.T, m.harness, small)
		if by := m.limit(0).By; by != "the careful one" {
			m.Errorf("it is that of %q", by)
		}
		m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 5, unstated, unstated)})
		if by := m.limit(0).By; by != "" {
			m.Errorf("the provider has stated it, not %q", by)
		}
	})
}
