package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

func breaking(open bool, s store.Spec) store.Spec {
	s.Breaker = store.Breaker{Within: 2 * time.Minute, Samples: 10, Open: open}
	return s
}

// sees states what is left of a stock of 1000 that is reset an hour after the start.
func (m *member) sees(left int64) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 1000, left, time.Hour-m.elapsed())})
}

// falls reports these amounts as left, one every second from now on.
func (m *member) falls(lefts ...int64) {
	m.Helper()
	for _, left := range lefts {
		m.sleep(time.Second)
		m.sees(left)
	}
}

func (m *member) tripped(want bool, samples int, gone store.Time) {
	m.Helper()
	want2 := store.BreakerState{Tripped: want, Samples: samples, Gone: gone}
	if b := m.limit(0).Breaker; b != want2 {
		m.Fatalf("%v after the start the breaker is %+v, want %+v", m.elapsed(), b, want2)
	}
}

func breakers(s *suite) {
	const hour = time.Hour
	end := Start.Add(hour + doubt)
	glide := breaking(false, spec(stock(1000, hour)))
	open := breaking(true, spec(stock(1000, hour)))
	after := func(d time.Duration) store.Time { return Start.Add(d) }
	second := time.Second

	s.test("it trips when the quota will be gone soon", glide, func(m *member) {
		m.falls(900, 800)
		m.tripped(false, 2, 0)
		m.take(want("b", 1))
		m.falls(700)
		m.tripped(true, 3, after(10*second))
		m.refused(want("b", 1).try(), store.CodeBreaker)
	})
	s.test("lower classes glide to the reset along a line", glide, func(m *member) {
		m.falls(900, 800, 700) // 700 are left 3 s after the start
		line := end.Sub(after(3 * second))
		m.keptUntil(m.queue(want("b", 1)), store.CodeBreaker, 0, sinks(700, line, end, 699))
		m.keptUntil(m.queue(want("c", 1).class(2)), store.CodeBreaker, 0, sinks(700, line, end, 698))
		m.keptUntil(m.queue(want("b", 10)), store.CodeBreaker, 0, sinks(700, line, end, 688))
		m.tripped(true, 3, after(10*second))
	})
	s.test("while somebody waits it glides on, however few samples there are", glide, func(m *member) {
		m.falls(900, 800, 700)
		line := end.Sub(after(3 * second))
		m.keptUntil(m.queue(want("b", 100)), store.CodeBreaker, 0, sinks(700, line, end, 600))
		m.tripped(true, 0, 0)
	})
	s.test("the highest class is never slowed", glide, func(m *member) {
		m.falls(900, 800, 700)
		held := m.queue(want("b", 1))
		m.take(want("a", 500).class(0))
		m.take(want("a", 100).emergency())
		m.state(held, store.Waiting)
	})
	s.test("nor by one that is open", open, func(m *member) {
		m.falls(900, 800, 700)
		held := m.queue(want("b", 1))
		m.take(want("a", 600).class(0))
		m.take(want("a", 100).emergency())
		m.state(held, store.Waiting)
	})
	s.test("an open one stops lower classes until it knows too little, and then ramps", open, func(m *member) {
		m.falls(900, 800, 700)
		var ids []store.ID
		for range 7 {
			ids = append(ids, m.queue(want("b", 1)))
		}
		shut := after(121*second + time.Microsecond) // the first of three samples is too old by then
		m.keptUntil(ids[0], store.CodeBreaker, 0, shut)
		m.tripped(false, 2, 0)
		m.pass(2 * second)
		for i, step := range []time.Duration{0, 500, 1000, 1000, 1500, 1500, 1500} {
			m.exactly(ids[i], shut.Sub(m.began)+step*time.Millisecond)
		}
	})
	s.test("it closes at the reset", open, func(m *member) {
		m.sleep(hour - time.Minute)
		m.falls(900, 500, 100)
		m.tripped(true, 3, m.now().Add(250*time.Millisecond))
		m.keptUntil(m.queue(want("b", 1)), store.CodeBreaker, 0, end)
		m.tripped(false, 0, 0)
	})
	s.test("a glide reaches the reset with nothing left", glide, func(m *member) {
		m.sleep(hour - time.Minute)
		m.falls(900, 500, 100)
		last := m.queue(want("b", 100))
		r := m.poll(last)
		if want := sinks(100, end.Sub(m.now()), end, 0); r.Reason.At != want {
			m.Errorf("all of it goes at %v, want %v", r.Reason.At.Sub(m.began), want.Sub(m.began))
		}
		m.keptUntil(last, store.CodeBreaker, 0, r.Reason.At)
	})
	s.test("it closes when the quota rises", open, func(m *member) {
		m.falls(900, 800, 700)
		ids := []store.ID{m.queue(want("b", 1)), m.queue(want("b", 1))}
		m.falls(950)
		m.tripped(false, 1, 0)
		m.pass(second)
		m.exactly(ids[0], 4*second)
		m.exactly(ids[1], 4500*time.Millisecond)
	})
	s.test("a reset just ahead trips nothing", glide, func(m *member) {
		m.sleep(hour - 5*second)
		m.falls(900, 800, 700)
		m.tripped(false, 3, m.now().Add(7*second))
		m.take(want("b", 1))
	})
	s.test("nor does what is far off", glide, func(m *member) {
		m.falls(999, 998, 997, 996)
		m.tripped(false, 4, after(1000*second))
	})
	s.test("nor a level line", glide, func(m *member) {
		m.falls(10, 10, 10, 10)
		m.tripped(false, 4, 0)
	})
	s.test("a reset that nobody knows never trips it", breaking(false, spec(store.Limit{Kind: store.Fixed, Size: 1000, Window: hour})), func(m *member) {
		for _, left := range []int64{900, 600, 300, 100} {
			m.sleep(second)
			m.ends(store.Op{Kind: store.OpObserve, Observed: states(0, 1000, left, unstated)})
		}
		m.take(want("b", 50))
	})
	s.test("samples older than two minutes say nothing", glide, func(m *member) {
		m.falls(900)
		m.sleep(2 * time.Minute)
		m.falls(500, 100)
		m.tripped(false, 2, 0)
	})
	few := breaking(false, spec(stock(1000, hour)))
	few.Breaker.Samples = 3
	s.test("only the last samples count", few, func(m *member) {
		m.falls(1000, 990, 989, 988)
		m.tripped(false, 3, m.now().Add(988*second))
	})
	s.test("answers that passed each other on the way are no rise", open, func(m *member) {
		ids := []store.ID{m.take(want("b", 100)), m.take(want("b", 100)), m.take(want("b", 100)), m.take(want("b", 100))}
		for i, left := range []int64{900, 700, 800, 600} {
			m.sleep(second)
			m.answered(store.Op{ID: ids[i], Verdict: store.VerdictOK, Observed: states(0, 1000, left, hour-m.elapsed())})
			m.close(ids[i])
		}
		if b := m.limit(0).Breaker; !b.Tripped || b.Samples != 4 {
			m.Errorf("%+v, want it tripped by four samples", b)
		}
	})
	s.test("each model's stock has one of its own", breaking(true, spec(per(stock(1000, hour), store.PerModel), plenty())), func(m *member) {
		for i, left := range []int64{900, 600, 300} {
			m.sleep(second)
			m.ends(store.Op{Kind: store.OpObserve, Model: "opus", Observed: states(0, 1000, left, hour-time.Duration(i+1)*second)})
		}
		m.refused(want("b", 1, 1).model("opus").try(), store.CodeBreaker)
		m.take(want("b", 1, 1).model("haiku"))
	})
	s.test("it can be turned off under those who wait", open, func(m *member) {
		m.falls(900, 800, 700)
		id := m.queue(want("b", 1))
		join(m.T, m.harness, spec(stock(1000, hour)))
		m.collect()
		m.exactly(id, 3*second)
	})
	s.test("a quota lasts until its reset though lower classes press", glide, func(m *member) {
		m.sleep(30 * time.Minute)
		sent, empty, waits := int64(0), false, store.ID{}
		for m.now() < end-2_000_000 {
			m.pass(250 * time.Millisecond)
			switch {
			case waits.IsZero():
				r := m.do(want("b", 1).op)
				if waits = r.ID; r.State == store.Granted {
					m.close(r.ID)
					sent, waits = sent+1, store.ID{}
				}
			case m.wasGranted(waits):
				m.close(waits)
				sent, waits = sent+1, store.ID{}
				m.grants = m.grants[:0]
			}
			if m.now()%4 == 0 || sent%7 == 0 {
				m.sees(1000 - sent)
			}
			empty = empty || sent == 1000 && end.Sub(m.now()) > 10*second
		}
		if empty || sent < 950 {
			m.Errorf("%d were used by the reset, and it was empty before: %t", sent, empty)
		}
	})
}
