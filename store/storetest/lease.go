package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/store"
)

// agent returns what the snapshot says about an agent, and whether it is live.
func (m *member) agent(name string) (store.Agent, bool) {
	m.Helper()
	list := m.snapshot().Agents
	if !slices.IsSortedFunc(list, func(a, b store.Agent) int { return strings.Compare(a.Name, b.Name) }) {
		m.Errorf("agents are not in order: %+v", list)
	}
	for _, a := range list {
		if a.Name == name {
			return a, true
		}
	}
	return store.Agent{}, false
}

func (m *member) dead(name string) {
	m.Helper()
	if a, alive := m.agent(name); alive {
		m.Errorf("%v after the start it is alive: %+v", m.elapsed(), a)
	}
}

func (m *member) isAgent(want store.Agent) {
	m.Helper()
	a, alive := m.agent(want.Name)
	if !alive {
		m.Fatalf("%v after the start %s is dead", m.elapsed(), want.Name)
	}
	if fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", want) {
		m.Errorf("%v after the start it is\n%+v, want\n%+v", m.elapsed(), a, want)
	}
}

// invalidOp checks that an operation is refused as invalid.
func (m *member) invalidOp(op store.Op) {
	m.Helper()
	if r := m.do(op); r.State != store.Refused || r.Reason.Code != store.CodeInvalid {
		m.Errorf("%.80v was %v (%v), want refused as invalid", op.Agent, r.State, r.Reason.Code)
	}
}

func leasing(s *suite) {
	sp := func() store.Spec { return spec(rolling(1000, time.Hour)) }
	const lease = store.DefaultLease
	s.test("a heartbeat takes a lease", sp(), func(m *member) {
		op := heartbeat("a", 1)
		op.User, op.Machine, op.WaitsFor = "u", "m", []string{"x", "y"}
		m.do(op)
		m.isAgent(store.Agent{
			Name: "a", User: "u", Machine: "m", Class: 1, Leased: true, Since: Start, Expires: Start.Add(lease),
			Allocated: 1000, WaitsFor: []string{"x", "y"},
		})
	})
	s.test("another renews it", sp(), func(m *member) {
		m.beat("a", 1)
		m.sleep(2 * time.Minute)
		op := heartbeat("a", 1)
		op.WaitsFor = []string{"b"}
		m.do(op)
		m.isAgent(store.Agent{Name: "a", Class: 1, Leased: true, Since: Start, Expires: Start.Add(lease + 2*time.Minute), Allocated: 1000, WaitsFor: []string{"b"}})
		m.sleep(time.Minute)
		m.beat("a", 1)
		m.isAgent(store.Agent{Name: "a", Class: 1, Leased: true, Since: Start, Expires: Start.Add(lease + 3*time.Minute), Allocated: 1000})
	})
	s.test("it runs out", sp(), func(m *member) {
		m.beat("a", 1)
		m.sleep(lease - time.Microsecond)
		if _, alive := m.agent("a"); !alive {
			m.Error("dead before its time")
		}
		m.sleep(time.Microsecond)
		m.dead("a")
		m.beat("a", 2)
		m.isAgent(store.Agent{Name: "a", Class: 2, Leased: true, Since: m.now(), Expires: m.now().Add(lease), Allocated: 1000})
	})
	short := sp()
	short.Lease = 10 * time.Second
	s.test("its length is the pool's", short, func(m *member) {
		m.beat("a", 1)
		m.sleep(10*time.Second - time.Microsecond)
		m.isAgent(store.Agent{Name: "a", Class: 1, Leased: true, Since: Start, Expires: Start.Add(10 * time.Second), Allocated: 1000})
		m.sleep(time.Microsecond)
		m.dead("a")
	})
	s.test("it is given back", sp(), func(m *member) {
		m.beat("a", 1)
		m.beat("b", 1)
		m.leave("a")
		m.dead("a")
		m.isAgent(store.Agent{Name: "b", Class: 1, Leased: true, Since: Start, Expires: Start.Add(lease), Allocated: 1000})
		m.leave("a") // again
		m.leave("nobody")
		m.leave("")
		m.leave(strings.Repeat("x", store.MaxName+1))
	})
	s.test("another machine and class take it over", sp(), func(m *member) {
		op := heartbeat("a", 2)
		op.Machine, op.User = "m1", "u1"
		m.do(op)
		m.beat("b", 2)
		m.sleep(time.Minute)
		op.Machine, op.User, op.Class = "m2", "u2", 0
		m.do(op)
		m.isAgent(store.Agent{
			Name: "a", User: "u2", Machine: "m2", Leased: true, Since: Start, Expires: m.now().Add(lease), Allocated: 1000 * 40 / 65,
		})
	})
	s.test("who was taken over does not take the other's lease along when it leaves", sp(), func(m *member) {
		op := heartbeat("a", 2)
		op.Machine = "m1"
		m.do(op)
		op.Machine = "m2"
		m.do(op)
		m.ends(store.Op{Kind: store.OpLeave, Agent: "a", Machine: "m1"})
		if a, alive := m.agent("a"); !alive || a.Machine != "m2" {
			m.Errorf("%+v, alive %t", a, alive)
		}
		m.ends(store.Op{Kind: store.OpLeave, Agent: "a", Machine: "m2"})
		m.dead("a")
	})
	s.test("allocations divide a class's share among its living agents", sp(), func(m *member) {
		for _, a := range []struct {
			name  string
			class uint8
		}{{"a", 0}, {"b", 1}, {"c", 1}, {"d", 2}} {
			m.beat(a.name, a.class)
		}
		for name, want := range map[string]int64{"a": 400, "b": 175, "c": 175, "d": 250} {
			if a, _ := m.agent(name); a.Allocated != want {
				m.Errorf("%s has %d, want %d", name, a.Allocated, want)
			}
		}
		m.leave("c")
		m.leave("d")
		for name, want := range map[string]int64{"a": 533, "b": 466} {
			if a, _ := m.agent(name); a.Allocated != want {
				m.Errorf("%s has %d, want %d", name, a.Allocated, want)
			}
		}
	})
	s.test("who sends is alive without a lease", sp(), func(m *member) {
		m.close(m.take(want("a", 1)))
		m.isAgent(store.Agent{Name: "a", Class: 1, Since: Start, Expires: Start.Add(lease), Allocated: 1000, Used: 1})
		m.sleep(lease - time.Microsecond)
		if _, alive := m.agent("a"); !alive {
			m.Error("dead before its time")
		}
		m.sleep(time.Microsecond)
		m.dead("a")
	})
	s.test("who sends is alive though its lease is over", sp(), func(m *member) {
		m.beat("a", 1)
		m.sleep(4 * time.Minute)
		m.close(m.take(want("a", 1)))
		m.sleep(2 * time.Minute)
		if a, alive := m.agent("a"); !alive || a.Leased || a.Expires != Start.Add(9*time.Minute) {
			m.Errorf("alive %t: %+v", alive, a)
		}
	})
	s.test("who waits is alive without a lease", spec(slots(1)), func(m *member) {
		m.take(want("x", 1).ttl(time.Hour))
		m.queue(want("a", 1))
		m.sleep(30 * time.Minute)
		if _, alive := m.agent("a"); !alive {
			m.Error("it is dead")
		}
	})
	s.test("who has left is dead until it asks again", sp(), func(m *member) {
		m.close(m.take(want("a", 1)))
		m.leave("a")
		m.dead("a")
		m.close(m.take(want("a", 1)))
		if _, alive := m.agent("a"); !alive {
			m.Error("it is dead")
		}
	})
	off := sp()
	off.Lease = -1
	s.test("where no agent counts as alive there are no leases", off, func(m *member) {
		m.invalidOp(heartbeat("a", 1))
		m.close(m.take(want("a", 1)))
		m.dead("a")
	})
	s.test("turned off under those who have one, nobody is alive", sp(), func(m *member) {
		m.beat("a", 1)
		m.take(want("b", 1))
		join(m.T, m.harness, off)
		if n := len(m.snapshot().Agents); n != 0 {
			m.Errorf("%d are alive", n)
		}
	})
	s.test("what makes no sense is refused", sp(), func(m *member) {
		long := strings.Repeat("x", store.MaxName+1)
		for _, change := range []func(op *store.Op){
			func(op *store.Op) { op.Agent = "" },
			func(op *store.Op) { op.Agent = long },
			func(op *store.Op) { op.User = long },
			func(op *store.Op) { op.Machine = long },
			func(op *store.Op) { op.Class = 3 },
			func(op *store.Op) { op.Class = 255 },
			func(op *store.Op) { op.WaitsFor = []string{long} },
			func(op *store.Op) { op.WaitsFor = []string{"a", ""} },
			func(op *store.Op) { op.WaitsFor = slices.Repeat([]string{"b"}, store.MaxWaits+1) },
		} {
			op := heartbeat("a", 1)
			change(&op)
			m.invalidOp(op)
		}
		if n := len(m.snapshot().Agents); n != 0 {
			m.Errorf("%d are alive", n)
		}
		op := heartbeat(long[1:], 1)
		op.User, op.Machine, op.WaitsFor = long[1:], long[1:], slices.Repeat([]string{long[1:]}, store.MaxWaits)
		if r := m.do(op); r.State != store.Granted {
			m.Errorf("the longest names: %v", r)
		}
	})
	s.test("a class that is gone has no agents", sp(), func(m *member) {
		m.beat("a", 0)
		m.beat("c", 2)
		m.take(want("d", 1).class(2))
		one := sp()
		one.Classes = one.Classes[:1]
		join(m.T, m.harness, one)
		if list := m.snapshot().Agents; len(list) != 1 || list[0].Name != "a" || list[0].Allocated != 1000 {
			m.Errorf("%+v", list)
		}
		m.invalidOp(heartbeat("c", 2))
		m.beat("c", 0)
		join(m.T, m.harness, sp())
		if a, _ := m.agent("c"); a.Class != 0 {
			m.Errorf("%+v", a)
		}
	})
	s.test("leases are everybody's", sp(), func(m *member) {
		other := join(m.T, m.harness, sp())
		m.beat("a", 1)
		if _, alive := other.agent("a"); !alive {
			m.Error("another member does not see it")
		}
		if err := m.pool.Close(); err != nil {
			m.Error(err)
		}
		if _, alive := other.agent("a"); !alive {
			m.Error("it dies with the session, not with its lease")
		}
		other.leave("a")
		other.dead("a")
	})
	s.test("thousands of them", sp(), func(m *member) {
		const n = 3000
		for i := range n {
			m.beat(fmt.Sprint("agent", i), uint8(i%3))
		}
		if got := len(m.snapshot().Agents); got != n {
			m.Errorf("%d are alive, want %d", got, n)
		}
		m.sleep(lease)
		m.beat("last", 0)
		if got := len(m.snapshot().Agents); got != 1 {
			m.Errorf("%d are alive, want one", got)
		}
	})
}

// held tests leases that more than one process keeps alive.
func held(s *suite) {
	beat := func(m *member, machine string) {
		op := heartbeat("a", 1)
		op.Machine = machine
		m.do(op)
	}
	leave := func(m *member, machine string) { m.do(store.Op{Kind: store.OpLeave, Agent: "a", Machine: machine}) }
	s.test("of two processes of a machine one may leave", spec(plenty()), func(m *member) {
		other := join(m.T, m.harness, spec(plenty()))
		beat(m, "here")
		m.sleep(time.Minute)
		beat(other, "here")
		leave(other, "here")
		if a, alive := m.agent("a"); !alive || a.Expires != Start.Add(store.DefaultLease) {
			m.Errorf("the first has its lease still, as it was: %v %+v", alive, a)
		}
		leave(m, "here")
		m.dead("a")
	})
	s.test("the first may leave too", spec(plenty()), func(m *member) {
		other := join(m.T, m.harness, spec(plenty()))
		beat(m, "here")
		beat(other, "here")
		leave(m, "here")
		if _, alive := m.agent("a"); !alive {
			m.Errorf("the second has its lease still")
		}
		leave(other, "here")
		m.dead("a")
	})
	s.test("who moved to another machine is not held by the one it left", spec(plenty()), func(m *member) {
		other := join(m.T, m.harness, spec(plenty()))
		beat(m, "here")
		beat(other, "there")
		leave(m, "here")
		if a, alive := m.agent("a"); !alive || a.Machine != "there" {
			m.Errorf("it is %+v", a)
		}
		leave(other, "there")
		m.dead("a")
	})
	s.test("without a machine it is for all", spec(plenty()), func(m *member) {
		other := join(m.T, m.harness, spec(plenty()))
		beat(m, "here")
		leave(other, "")
		m.dead("a")
	})
	s.test("a lease is as long as its heartbeat says", spec(plenty()), func(m *member) {
		op := heartbeat("a", 1)
		op.TTL = time.Minute
		m.do(op)
		m.sleep(time.Minute - time.Microsecond)
		if _, alive := m.agent("a"); !alive {
			m.Errorf("it is dead a microsecond early")
		}
		m.sleep(time.Microsecond)
		m.dead("a")
		op.TTL = store.MaxTTL + 1
		m.invalidOp(op)
	})
}

func slotted(s *suite) {
	slots := func(most int, ttl time.Duration) func(agent, user string) store.Op {
		return func(agent, user string) store.Op {
			op := heartbeat(agent, 1)
			op.User, op.Slots = user, store.Slots{Max: most, TTL: ttl}
			return op
		}
	}
	full := func(m *member, op store.Op, at store.Time) {
		m.Helper()
		if r := m.do(op); r.State != store.Refused || r.Reason.Code != store.CodeSlots || r.Reason.At != at {
			m.Errorf("%s was %v (%v until %v), want refused (slots until %v)", op.Agent, r.State, r.Reason.Code, r.Reason.At.Sub(m.began), at.Sub(m.began))
		}
	}
	has := func(m *member, op store.Op) {
		m.Helper()
		if r := m.do(op); r.State != store.Granted {
			m.Errorf("%s was %v (%v until %v)", op.Agent, r.State, r.Reason.Code, r.Reason.At.Sub(m.began))
		}
	}
	s.test("a user has so many and no more", spec(plenty()), func(m *member) {
		of := slots(2, time.Minute)
		has(m, of("a", "u"))
		m.sleep(time.Second)
		has(m, of("b", "u"))
		full(m, of("c", "u"), Start.Add(time.Minute))
		has(m, of("d", "v"))
		m.dead("c")
		if a, _ := m.agent("a"); !a.Slot {
			m.Errorf("%+v", a)
		}
	})
	s.test("the check and the taking are one step", spec(plenty()), func(m *member) {
		of := slots(2, time.Minute)
		got := m.apply(of("a", "u"), of("b", "u"), of("c", "u"), of("a", "u"), of("d", "v"))
		want := []store.State{store.Granted, store.Granted, store.Refused, store.Granted, store.Granted}
		for i := range want {
			if got[i].State != want[i] {
				m.Errorf("heartbeat %d: %v, want %v", i, got[i].State, want[i])
			}
		}
	})
	s.test("no user is a user too", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", ""))
		full(m, of("b", ""), Start.Add(time.Minute))
		has(m, of("b", "u"))
	})
	s.test("who has one keeps it", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		for range 10 {
			m.sleep(30 * time.Second)
			has(m, of("a", "u"))
			full(m, of("b", "u"), m.now().Add(time.Minute))
		}
	})
	s.test("a refusal says when there will be one", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		m.sleep(time.Minute - time.Microsecond)
		full(m, of("b", "u"), Start.Add(time.Minute))
		m.sleep(time.Microsecond)
		has(m, of("b", "u"))
		full(m, of("a", "u"), m.now().Add(time.Minute))
		if a, alive := m.agent("a"); !alive || a.Slot || !a.Leased {
			m.Errorf("its lease outlives its slot: %+v", a)
		}
	})
	s.test("who leaves frees its slot at once", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		full(m, of("b", "u"), Start.Add(time.Minute))
		m.leave("a")
		has(m, of("b", "u"))
	})
	s.test("within a batch too", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		got := m.apply(store.Op{Kind: store.OpLeave, Agent: "a"}, of("b", "u"), of("a", "u"))
		if got[1].State != store.Granted || got[2].State != store.Refused {
			m.Errorf("%v and %v", got[1].State, got[2].State)
		}
	})
	s.test("who moves to another user leaves its slot there", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		has(m, of("a", "v"))
		has(m, of("b", "u"))
		full(m, of("a", "u"), Start.Add(time.Minute)) // and keeps its slot
		if a, _ := m.agent("a"); a.User != "v" || !a.Slot {
			m.Errorf("%+v", a)
		}
	})
	s.test("a slot may outlive the lease", spec(plenty()), func(m *member) {
		of := slots(1, time.Hour)
		has(m, of("a", "u"))
		m.sleep(30 * time.Minute)
		m.dead("a")
		full(m, of("b", "u"), Start.Add(time.Hour))
		has(m, of("a", "u"))
		full(m, of("b", "u"), m.now().Add(time.Hour))
	})
	s.test("fewer than there are in use", spec(plenty()), func(m *member) {
		of := slots(3, time.Minute)
		for i, name := range []string{"a", "b", "c"} {
			has(m, of(name, "u"))
			m.sleep(time.Duration(i+1) * time.Second)
		}
		of = slots(2, time.Minute)
		// The first ends 60 s after the start and leaves as many as are allowed. The second ends at 61 s.
		full(m, of("d", "u"), Start.Add(61*time.Second))
	})
	s.test("who asks for none is not bound, and takes none", spec(plenty()), func(m *member) {
		of := slots(1, time.Minute)
		has(m, of("a", "u"))
		has(m, heartbeat("b", 1))
		full(m, of("c", "u"), Start.Add(time.Minute))
		has(m, of("d", "")) // b has no slot of those without a user
	})
	s.test("bounds that make no sense", spec(plenty()), func(m *member) {
		for _, bad := range []store.Slots{
			{Max: -1, TTL: time.Minute}, {Max: 1}, {Max: 1, TTL: -1}, {Max: 1, TTL: store.MaxTTL + 1}, {Max: store.MaxSlots + 1, TTL: time.Minute},
		} {
			op := heartbeat("a", 1)
			op.Slots = bad
			m.invalidOp(op)
		}
	})
	s.test("thousands of users", spec(plenty()), func(m *member) {
		of := slots(2, time.Minute)
		for i := range 2000 {
			op := of(fmt.Sprint("a", i), fmt.Sprint("u", i/3))
			if r := m.do(op); (r.State == store.Granted) != (i%3 < 2) {
				m.Fatalf("agent %d of its user: %v", i%3, r.State)
			}
		}
	})
}

func launching(s *suite) {
	launch := func(m *member, over time.Duration) time.Duration {
		m.Helper()
		r := m.do(store.Op{Kind: store.OpLaunch, Wait: over})
		if r.State != store.Granted {
			m.Fatalf("%v (%v)", r.State, r.Reason.Code)
		}
		return r.Reason.At.Sub(m.now())
	}
	s.test("each falls into the widest gap", spec(), func(m *member) {
		other := join(m.T, m.harness, spec())
		for i, want := range []time.Duration{0, 4, 2, 6, 1, 5, 3, 7} {
			who := m
			if i%2 == 1 {
				who = other
			}
			if at := launch(who, 8*time.Second); at != want*time.Second {
				m.Errorf("launch %d begins after %v, want %v", i, at, want*time.Second)
			}
		}
	})
	s.test("a batch is spread too", spec(), func(m *member) {
		op := store.Op{Kind: store.OpLaunch, Wait: 8 * time.Second}
		for i, r := range m.apply(op, op, op) {
			if want := []time.Duration{0, 4, 2}[i] * time.Second; r.Reason.At.Sub(m.now()) != want {
				m.Errorf("launch %d begins after %v, want %v", i, r.Reason.At.Sub(m.now()), want)
			}
		}
	})
	s.test("a place in the past is taken a window later", spec(), func(m *member) {
		launch(m, 8*time.Second)
		launch(m, 8*time.Second)
		m.sleep(3 * time.Second)
		if at := launch(m, 8*time.Second); at != 7*time.Second { // 2 s after the start, and 8
			m.Errorf("after %v", at)
		}
	})
	s.test("a new window begins at once", spec(), func(m *member) {
		launch(m, 8*time.Second)
		m.sleep(8 * time.Second)
		for _, want := range []time.Duration{0, 4} {
			if at := launch(m, 8*time.Second); at != want*time.Second {
				m.Errorf("after %v, want %v", at, want*time.Second)
			}
		}
	})
	s.test("no window means now, and nobody is moved", spec(), func(m *member) {
		for range 3 {
			if at := launch(m, 0); at != 0 {
				m.Errorf("after %v", at)
			}
		}
		launch(m, store.MaxTTL)
		m.invalidOp(store.Op{Kind: store.OpLaunch, Wait: -1})
		m.invalidOp(store.Op{Kind: store.OpLaunch, Wait: store.MaxTTL + 1})
	})
	s.test("a crowd is spread evenly and none waits longer than the window", spec(), func(m *member) {
		var in [10]int
		for range 1000 {
			at := launch(m, 10*time.Minute)
			if at < 0 || at >= 10*time.Minute {
				m.Fatalf("after %v", at)
			}
			in[at/time.Minute]++
		}
		for i, n := range in {
			if n < 95 || n > 105 {
				m.Errorf("%d begin in minute %d", n, i)
			}
		}
	})
}
