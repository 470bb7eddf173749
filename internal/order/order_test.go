package order

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/internal/flat"
)

// costing is a cost on one meter.
func costing(cost int64) *Costs {
	return &Costs{On: [MaxMeters]int32{1}, Cost: [MaxMeters]int64{cost}, N: 1}
}

func newQueue(mode Mode, weights ...int64) (*Queue, *flat.Names) {
	names := &flat.Names{}
	q := &Queue{Mode: mode, Names: names}
	q.Open(nil)
	copy(q.Weights[:], weights)
	return q, names
}

// plain is the same order, kept in the plainest way: a list, and tags in maps.
type plain struct {
	mode    Mode
	weights []int64
	list    []plainWaiter
	meters  map[int]*plainMeter
	parts   map[plainPlace]*plainPart
}

type plainMeter struct{ virtual, latest int64 }

type plainPlace struct {
	lane  uint16 // set of meters
	class int
}

type plainPart struct {
	start, finish   map[int]int64 // by meter
	virtual, latest int64
	agents          map[string]*plainAgent
}

type plainAgent struct{ start, finish int64 }

type plainWaiter struct {
	id    int32
	seq   int
	at    plainPlace
	agent string
	own   uint16  // which of the agent's flows, which are all the same to the order
	costs []int64 // by meter
}

func metersOf(lane uint16) (list []int) {
	for m := range 3 {
		if lane&(1<<m) != 0 {
			list = append(list, m)
		}
	}
	return list
}

func (w plainWaiter) largest() int64 { return max(slices.Max(w.costs), 1) }

func (p *plain) waits(ok func(plainWaiter) bool) bool { return slices.ContainsFunc(p.list, ok) }

func (p *plain) push(w plainWaiter) {
	pt := p.parts[w.at]
	if pt == nil {
		pt = &plainPart{start: map[int]int64{}, finish: map[int]int64{}, agents: map[string]*plainAgent{}}
		p.parts[w.at] = pt
	}
	if !p.waits(func(o plainWaiter) bool { return o.at == w.at }) {
		pt.virtual = max(pt.virtual, pt.latest)
		for _, m := range metersOf(w.at.lane) {
			pt.start[m] = max(p.meters[m].virtual, pt.finish[m])
		}
	}
	a := pt.agents[w.agent]
	if a == nil {
		a = &plainAgent{}
		pt.agents[w.agent] = a
	}
	if !p.waits(func(o plainWaiter) bool { return o.at == w.at && o.agent == w.agent }) {
		a.start = max(pt.virtual, a.finish)
	}
	p.list = append(p.list, w)
}

func (p *plain) remove(id int32) {
	p.list = slices.DeleteFunc(p.list, func(w plainWaiter) bool { return w.id == id })
	for i, m := range p.meters {
		if !p.waits(func(w plainWaiter) bool { return w.at.lane&(1<<i) != 0 }) {
			m.virtual = max(m.virtual, m.latest)
		}
	}
}

// active counts the agents of a class that wait in lanes that ok accepts.
func (p *plain) active(class int, ok func(lane uint16) bool) int64 {
	seen := map[string]bool{}
	for _, w := range p.list {
		if w.at.class == class && ok(w.at.lane) {
			seen[fmt.Sprint(w.at.lane, w.agent)] = true
		}
	}
	return int64(len(seen))
}

func (p *plain) granted(id int32) {
	w := p.list[slices.IndexFunc(p.list, func(w plainWaiter) bool { return w.id == id })]
	pt := p.parts[w.at]
	a := pt.agents[w.agent]
	here := p.active(w.at.class, func(l uint16) bool { return l == w.at.lane })
	for i, m := range metersOf(w.at.lane) {
		all := p.active(w.at.class, func(l uint16) bool { return l&(1<<m) != 0 })
		p.meters[m].virtual = max(p.meters[m].virtual, pt.start[m])
		pt.finish[m] = pt.start[m] + w.costs[i]*weightScale*all/(p.weights[w.at.class]*here)
		pt.start[m] = pt.finish[m]
		p.meters[m].latest = max(p.meters[m].latest, pt.finish[m])
	}
	pt.virtual = max(pt.virtual, a.start)
	a.finish = a.start + w.largest()
	a.start = a.finish
	pt.latest = max(pt.latest, a.finish)
	p.remove(id)
}

// forget drops what the queue has dropped: it would start alike.
func (p *plain) forget(q *Queue, names *flat.Names) {
	for at, pt := range p.parts {
		lane := q.findLane(LaneKey{Shared: at.lane})
		if lane == 0 {
			delete(p.parts, at)
			continue
		}
		for agent := range pt.agents {
			if q.findMember(lane, uint8(at.class), names.Hold(agent)) == 0 {
				delete(pt.agents, agent)
			}
		}
	}
	for m := range p.meters {
		if i, _ := q.domIx.Seek(onHash(int32(m+1)), 0); i == 0 {
			p.meters[m] = &plainMeter{}
		}
	}
}

// settled corrects what a grant cost.
func (p *plain) settled(w plainWaiter, is []int64) {
	pt := p.parts[w.at]
	a := pt.agents[w.agent]
	correct := func(start, finish *int64, delta int64, waits bool) {
		if waits && *start == *finish {
			*finish = max(*finish+delta, 0)
			*start = *finish
			return
		}
		*finish = max(*finish+delta, 0)
		if waits {
			*start = max(*start, *finish)
		}
	}
	waits := p.waits(func(o plainWaiter) bool { return o.at == w.at })
	here := max(p.active(w.at.class, func(l uint16) bool { return l == w.at.lane }), 1)
	for i, m := range metersOf(w.at.lane) {
		all := max(p.active(w.at.class, func(l uint16) bool { return l&(1<<m) != 0 }), 1)
		start, finish := pt.start[m], pt.finish[m]
		correct(&start, &finish, (is[i]-w.costs[i])*weightScale*all/(p.weights[w.at.class]*here), waits)
		pt.start[m], pt.finish[m] = start, finish
		p.meters[m].latest = max(p.meters[m].latest, finish)
		if !p.waits(func(o plainWaiter) bool { return o.at.lane&(1<<m) != 0 }) {
			p.meters[m].virtual = max(p.meters[m].virtual, p.meters[m].latest)
		}
	}
	delta := max(slices.Max(is), 1) - w.largest()
	correct(&a.start, &a.finish, delta, p.waits(func(o plainWaiter) bool { return o.at == w.at && o.agent == w.agent }))
	pt.latest = max(pt.latest, a.finish)
}

// heads returns the first of each lane, in order.
func (p *plain) heads(strict bool) []int32 {
	least := map[int]int64{}
	for _, w := range p.list {
		for _, m := range metersOf(w.at.lane) {
			if l, ok := least[m]; !ok || p.parts[w.at].start[m] < l {
				least[m] = p.parts[w.at].start[m]
			}
		}
	}
	key := func(w plainWaiter) []int64 {
		pt := p.parts[w.at]
		var lead int64
		for _, m := range metersOf(w.at.lane) {
			lead = max(lead, pt.start[m]-least[m])
		}
		start := pt.agents[w.agent].start
		if p.mode == FIFO {
			start, lead = 0, 0
		}
		switch {
		case strict || p.mode == Strict:
			return []int64{int64(w.at.class), lead, start, int64(w.seq)}
		case p.mode == FIFO:
			return []int64{int64(w.seq)}
		default:
			return []int64{lead, int64(w.at.class), start, int64(w.seq)}
		}
	}
	best := map[uint16]plainWaiter{}
	for _, w := range p.list {
		if b, ok := best[w.at.lane]; !ok || slices.Compare(key(w), key(b)) < 0 {
			best[w.at.lane] = w
		}
	}
	var list []plainWaiter
	for _, w := range best {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b plainWaiter) int {
		ka, kb := key(a), key(b)
		if len(ka) == 4 { // across lanes agents are not compared
			ka[2], kb[2] = 0, 0
		}
		return slices.Compare(ka, kb)
	})
	ids := []int32{}
	for _, w := range list {
		ids = append(ids, w.id)
	}
	return ids
}

// draw makes up a request and its costs.
func draw(t *rapid.T, id int32) (w plainWaiter, c Costs) {
	w = plainWaiter{id: id, seq: int(id), agent: fmt.Sprintf("a%d", rapid.IntRange(0, 4).Draw(t, "agent"))}
	w.own = uint16(rapid.IntRange(0, 2).Draw(t, "own"))
	w.at = plainPlace{uint16(rapid.IntRange(1, 7).Draw(t, "lane")), rapid.IntRange(0, 2).Draw(t, "class")}
	for _, m := range metersOf(w.at.lane) {
		cost := rapid.Int64Range(1, Unit).Draw(t, "cost")
		w.costs = append(w.costs, cost)
		c.On[c.N], c.Cost[c.N] = int32(m+1), cost
		c.N++
	}
	return w, c
}

func (w plainWaiter) place(names *flat.Names) Position {
	return Position{Lane: LaneKey{Shared: w.at.lane}, Agent: names.Hold(w.agent), Class: uint8(w.at.class), Own: w.own}
}

// The queue with its trees and lists orders exactly as the plain list does.
func TestQueueOrdersAsThePlainListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
		weights := []int64{40, 35, 25}
		q, names := newQueue(mode, weights...)
		p := &plain{mode: mode, weights: weights, parts: map[plainPlace]*plainPart{}, meters: map[int]*plainMeter{0: {}, 1: {}, 2: {}}}
		waiters := map[int32]int32{} // by id
		costs := map[int32]Costs{}
		var ids []int32
		var sent []plainWaiter
		id := int32(0)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			p.forget(q, names)
			switch k := rapid.IntRange(0, 10).Draw(t, "what"); {
			case k < 5:
				id++
				w, c := draw(t, id)
				costs[id] = c
				front := rapid.IntRange(0, 3).Draw(t, "front") == 0
				if front {
					w.seq = -w.seq // before all that wait, and the last such before the ones before it
				}
				p.push(w)
				waiters[id] = q.Push(w.place(names), id, &c, front)
				ids = append(ids, id)
			case k == 10: // a request that was granted cost something else
				if len(sent) == 0 {
					continue
				}
				w := sent[rapid.IntRange(0, len(sent)-1).Draw(t, "settled")]
				was, is := costs[w.id], costs[w.id]
				var plainly []int64
				for i := range is.N {
					is.Cost[i] = rapid.Int64Range(1, Unit).Draw(t, "is")
					plainly = append(plainly, is.Cost[i])
				}
				at := w.place(names)
				if pt := p.parts[w.at]; pt != nil && pt.agents[w.agent] != nil { // else it is forgotten
					p.settled(w, plainly)
				}
				q.Settled(at, &was, &is)
			case len(ids) == 0:
				continue
			case k < 8: // some head goes, not always the first: others may be blocked
				heads := q.Heads(Strictness{}, false)
				h := heads[rapid.IntRange(0, len(heads)-1).Draw(t, "head")]
				gone := q.Ticket(h.Waiter)
				sent = append(sent, p.list[slices.IndexFunc(p.list, func(w plainWaiter) bool { return w.id == gone })])
				p.granted(gone)
				c := costs[gone]
				q.Granted(h.Waiter, &c)
				ids = slices.DeleteFunc(ids, func(i int32) bool { return i == gone })
			default:
				gone := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "gone")]
				p.remove(gone)
				q.Remove(waiters[gone])
				ids = slices.DeleteFunc(ids, func(i int32) bool { return i == gone })
			}
			for _, strict := range []bool{false, true} {
				got := []int32{}
				for _, h := range q.Heads(Strictness{All: strict}, false) {
					got = append(got, q.Ticket(h.Waiter))
				}
				if want := p.heads(strict); !slices.Equal(got, want) {
					t.Fatalf("heads (strict %v) are %v, want %v", strict, got, want)
				}
			}
			if q.Len() != len(p.list) {
				t.Fatalf("%d wait, want %d", q.Len(), len(p.list))
			}
		}
	})
}

// List predicts the order in which waiters really go, if all of them have room.
func TestListForetellsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, names := newQueue(Mode(rapid.IntRange(0, 2).Draw(t, "mode")), 40, 35, 25)
		n := rapid.IntRange(1, 60).Draw(t, "waiters")
		costs := map[int32]Costs{}
		grant := func(h Head) {
			c := costs[q.Ticket(h.Waiter)]
			q.Granted(h.Waiter, &c)
		}
		for i := range n {
			w, c := draw(t, int32(i+1))
			w.at.lane, c.N = 1, 1 // weights depend on who waits, so only one lane is foretold exactly
			c.On[0] = 1
			costs[w.id] = c
			at := w.place(names)
			at.Own = uint16(rapid.IntRange(0, 1).Draw(t, "own"))
			q.Push(at, w.id, &c, false)
			if rapid.IntRange(0, 3).Draw(t, "grant") == 0 {
				grant(q.Heads(Strictness{}, false)[0])
			}
		}
		strict := rapid.Bool().Draw(t, "strict")
		for i, l := range q.List(Strictness{All: strict}, n, func(t int32) Costs { return costs[t] }) {
			h := q.Heads(Strictness{All: strict}, false)[0]
			if q.Ticket(h.Waiter) != l.Ticket {
				t.Fatalf("number %d is ticket %d, foretold was %d", i+1, q.Ticket(h.Waiter), l.Ticket)
			}
			grant(h)
		}
		if q.Len() != 0 {
			t.Fatalf("%d were not foretold", q.Len())
		}
	})
}

// A newcomer to a slow lane does not start behind everything that a fast lane has done.
func TestNewcomerToASlowLaneTakesTurnsAtOnce(t *testing.T) {
	q, names := newQueue(Fair, 1)
	fast, slow := LaneKey{Shared: 1}, LaneKey{Shared: 2}
	c := map[LaneKey]*Costs{
		fast: {On: [MaxMeters]int32{1}, Cost: [MaxMeters]int64{1000}, N: 1},
		slow: {On: [MaxMeters]int32{2}, Cost: [MaxMeters]int64{1000}, N: 1},
	}
	push := func(agent string, lane LaneKey, ticket int32) {
		q.Push(Position{Lane: lane, Agent: names.Hold(agent)}, ticket, c[lane], false)
	}
	first := func(lane LaneKey) Head {
		for _, h := range q.Heads(Strictness{}, false) {
			if q.lanes.At(h.lane).key == lane {
				return h
			}
		}
		t.Fatal("nobody waits in the lane")
		return Head{}
	}
	for i := range int32(20) {
		push("old", slow, 100+i)
	}
	push("racer", fast, 1)
	for range 100_000 {
		push("racer", fast, 1)
		q.Granted(first(fast).Waiter, c[fast])
	}
	for i := range int32(5) {
		push("new", slow, 200+i)
	}
	var got []int32
	for range 6 {
		h := first(slow)
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter, c[slow])
	}
	if !slices.Equal(got, []int32{100, 200, 101, 201, 102, 202}) {
		t.Fatalf("they went in the order %v", got)
	}
}

func TestParkedFlowsHoldUpNobodyAndComeBack(t *testing.T) {
	q, names := newQueue(Fair, 1)
	push := func(agent string, ticket int32) int32 {
		return q.Push(Position{Agent: names.Hold(agent)}, ticket, costing(1), false)
	}
	first := push("a", 1)
	push("a", 2)
	push("b", 3)
	q.Park(first, 7, 100)
	if h := q.Heads(Strictness{}, false); len(h) != 1 || q.Ticket(h[0].Waiter) != 3 {
		t.Fatalf("b is held up by a, who is parked: %v", h)
	}
	if at, ok := q.NextWake(); !ok || at != 100 {
		t.Fatalf("wakes at %d, %v", at, ok)
	}
	q.Wake(99)
	if q.Ticket(q.Heads(Strictness{}, false)[0].Waiter) != 3 {
		t.Fatal("a came back before its time")
	}
	q.Wake(100)
	if q.Ticket(q.Heads(Strictness{}, false)[0].Waiter) != 1 {
		t.Fatal("a did not come back to its place")
	}
	q.Park(first, 7, 1<<53)
	if q.Unpark(8) || !q.Unpark(7) || q.Unpark(7) {
		t.Fatal("unpark finds exactly what is parked there")
	}
	q.Park(first, 7, 1<<53)
	q.Remove(first) // the next of the flow is looked at afresh
	if q.Ticket(q.Heads(Strictness{}, false)[0].Waiter) != 2 {
		t.Fatal("the flow stayed parked though its head has left")
	}
	if q.Unpark(7) {
		t.Fatal("a flow that was not parked any more was unparked")
	}
}

func TestRenewedWaiterGoesBeforeItsOwnFlow(t *testing.T) {
	q, names := newQueue(Fair, 1)
	a := names.Hold("a")
	q.Push(Position{Agent: a}, 1, costing(1), false)
	q.Push(Position{Agent: a}, 2, costing(1), false)
	q.Push(Position{Agent: a}, 3, costing(1), true)
	var got []int32
	for q.Len() > 0 {
		h := q.Heads(Strictness{}, false)[0]
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter, costing(1))
	}
	if !slices.Equal(got, []int32{3, 1, 2}) {
		t.Fatalf("went in the order %v", got)
	}
}

// Renewed waiters go before all others, of other agents too: the last one renewed first.
func TestRenewedWaitersGoBeforeAllOthers(t *testing.T) {
	q, names := newQueue(FIFO)
	for ticket := range int32(6) {
		q.Push(Position{Agent: names.Hold(fmt.Sprint("agent-", ticket))}, ticket, costing(1), ticket > 2)
	}
	var got []int32
	for q.Len() > 0 {
		h := q.Heads(Strictness{}, false)[0]
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter, costing(1))
	}
	if !slices.Equal(got, []int32{5, 4, 3, 0, 1, 2}) {
		t.Fatalf("went in the order %v", got)
	}
}

func TestIdleAgentsAreForgotten(t *testing.T) {
	q, names := newQueue(Fair, 1)
	for i := range 10_000 {
		n := names.Hold(fmt.Sprint("agent-", i))
		q.Push(Position{Agent: n}, int32(i+1), costing(1), false)
		names.Drop(n)
		q.Granted(q.Heads(Strictness{}, false)[0].Waiter, costing(1))
	}
	if q.members.Len() > 8 || names.Len() > 8 {
		t.Fatalf("%d agents and %d names are remembered though nobody waits", q.members.Len(), names.Len())
	}
	if q.flows.Len()+q.lanes.Len()+q.waiters.Len()+q.spots.Len()+q.domains.Len() > 2 {
		t.Fatal("an empty queue keeps records")
	}
}

// Settling more than was granted for moves an agent back in the order.
func TestSettleCorrectsTheOrder(t *testing.T) {
	q, names := newQueue(Fair, 1)
	a, b := names.Hold("a"), names.Hold("b")
	for i := range int32(4) {
		q.Push(Position{Agent: a}, 10+i, costing(10), false)
		q.Push(Position{Agent: b}, 20+i, costing(10), false)
	}
	q.Granted(q.Heads(Strictness{}, false)[0].Waiter, costing(1)) // a's first
	q.Settled(Position{Agent: a}, costing(10), costing(35))
	var got []int32
	for q.Len() > 0 {
		h := q.Heads(Strictness{}, false)[0]
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter, costing(1))
	}
	if !slices.Equal(got, []int32{20, 21, 22, 23, 11, 12, 13}) {
		t.Fatalf("went in the order %v", got)
	}
}

func TestAheadIsWithinWhatWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, names := newQueue(Mode(rapid.IntRange(0, 2).Draw(t, "mode")), 40, 35, 25)
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			at := Position{
				Agent: names.Hold(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "agent"))), Class: uint8(rapid.IntRange(0, 2).Draw(t, "class")),
			}
			w := q.Push(at, int32(i+1), costing(rapid.Int64Range(1, Unit).Draw(t, "cost")), rapid.Bool().Draw(t, "front"))
			if a := q.Ahead(w, false); a < 0 || a > aheadScale {
				t.Fatalf("%d/%d of the queue is ahead", a, aheadScale)
			}
			if rapid.Bool().Draw(t, "grant") {
				q.Granted(q.Heads(Strictness{}, false)[0].Waiter, costing(1))
			}
		}
	})
}

func benchmarkQueue(b *testing.B, waiting int) {
	q, names := newQueue(Fair, 40, 35, 25)
	agents := make([]int32, waiting/2+1)
	for i := range agents {
		agents[i] = names.Hold(fmt.Sprint("agent-", i))
	}
	push := func(i int) {
		q.Push(Position{Agent: agents[i%len(agents)], Class: uint8(i % 3)}, 1, costing(1000), false)
	}
	for i := range waiting {
		push(i)
	}
	b.ReportAllocs()
	i := waiting
	for b.Loop() {
		push(i)
		q.Granted(q.Heads(Strictness{}, false)[0].Waiter, costing(1))
		i++
	}
}

func BenchmarkEnqueueGrant100(b *testing.B)    { benchmarkQueue(b, 100) }
func BenchmarkEnqueueGrant10000(b *testing.B)  { benchmarkQueue(b, 10_000) }
func BenchmarkEnqueueGrant100000(b *testing.B) { benchmarkQueue(b, 100_000) }

// One request always waits, while a thousand lanes come and go, each with its own meter. They must be dropped:
// otherwise every step would visit them all.
func TestLanesAreDroppedWhileOthersWait(t *testing.T) {
	q, names := newQueue(Fair, 1)
	costs := &Costs{On: [MaxMeters]int32{1}, Cost: [MaxMeters]int64{10}, N: 1}
	agent := names.Hold("a")
	q.Push(Position{Lane: LaneKey{Shared: 1}, Agent: agent}, 1, costs, false)
	for i := range int32(1000) {
		costs.On[0] = 2 + i
		w := q.Push(Position{Lane: LaneKey{Shared: 2, Key: 1 + i}, Agent: agent}, 2, costs, false)
		q.Granted(w, costs)
		q.Heads(Strictness{}, false)
	}
	if q.lanes.Len() != 1 || q.domains.Len() != 1 {
		t.Errorf("%d lanes and %d meters are kept", q.lanes.Len(), q.domains.Len())
	}
}

// A lane with many agents outlives its meter, whose number is reused for another one.
func TestLaneFollowsItsMeter(t *testing.T) {
	q, names := newQueue(Fair, 1)
	costs := &Costs{On: [MaxMeters]int32{7}, Cost: [MaxMeters]int64{10}, N: 1}
	lane := LaneKey{Shared: 1, Key: 1}
	var list []int32
	for i := range int32(50) {
		list = append(list, q.Push(Position{Lane: lane, Agent: names.Hold(fmt.Sprint(i))}, i+1, costs, false))
	}
	for _, w := range list {
		q.Granted(w, costs)
	}
	costs.On[0] = 9
	q.Push(Position{Lane: lane, Agent: 1}, 1, costs, false)
	if on := q.domains.At(q.lanes.At(q.findLane(lane)).domains[0]).on; on != 9 {
		t.Errorf("it is ordered by meter %d, want 9", on)
	}
}
