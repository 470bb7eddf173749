package storetest

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// doubt is how far off a configured reset may be.
const doubt = 1200 * time.Millisecond

// stock is a quota of the provider that is reset a window after the start of the test, give or take the doubt.
func stock(size int64, window time.Duration) store.Limit {
	return store.Limit{Kind: store.Fixed, Size: size, Window: window, Reset: Start.Add(window)}
}

// lit enables the light: 20% and 5%.
func lit(s store.Spec) store.Spec {
	s.Light = store.Light{Green: 200, Red: 50}
	return s
}

func static(s store.Spec) store.Spec {
	s.Light.Static = true
	return s
}

func everywhere(s store.Spec) store.Spec {
	s.Light.All = true
	return s
}

func (r request) emergency() request { r.op.Class, r.op.Emergency = 0, true; return r }

// sinks returns when a floor allows that only left is left behind. The floor sinks from amount to 0 at end, over a
// window, and is rounded to the nearest.
func sinks(amount int64, window time.Duration, end store.Time, left int64) store.Time {
	w := window.Microseconds()
	remains := ((2*left+1)*w+2*amount-1)/(2*amount) - 1
	return end - store.Time(remains)
}

// keptUntil checks that a ticket waits for a reason until a stated time: it still waits one microsecond before, and
// is granted then.
func (m *member) keptUntil(id store.ID, code store.Code, limit int, at store.Time) {
	m.Helper()
	r := m.poll(id)
	if r.State != store.Waiting || r.Reason.Code != code || r.Reason.Limit != m.name(limit) || r.Reason.At != at {
		m.Fatalf("%v after the start it is %v (%v on limit %s until %v), want it to wait (%v on %d until %v)", m.elapsed(),
			r.State, r.Reason.Code, r.Reason.Limit, r.Reason.At.Sub(m.began), code, limit, at.Sub(m.began))
	}
	m.sleep(at.Sub(m.now()) - time.Microsecond)
	m.collect()
	if m.wasGranted(id) {
		m.Fatalf("granted at %v, before the stated %v", m.grantedAt(id).Sub(m.began), at.Sub(m.began))
	}
	m.sleep(time.Microsecond)
	m.collect()
	m.exactly(id, at.Sub(m.began))
}

// kept asks without waiting, and must be refused for this reason until this time.
func (m *member) kept(r request, code store.Code, at store.Time) {
	m.Helper()
	res := m.refused(r.try(), code)
	if res.Reason.At != at || res.Reason.Limit == "" {
		m.Errorf("refused (%v) on limit %q until %v, want until %v", code, res.Reason.Limit, res.Reason.At.Sub(m.began), at.Sub(m.began))
	}
}

// shines checks the colour of a limit, and that of the pool.
func (m *member) shines(limit, pool store.Color) {
	m.Helper()
	if s := m.snapshot(); s.Limits[0].Light != limit || s.Light != pool {
		m.Errorf("%v after the start the light of the first limit is %v and that of the pool %v, want %v and %v",
			m.elapsed(), s.Limits[0].Light, s.Light, limit, pool)
	}
}

func lights(s *suite) {
	const hour = time.Hour
	end := Start.Add(hour + doubt)
	s.test("lower classes leave a fifth, the highest a twentieth, an emergency nothing", lit(spec(stock(1000, hour))), func(m *member) {
		m.take(want("b", 800))
		m.shines(store.Green, store.Green)
		m.kept(want("b", 1), store.CodeLight, sinks(200, hour, end, 199))
		m.kept(want("c", 1).class(2), store.CodeLight, sinks(200, hour, end, 199))
		m.take(want("a", 1).class(0))
		m.shines(store.Amber, store.Amber)
		m.take(want("a", 149).class(0))
		m.kept(want("a", 1).class(0), store.CodeLight, sinks(50, hour, end, 49))
		m.shines(store.Amber, store.Amber)
		m.take(want("a", 1).emergency())
		m.shines(store.Red, store.Red)
		m.take(want("a", 49).emergency())
		m.refused(want("a", 1).emergency().try(), store.CodeLimit)
		m.used(0, 1000)
	})
	shared := lit(spec(stock(1000, hour)))
	shared.Shares = true
	s.test("what others have spent is nobody's share, and on amber the highest class goes", shared, func(m *member) {
		spend := func(remaining int64) {
			m.ends(store.Op{Kind: store.OpObserve, Verdict: store.VerdictOK, Observed: states(0, 1000, remaining, hour)})
		}
		spend(500)
		for class := range uint8(3) { // each has a share of what is left
			m.take(want(string('a'+rune(class)), 1).class(class))
		}
		spend(150)
		m.shines(store.Amber, store.Amber)
		m.refused(want("b", 1).class(1).try(), store.CodeLight)
		m.refused(want("c", 1).class(2).try(), store.CodeLight)
		m.take(want("a", 90).class(0)) // although the others have hardly used theirs
		spend(30)
		m.shines(store.Red, store.Red)
		m.refused(want("a", 1).class(0).try(), store.CodeLight)
		m.take(want("a", 1).emergency())
	})
	s.test("it sinks with the time left, and who waits goes at the stated moment", lit(spec(stock(1000, hour))), func(m *member) {
		m.take(want("b", 800))
		first := m.queue(want("b", 1))
		if w := m.snapshot().Queue[0]; w.Expected != sinks(200, hour, end, 199) || w.Reason.At != w.Expected || w.Reason.Code != store.CodeLight {
			m.Errorf("%+v", w)
		}
		m.keptUntil(first, store.CodeLight, 0, sinks(200, hour, end, 199))
		m.keptUntil(m.queue(want("b", 50)), store.CodeLight, 0, sinks(200, hour, end, 149))
		m.keptUntil(m.queue(want("b", 1).class(2)), store.CodeLight, 0, sinks(200, hour, end, 148))
		m.take(want("a", 1).class(0))
		last := m.queue(want("b", 147))
		m.keptUntil(last, store.CodeLight, 0, sinks(200, hour, end, 0))
		m.used(0, 1000)
		m.shines(store.Green, store.Green) // nothing is left, and nothing has to be
	})
	s.test("what is left at the reset is not kept for anybody", lit(spec(stock(10, hour))), func(m *member) {
		for range 8 {
			m.take(want("b", 1))
		}
		for left := int64(1); left >= 0; left-- {
			m.keptUntil(m.queue(want("b", 1)), store.CodeLight, 0, sinks(2, hour, end, left))
		}
	})
	s.test("a static light keeps it until the reset", static(lit(spec(stock(1000, hour)))), func(m *member) {
		m.take(want("b", 800))
		m.sleep(50 * time.Minute)
		m.kept(want("b", 1), store.CodeLight, end)
		m.take(want("a", 150).class(0))
		m.kept(want("a", 1).class(0), store.CodeLight, end)
		m.shines(store.Amber, store.Amber)
		m.take(want("a", 50).emergency())
		m.shines(store.Red, store.Red)
		id := m.queue(want("b", 1))
		m.sleep(end.Sub(m.now()) - time.Microsecond)
		m.shines(store.Red, store.Red)
		m.sleep(time.Microsecond)
		m.collect()
		m.exactly(id, hour+doubt)
		m.shines(store.Green, store.Green)
	})
	s.test("a large request can go right after the reset", static(lit(spec(stock(100, hour)))), func(m *member) {
		m.take(want("b", 100))
		whole, most := m.queue(want("b", 100).class(2)), m.queue(want("b", 90))
		m.keptUntil(most, store.CodeLight, 0, end)
		m.state(whole, store.Waiting)
		m.answer(most, store.VerdictOK)
		m.close(most)
		m.sleep(hour - time.Microsecond)
		m.state(whole, store.Waiting)
		m.sleep(time.Microsecond)
		m.collect()
		m.exactly(whole, 2*hour+doubt)
	})
	for name, o := range map[string]store.Order{"fair": store.Fair, "strict": store.Strict, "fifo": store.FIFO} {
		s.test("one of the highest class goes past one that the light holds, "+name, ordered(o, lit(spec(stock(1000, hour), plenty()))), func(m *member) {
			m.take(want("b", 800, 1))
			held := m.queue(want("c", 100, 1).class(2))
			m.queue(want("b", 1, 1))
			m.take(want("a", 1, 1).class(0))
			m.take(want("a", 1, 1).emergency())
			m.take(want("x", 0, 1)) // it does not need the stock
			m.state(held, store.Waiting)
		})
	}
	s.test("small ones of a class do not pass a large one of it", lit(spec(stock(1000, hour), plenty(), plenty())), func(m *member) {
		m.take(want("b", 750, 1))
		large := m.queue(want("large", 100, 1).class(2))
		small := m.queue(want("small", 1, 0, 1).class(2)) // in another lane
		m.take(want("other", 50, 0, 1))                   // of another class
		m.keptUntil(large, store.CodeLight, 0, sinks(200, hour, end, 100))
		m.state(small, store.Waiting)
	})
	s.test("a short window is no stock that has to last", lit(spec(stock(100, store.LightFrom-time.Second))), func(m *member) {
		m.take(want("b", 100))
		m.shines(store.Red, store.Red)
		m.refused(want("b", 1).try(), store.CodeLimit)
	})
	s.test("one of ten minutes is", lit(spec(stock(100, store.LightFrom))), func(m *member) {
		m.take(want("b", 80))
		m.refused(want("b", 1).try(), store.CodeLight)
	})
	s.test("on flows it only shines", lit(spec(guarded(rolling(100, hour), store.GuardAuto), bucket(1, 10))), func(m *member) {
		m.take(want("b", 100, 10))
		m.shines(store.Red, store.Red)
	})
	s.test("where a stock is known its light is the pool's", lit(spec(guarded(rolling(100, hour), store.GuardAuto), stock(1000, hour))), func(m *member) {
		m.take(want("b", 100, 10))
		m.shines(store.Red, store.Green)
	})
	s.test("bound everywhere it holds on a bucket", everywhere(lit(spec(bucket(1, 10)))), func(m *member) {
		m.take(want("b", 8))
		m.keptUntil(m.queue(want("b", 1)), store.CodeLight, 0, Start.Add(time.Second))
		m.take(want("a", 2).class(0)) // a twentieth of ten is 0
	})
	s.test("bound everywhere it holds on a rolling window", everywhere(lit(spec(rolling(100, hour)))), func(m *member) {
		m.take(want("b", 80))
		id := m.queue(want("b", 1))
		if r := m.poll(id); r.Reason.Code != store.CodeLight || r.Reason.At <= Start.Add(hour) || r.Reason.At > Start.Add(hour+slice(hour)) {
			m.Errorf("%+v", r.Reason)
		}
		m.keptUntil(id, store.CodeLight, 0, m.poll(id).Reason.At)
	})
	s.test("bound everywhere it holds on short stocks and on places", everywhere(lit(spec(stock(100, time.Minute), slots(10)))), func(m *member) {
		m.take(want("b", 80, 1))
		m.refused(want("b", 1, 1).try(), store.CodeLight)
		held := m.take(want("b", 0, 7))
		waits := m.queue(want("b", 0, 1))
		m.take(want("a", 0, 2).class(0))
		m.close(held)
		m.collect()
		m.exactly(waits, 0)
	})
	s.test("a window whose reset nobody knows is a flow", lit(spec(store.Limit{Kind: store.Fixed, Size: 100, Window: hour})), func(m *member) {
		m.take(want("b", 100))
	})
	s.test("each model's stock has a light of its own", lit(spec(per(stock(100, hour), store.PerModel), plenty())), func(m *member) {
		m.take(want("b", 80, 1).model("opus"))
		m.refused(want("b", 1, 1).model("opus").try(), store.CodeLight)
		m.take(want("b", 80, 1).model("haiku"))
	})
	s.test("a wait that ends before it is refused at once", lit(spec(stock(1000, hour))), func(m *member) {
		m.take(want("b", 800))
		at := sinks(200, hour, end, 100)
		res := m.refused(want("b", 100).wait(at.Sub(m.now())-time.Microsecond), store.CodeDeadline)
		if res.Reason.At != at {
			m.Errorf("refused until %v, want %v", res.Reason.At.Sub(m.began), at.Sub(m.began))
		}
		m.keptUntil(m.queue(want("b", 100).wait(at.Sub(m.now()))), store.CodeLight, 0, at)
	})
	s.test("a ticket that comes back frees what the light counted", lit(spec(stock(1000, hour))), func(m *member) {
		id := m.take(want("b", 800))
		waits := m.queue(want("b", 10))
		m.cancel(id)
		m.collect()
		m.exactly(waits, 0)
	})
	s.test("a redefinition turns it on and off under those who wait", spec(stock(1000, hour)), func(m *member) {
		m.take(want("b", 900))
		m.take(want("b", 50))
		on := join(m.T, m.harness, lit(spec(stock(1000, hour))))
		id := m.queue(want("b", 1))
		m.state(id, store.Waiting)
		join(m.T, m.harness, spec(stock(1000, hour)))
		m.collect()
		m.exactly(id, 0)
		on.take(want("c", 49))
	})
	s.test("an emergency is for the highest class", lit(spec(stock(1000, hour))), func(m *member) {
		r := want("b", 1).emergency()
		r.op.Class = 1
		m.refused(r, store.CodeInvalid)
	})
	s.test("an emergency goes first", spec(slots(1)), func(m *member) {
		held := m.take(want("x", 1))
		by := m.line("abe", func(name string) request {
			if name == "e" {
				return want(name, 1).emergency()
			}
			return want(name, 1).class(0)
		})
		if w := m.snapshot().Waiting; w[0] != 3 {
			m.Errorf("%v wait, want all three in the highest class", w)
		}
		for range 3 {
			m.close(held)
			m.collect()
			held = m.grants[len(m.grants)-1].ID
		}
		m.inOrder(by, "eab")
	})
	s.test("a flood of emergencies leaves the other classes something", spec(bucket(10, 1)), func(m *member) {
		m.take(want("x", 1))
		m.stream(want("e", 1).emergency(), 5)
		low := m.stream(want("c", 1).class(2), 5)
		m.pass(20 * time.Second)
		if low.granted < 2 {
			m.Errorf("%d in twenty seconds of ten a second", low.granted)
		}
	})
}
