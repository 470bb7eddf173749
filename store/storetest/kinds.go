package storetest

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/store"
)

// slice is how late a rolling window of this length may be.
func slice(window time.Duration) time.Duration { return (window + 255) / 256 }

func kinds(s *suite) {
	s.test("a bucket gives its burst and then its rate, to the microsecond", spec(bucket(5, 10)), func(m *member) {
		for range 10 {
			m.take(want("a", 1))
		}
		first, second, third := m.queue(want("a", 1)), m.queue(want("a", 3)), m.queue(want("a", 1))
		m.pass(2 * time.Second)
		m.exactly(first, 200*time.Millisecond)
		m.exactly(second, 800*time.Millisecond)
		m.exactly(third, time.Second)
	})
	s.test("a bucket fills to its burst and no further", spec(bucket(5, 10)), func(m *member) {
		m.take(want("a", 10))
		m.sleep(time.Hour)
		m.used(0, 0)
		m.take(want("a", 10))
		m.refused(want("a", 1).try(), store.CodeLimit)
	})
	s.test("a bucket whose rate is a fraction loses nothing to rounding", spec(
		store.Limit{Kind: store.Bucket, Size: 7, Burst: 2, Window: time.Minute, Guard: store.GuardOff},
	), func(m *member) {
		str := m.stream(want("a", 1), 2)
		m.pass(10 * time.Minute)
		if str.granted != 72 { // two at once, then 70
			m.Errorf("%d granted in ten minutes at 7 a minute, want 72", str.granted)
		}
	})
	for _, size := range []int64{5, 2_000_000} {
		s.test("a rolling window gives a charge back one window later, within a slice", spec(rolling(size, time.Minute)), func(m *member) {
			m.take(want("a", size-size/5))
			m.sleep(10 * time.Second)
			m.take(want("a", size/5))
			m.refused(want("a", 1).try(), store.CodeLimit)
			early, late := m.queue(want("a", size-size/5)), m.queue(want("a", size/5))
			m.pass(75 * time.Second)
			m.between(early, time.Minute, time.Minute+slice(time.Minute))
			m.between(late, 70*time.Second, 70*time.Second+slice(time.Minute))
		})
	}
	s.test("no stretch of a rolling window's length holds more than its size", spec(rolling(20, 4*time.Second)), func(m *member) {
		m.stream(want("a", 1), 5)
		m.stream(want("b", 3), 5)
		m.pass(30 * time.Second)
		for i, g := range m.grants {
			total := int64(0)
			for _, h := range m.grants[i:] {
				if h.GrantedAt.Sub(g.GrantedAt) >= 4*time.Second {
					break
				}
				total++ // each has at least one unit
			}
			if total > 20 {
				m.Fatalf("%d grants within a window of 20", total)
			}
		}
		if len(m.grants) < 60 {
			m.Errorf("%d grants in 30 s, want at least 60", len(m.grants))
		}
	})
	s.test("a fixed window of our own opens at its reset", spec(
		store.Limit{Kind: store.Fixed, Size: 3, Window: time.Hour, Guard: store.GuardOff, Reset: Start.Add(-50 * time.Minute)},
	), func(m *member) {
		reset := m.limit(0).Reset
		if left := reset.Sub(m.now()); left <= 0 || left > time.Hour {
			m.Fatalf("the reset is %v away, want within the hour", left)
		}
		m.take(want("a", 3))
		m.refused(want("a", 1).try(), store.CodeLimit)
		id := m.queue(want("a", 3))
		m.pass(time.Hour)
		if at := m.grantedAt(id); at != reset {
			m.Errorf("granted %v after the reset, want at the reset", at.Sub(reset))
		}
	})
	s.test("a provider's window opens when its reset is certainly over", spec(
		store.Limit{Kind: store.Fixed, Size: 3, Window: time.Hour, Reset: Start.Add(-50 * time.Minute)},
	), func(m *member) {
		id := m.take(want("a", 3))
		m.answer(id, store.VerdictOK)
		m.close(id)
		next := m.queue(want("a", 3))
		m.pass(time.Hour + 2*time.Second)
		stated := Start.Add(-50 * time.Minute)
		for stated <= m.began {
			stated = stated.Add(time.Hour)
		}
		if late := m.grantedAt(next).Sub(stated); late != 1200*time.Millisecond {
			m.Errorf("granted %v after the stated reset, want 1.2s", late)
		}
	})
	s.test("a place comes back when its ticket is closed, and not with time", spec(slots(2)), func(m *member) {
		a, b := m.take(want("a", 1)), m.take(want("b", 1))
		m.refused(want("c", 1).try(), store.CodeLimit)
		c := m.queue(want("c", 1))
		m.pass(30 * time.Second)
		if m.wasGranted(c) {
			m.Fatal("granted with no place free")
		}
		m.answer(a, store.VerdictOK)
		m.state(c, store.Waiting)
		m.close(a)
		m.collect()
		m.exactly(c, 30*time.Second)
		m.close(b)
		m.close(c)
		m.used(0, 0)
	})
	s.test("a request may take several places", spec(slots(5)), func(m *member) {
		a := m.take(want("a", 3))
		big, small := m.queue(want("b", 4)), m.queue(want("c", 1))
		m.close(a)
		m.collect()
		m.exactly(big, 0)
		m.exactly(small, 0)
	})
}

func several(s *suite) {
	s.test("a request takes from all limits or from none", spec(bucket(10, 10), slots(1)), func(m *member) {
		a := m.take(want("a", 1, 1))
		b := m.queue(want("b", 5, 1))
		m.used(0, 1)
		m.used(1, 1)
		m.pass(time.Second)
		m.used(0, 0) // nothing is held while it waits for the rest
		m.close(a)
		m.collect()
		m.exactly(b, time.Second)
		m.used(0, 5)
		m.used(1, 1)
	})
	s.test("a refusal takes nothing", spec(bucket(10, 10), slots(1), rolling(5, time.Minute)), func(m *member) {
		m.take(want("a", 1, 1, 1))
		m.refused(want("b", 1, 1, 1).try(), store.CodeLimit)
		m.refused(want("b", 1, 0, 6).try(), store.CodeCapacity)
		m.used(0, 1)
		m.used(1, 1)
		m.used(2, 1)
	})
	s.test("all sixteen limits count", spec(sixteen()...), func(m *member) {
		all := want("a")
		for i := range store.MaxLimits {
			all = all.costs(i, 1)
		}
		m.take(all)
		for i := range store.MaxLimits {
			if res := m.refused(want("b").costs(i, 1).try(), store.CodeLimit); res.Reason.Limit != m.name(i) {
				m.Errorf("refused for limit %s, want %s", res.Reason.Limit, m.name(i))
			}
		}
	})
	tokens := store.Limit{Kind: store.Rolling, Unit: "tokens", Size: 100, Window: time.Minute, Guard: store.GuardOff}
	s.test("amounts are of units or of single limits", spec(bucket(5, 50), slots(5), tokens), func(m *member) {
		used := func(requests, open, tokens int64) {
			m.Helper()
			m.used(0, requests)
			m.used(1, open)
			m.used(2, tokens)
		}
		m.take(want("a").unit("requests", 1))
		used(1, 1, 0)
		m.take(want("a").unit("tokens", 7).unit("bytes", 9)) // no limit counts bytes
		used(1, 1, 7)
		m.take(want("a").unit("requests", 2).costs(1, 0)) // the last one counts
		used(3, 1, 7)
		m.take(want("a").costs(0, 9).unit("requests", 1).costs(1, 2))
		used(4, 3, 7)
		m.take(want("a").amount(store.Amount{Unit: "tokens", Limit: place(0), N: 30})) // a limit of this name counts another unit
		m.take(want("a").amount(store.Amount{Unit: "requests", Limit: "other", N: 30}))
		m.take(want("a").amount(store.Amount{Unit: "tokens", Limit: place(2), N: 30}))
		used(4, 3, 37)
	})
	s.test("what was used may be nothing", spec(rolling(100, time.Minute), tokens), func(m *member) {
		id := m.take(want("a", 1, 50))
		m.answer(id, store.VerdictOK)
		m.ends(store.Op{Kind: store.OpClose, ID: id, Amounts: []store.Amount{{Unit: "tokens"}}})
		m.used(0, 1)
		m.used(1, 0)
		for _, n := range []int64{-1, store.MaxAmount + 1} { // not stated
			m.ends(store.Op{Kind: store.OpClose, ID: m.take(want("a", 0, 10)), Amounts: []store.Amount{{Unit: "tokens", N: n}}})
		}
		m.ends(store.Op{Kind: store.OpClose, ID: m.take(want("a", 0, 10))})
		m.ends(store.Op{Kind: store.OpClose, ID: m.take(want("a", 0, 10)), Amounts: make([]store.Amount, store.MaxAmounts+1)})
		m.used(1, 40)
	})
	s.test("a cost above the capacity is refused at once and charges nothing", spec(bucket(5, 10), slots(3)), func(m *member) {
		res := m.refused(want("a", 1, 4), store.CodeCapacity)
		if res.Reason.Limit != m.name(1) {
			m.Errorf("refused for limit %s, want 1", res.Reason.Limit)
		}
		if res = m.refused(want("a", 11, 1), store.CodeCapacity); res.Reason.Limit != m.name(0) {
			m.Errorf("refused for limit %s, want 0", res.Reason.Limit)
		}
		m.used(0, 0)
		m.used(1, 0)
		m.take(want("a", 10, 3))
	})
	s.test("a request that costs nothing is granted on a full pool", spec(bucket(1, 1)), func(m *member) {
		m.take(want("a", 1))
		m.queue(want("a", 1))
		id := m.take(want("b"))
		m.close(id)
		m.used(0, 1)
	})
	s.test("a batch is one moment, in order", spec(slots(1)), func(m *member) {
		id := m.take(want("a", 1))
		b, c := want("b", 1), want("c", 1)
		b.op.ID.N, c.op.ID.N = 10, 11
		got := m.apply(b.op, store.Op{Kind: store.OpClose, ID: id}, c.op)
		if got[0].State != store.Granted || got[1].State != store.Ended || got[2].State != store.Waiting {
			m.Errorf("got %v, %v and %v; want granted, ended, waiting", got[0].State, got[1].State, got[2].State)
		}
		if got[0].Now != got[2].Now || got[0].Now != m.now() {
			m.Errorf("times of one batch: %d, %d; now is %d", got[0].Now, got[2].Now, m.now())
		}
	})
}

func sixteen() []store.Limit {
	limits := make([]store.Limit, store.MaxLimits)
	for i := range limits {
		limits[i] = slots(1)
	}
	return limits
}

func scopes(s *suite) {
	base := want("a", 1).user("u").model("m").tool("t").key("k")
	others := []struct {
		name  string
		scope store.Scope
		req   request
	}{
		{"agent", store.PerAgent, want("b", 1).user("u").model("m").tool("t").key("k")},
		{"user", store.PerUser, base.user("v")},
		{"model", store.PerModel, base.model("n")},
		{"tool", store.PerTool, base.tool("s")},
		{"key", store.PerKey, base.key("l")},
	}
	for i, o := range others {
		s.test("per "+o.name, spec(per(slots(1), o.scope)), func(m *member) {
			m.take(base)
			m.refused(base.try(), store.CodeLimit)
			for j, other := range others {
				if i == j {
					m.take(other.req)
				}
				m.refused(other.req.try(), store.CodeLimit)
			}
		})
		for j, p := range others[:i] {
			s.test("per "+p.name+" and "+o.name, spec(per(slots(1), o.scope|p.scope)), func(m *member) {
				m.take(base)
				m.take(o.req)
				m.take(p.req)
				m.refused(base.try(), store.CodeLimit)
				for k, other := range others {
					if k != i && k != j {
						m.refused(other.req.try(), store.CodeLimit)
					}
				}
			})
		}
	}
	s.test("an unset attribute is a value like any other", spec(per(slots(1), store.PerUser)), func(m *member) {
		m.take(want("a", 1))
		m.refused(want("b", 1).try(), store.CodeLimit)
		m.take(want("b", 1).user("u"))
	})
	s.test("scoped and common limits bind together", spec(per(bucket(5, 5), store.PerAgent), slots(3)), func(m *member) {
		for range 2 {
			m.take(want("a", 2, 1))
		}
		if res := m.refused(want("a", 2, 1).try(), store.CodeLimit); res.Reason.Limit != m.name(0) {
			m.Errorf("lacks limit %s, want 0", res.Reason.Limit)
		}
		m.take(want("b", 2, 1))
		if res := m.refused(want("b", 2, 1).try(), store.CodeLimit); res.Reason.Limit != m.name(1) {
			m.Errorf("lacks limit %s, want 1", res.Reason.Limit)
		}
	})
}

func unknownSizes(s *suite) {
	unknown := store.Limit{Kind: store.Rolling, Window: time.Minute}
	s.test("a limit of unknown size refuses nothing", spec(unknown, plenty()), func(m *member) {
		for range 100 {
			m.take(want("a", store.MaxAmount/200, 1))
		}
		if l := m.limit(0); l.Size != 0 || l.Used != store.MaxAmount/200*100 {
			m.Errorf("size %d, used %d; want 0 and all that was taken", l.Size, l.Used)
		}
	})
	s.test("a pool that knows no size ramps", spec(unknown), func(m *member) {
		m.answer(m.take(want("a", 1)), store.VerdictOK)
		for range 20 {
			m.queue(want("a", 1))
		}
		for _, total := range []int{1, 6, 16, 20} {
			m.flow(500 * time.Millisecond)
			m.only(total)
		}
	})
	s.test("the ramp ends when an answer states the size", spec(unknown), func(m *member) {
		first := m.take(want("a", 1))
		for range 20 {
			m.queue(want("a", 1))
		}
		m.only(0)
		m.answered(store.Op{ID: first, Verdict: store.VerdictOK, Observed: states(0, 12, 11, unstated)})
		m.pass(time.Millisecond)
		m.only(11) // everything that the limit holds
		if g := m.snapshot().Gates; len(g) != 0 {
			m.Errorf("%+v", g)
		}
		m.pass(5 * time.Second)
		m.only(11)
	})
	s.test("and leaves what others have used", spec(unknown), func(m *member) {
		first := m.take(want("a", 1))
		for range 20 {
			m.queue(want("a", 1))
		}
		m.answered(store.Op{ID: first, Verdict: store.VerdictOK, Observed: states(0, 12, 5, unstated)})
		m.pass(time.Millisecond)
		m.only(5)
	})
	s.test("a ramp after a pause goes on", spec(unknown), func(m *member) {
		first := m.take(want("a", 1))
		for range 20 {
			m.queue(want("a", 1))
		}
		m.ends(store.Op{Kind: store.OpPause, RetryAfter: time.Minute})
		m.ends(store.Op{Kind: store.OpResume})
		m.answered(store.Op{ID: first, Verdict: store.VerdictOK, Observed: states(0, 12, 11, unstated)})
		m.collect()
		m.only(1)
	})
	s.test("models that come back after a long time ramp again", spec(store.Limit{Kind: store.Rolling, Window: time.Minute, Per: store.PerModel}), func(m *member) {
		for range 2 {
			for i := range 100 {
				model := fmt.Sprint("model", i)
				id := m.take(want("a", 1).model(model))
				m.refused(want("a", 1).model(model).try(), store.CodeRamp)
				m.answer(id, store.VerdictOK)
				m.close(id)
			}
			m.sleep(61 * time.Minute)
		}
	})
	s.test("a pool without limits ramps too", spec(), func(m *member) {
		m.take(want("a"))
		if res := m.refused(want("a").try(), store.CodeRamp); !res.Held {
			m.Error("a ramping pool should tell retries that it holds them")
		}
	})
}

func invalid(s *suite) {
	long := string(make([]byte, store.MaxName+1))
	for name, change := range map[string]func(op *store.Op){
		"no agent":        func(op *store.Op) { op.Agent = "" },
		"long agent":      func(op *store.Op) { op.Agent = long },
		"long user":       func(op *store.Op) { op.User = long },
		"long model":      func(op *store.Op) { op.Model = long },
		"long tool":       func(op *store.Op) { op.Tool = long },
		"long key":        func(op *store.Op) { op.Key = long },
		"no such class":   func(op *store.Op) { op.Class = 3 },
		"negative cost":   func(op *store.Op) { op.Amounts[0].N = -1 },
		"huge cost":       func(op *store.Op) { op.Amounts[0].N = store.MaxAmount + 1 },
		"many amounts":    func(op *store.Op) { op.Amounts = make([]store.Amount, store.MaxAmounts+1) },
		"no time to live": func(op *store.Op) { op.TTL = 0 },
		"endless ticket":  func(op *store.Op) { op.TTL = store.MaxTTL + 1 },
		"negative alive":  func(op *store.Op) { op.Alive = -1 },
		"endless wait":    func(op *store.Op) { op.Wait = store.MaxWindow + 1 },
		"no such kind":    func(op *store.Op) { op.Kind = 99 },
	} {
		s.test(name, spec(slots(1)), func(m *member) {
			r := want("a", 1)
			change(&r.op)
			m.refused(r, store.CodeInvalid)
			m.used(0, 0)
			m.take(want("a", 1))
		})
	}
	s.test("a pause of no length", spec(slots(1)), func(m *member) {
		if res := m.do(store.Op{Kind: store.OpPause}); res.State != store.Refused || res.Reason.Code != store.CodeInvalid {
			m.Errorf("got %v (%v), want refused as invalid", res.State, res.Reason.Code)
		}
	})
}
