package order

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/internal/flat"
)

func newQueue(mode Mode, weights ...int64) (*Queue, *flat.Names) {
	names := &flat.Names{}
	q := &Queue{Mode: mode, Names: names}
	copy(q.Weights[:], weights)
	return q, names
}

// plain is the same order, kept in the plainest way: a list, and tags in maps.
type plain struct {
	mode    Mode
	weights []int64
	virtual int64
	class   []plainClass
	list    []plainWaiter
}

type plainClass struct {
	start, finish, virtual int64
	latest                 int64
	agents                 map[string]*plainAgent
}

type plainAgent struct{ start, finish int64 }

type plainWaiter struct {
	id    int32
	seq   int
	class int
	agent string
	lane  int32
	cost  int64
}

func (p *plain) count(class int, agent string) (n int) {
	for _, w := range p.list {
		if w.class == class && (agent == "" || w.agent == agent) {
			n++
		}
	}
	return n
}

func (p *plain) push(w plainWaiter) {
	c := &p.class[w.class]
	if p.count(w.class, "") == 0 {
		c.start = max(p.virtual, c.finish)
	}
	a := c.agents[w.agent]
	if a == nil {
		a = &plainAgent{}
		c.agents[w.agent] = a
	}
	if p.count(w.class, w.agent) == 0 {
		a.start = max(c.virtual, a.finish)
	}
	p.list = append(p.list, w)
}

func (p *plain) remove(id int32) {
	p.list = slices.DeleteFunc(p.list, func(w plainWaiter) bool { return w.id == id })
	if len(p.list) > 0 {
		return
	}
	for i := range p.class {
		p.virtual = max(p.virtual, p.class[i].finish)
		p.class[i].virtual = max(p.class[i].virtual, p.class[i].latest)
	}
}

func (p *plain) granted(id int32) {
	w := p.list[slices.IndexFunc(p.list, func(w plainWaiter) bool { return w.id == id })]
	c := &p.class[w.class]
	a := c.agents[w.agent]
	p.virtual = max(p.virtual, c.start)
	c.finish = c.start + w.cost*weightScale/p.weights[w.class]
	c.start = c.finish
	c.virtual = max(c.virtual, a.start)
	a.finish = a.start + w.cost
	a.start = a.finish
	c.latest = max(c.latest, a.finish)
	p.remove(id)
}

func (p *plain) before(a, b plainWaiter, strict bool) bool {
	key := func(w plainWaiter) []int64 {
		start := p.class[w.class].agents[w.agent].start
		if p.mode == FIFO {
			start = 0
		}
		switch {
		case strict || p.mode == Strict:
			return []int64{int64(w.class), start, int64(w.seq)}
		case p.mode == FIFO:
			return []int64{int64(w.seq)}
		default:
			return []int64{p.class[w.class].start, int64(w.class), start, int64(w.seq)}
		}
	}
	return slices.Compare(key(a), key(b)) < 0
}

// heads returns the first of each lane, in order.
func (p *plain) heads(strict bool) []int32 {
	best := map[int32]plainWaiter{}
	for _, w := range p.list {
		if b, ok := best[w.lane]; !ok || p.before(w, b, strict) {
			best[w.lane] = w
		}
	}
	var list []plainWaiter
	for _, w := range best {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b plainWaiter) int {
		if p.before(a, b, strict) {
			return -1
		}
		return 1
	})
	ids := []int32{}
	for _, w := range list {
		ids = append(ids, w.id)
	}
	return ids
}

// The queue with its trees and lists orders exactly as the plain list does.
func TestQueueOrdersAsThePlainListDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
		weights := []int64{40, 35, 25}
		q, names := newQueue(mode, weights...)
		p := &plain{mode: mode, weights: weights, class: make([]plainClass, 3)}
		for i := range p.class {
			p.class[i].agents = map[string]*plainAgent{}
		}
		waiters := map[int32]int32{} // by id
		var ids []int32
		id := int32(0)
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 9).Draw(t, "what"); {
			case k < 5:
				id++
				agent := fmt.Sprintf("a%d", rapid.IntRange(0, 4).Draw(t, "agent"))
				w := plainWaiter{
					id: id, seq: int(id), class: rapid.IntRange(0, 2).Draw(t, "class"), agent: agent,
					lane: int32(rapid.IntRange(0, 2).Draw(t, "lane")), cost: rapid.Int64Range(1, Unit).Draw(t, "cost"),
				}
				p.push(w)
				waiters[id] = q.Push(Place{
					Lane: LaneKey{Shared: uint16(1 << w.lane)}, Agent: names.Hold(agent), Class: uint8(w.class),
				}, id, w.cost, false)
				ids = append(ids, id)
			case len(ids) == 0:
				continue
			case k < 8: // some head goes, not always the first: others may be blocked
				heads := q.Heads(false)
				h := heads[rapid.IntRange(0, len(heads)-1).Draw(t, "head")]
				gone := q.Ticket(h.Waiter)
				p.granted(gone)
				q.Granted(h.Waiter)
				ids = slices.DeleteFunc(ids, func(i int32) bool { return i == gone })
			default:
				gone := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "gone")]
				p.remove(gone)
				q.Remove(waiters[gone])
				ids = slices.DeleteFunc(ids, func(i int32) bool { return i == gone })
			}
			for _, strict := range []bool{false, true} {
				got := []int32{}
				for _, h := range q.Heads(strict) {
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

// List foretells the order in which waiters of one lane really go.
func TestListForetellsTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, names := newQueue(Mode(rapid.IntRange(0, 2).Draw(t, "mode")), 40, 35, 25)
		n := rapid.IntRange(1, 60).Draw(t, "waiters")
		for i := range n {
			agent := names.Hold(fmt.Sprintf("a%d", rapid.IntRange(0, 5).Draw(t, "agent")))
			q.Push(Place{Agent: agent, Class: uint8(rapid.IntRange(0, 2).Draw(t, "class")), Own: uint16(rapid.IntRange(0, 1).Draw(t, "own"))},
				int32(i+1), rapid.Int64Range(1, Unit).Draw(t, "cost"), false)
			if rapid.IntRange(0, 3).Draw(t, "grant") == 0 {
				q.Granted(q.Heads(false)[0].Waiter)
			}
		}
		strict := rapid.Bool().Draw(t, "strict")
		for i, l := range q.List(strict, n) {
			h := q.Heads(strict)[0]
			if q.Ticket(h.Waiter) != l.Ticket {
				t.Fatalf("number %d is ticket %d, foretold was %d", i+1, q.Ticket(h.Waiter), l.Ticket)
			}
			q.Granted(h.Waiter)
		}
		if q.Len() != 0 {
			t.Fatalf("%d were not foretold", q.Len())
		}
	})
}

func TestParkedFlowsHoldUpNobodyAndComeBack(t *testing.T) {
	q, names := newQueue(Fair, 1)
	push := func(agent string, ticket int32) int32 {
		return q.Push(Place{Agent: names.Hold(agent)}, ticket, 1, false)
	}
	first := push("a", 1)
	push("a", 2)
	push("b", 3)
	q.Park(first, 7, 100)
	if h := q.Heads(false); len(h) != 1 || q.Ticket(h[0].Waiter) != 3 {
		t.Fatalf("b is held up by a, who is parked: %v", h)
	}
	if at, ok := q.NextWake(); !ok || at != 100 {
		t.Fatalf("wakes at %d, %v", at, ok)
	}
	q.Wake(99)
	if q.Ticket(q.Heads(false)[0].Waiter) != 3 {
		t.Fatal("a came back before its time")
	}
	q.Wake(100)
	if q.Ticket(q.Heads(false)[0].Waiter) != 1 {
		t.Fatal("a did not come back to its place")
	}
	q.Park(first, 7, 1<<53)
	if q.Unpark(8) || !q.Unpark(7) || q.Unpark(7) {
		t.Fatal("unpark finds exactly what is parked there")
	}
	q.Park(first, 7, 1<<53)
	q.Remove(first) // the next of the flow is looked at afresh
	if q.Ticket(q.Heads(false)[0].Waiter) != 2 {
		t.Fatal("the flow stayed parked though its head has left")
	}
	if q.Unpark(7) {
		t.Fatal("a flow that was not parked any more was unparked")
	}
}

func TestRenewedWaiterGoesBeforeItsOwnFlow(t *testing.T) {
	q, names := newQueue(Fair, 1)
	a := names.Hold("a")
	q.Push(Place{Agent: a}, 1, 1, false)
	q.Push(Place{Agent: a}, 2, 1, false)
	q.Push(Place{Agent: a}, 3, 1, true)
	var got []int32
	for q.Len() > 0 {
		h := q.Heads(false)[0]
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter)
	}
	if !slices.Equal(got, []int32{3, 1, 2}) {
		t.Fatalf("went in the order %v", got)
	}
}

func TestIdleAgentsAreForgotten(t *testing.T) {
	q, names := newQueue(Fair, 1)
	for i := range 10_000 {
		n := names.Hold(fmt.Sprint("agent-", i))
		q.Push(Place{Agent: n}, int32(i+1), 1, false)
		names.Drop(n)
		q.Granted(q.Heads(false)[0].Waiter)
	}
	if q.members.Len() > 8 || names.Len() > 8 {
		t.Fatalf("%d agents and %d names are remembered though nobody waits", q.members.Len(), names.Len())
	}
	if q.flows.Len()+q.lanes.Len()+q.waiters.Len()+q.spots.Len() != 0 {
		t.Fatal("an empty queue keeps records")
	}
}

// Settling more than was granted for moves an agent back in the order.
func TestSettleCorrectsTheOrder(t *testing.T) {
	q, names := newQueue(Fair, 1)
	a, b := names.Hold("a"), names.Hold("b")
	for i := range int32(4) {
		q.Push(Place{Agent: a}, 10+i, 10, false)
		q.Push(Place{Agent: b}, 20+i, 10, false)
	}
	q.Granted(q.Heads(false)[0].Waiter) // a's first
	q.Settled(0, a, 25)
	var got []int32
	for q.Len() > 0 {
		h := q.Heads(false)[0]
		got = append(got, q.Ticket(h.Waiter))
		q.Granted(h.Waiter)
	}
	if !slices.Equal(got, []int32{20, 21, 22, 23, 11, 12, 13}) {
		t.Fatalf("went in the order %v", got)
	}
}

func TestAheadIsWithinWhatWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, names := newQueue(Mode(rapid.IntRange(0, 2).Draw(t, "mode")), 40, 35, 25)
		for i := range rapid.IntRange(1, 60).Draw(t, "n") {
			at := Place{
				Agent: names.Hold(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "agent"))), Class: uint8(rapid.IntRange(0, 2).Draw(t, "class")),
			}
			w := q.Push(at, int32(i+1), rapid.Int64Range(1, Unit).Draw(t, "cost"), rapid.Bool().Draw(t, "front"))
			if a := q.Ahead(w); a < 0 || a > aheadScale {
				t.Fatalf("%d/%d of the queue is ahead", a, aheadScale)
			}
			if rapid.Bool().Draw(t, "grant") {
				q.Granted(q.Heads(false)[0].Waiter)
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
		q.Push(Place{Agent: agents[i%len(agents)], Class: uint8(i % 3)}, 1, 1000, false)
	}
	for i := range waiting {
		push(i)
	}
	b.ReportAllocs()
	i := waiting
	for b.Loop() {
		push(i)
		q.Granted(q.Heads(false)[0].Waiter)
		i++
	}
}

func BenchmarkEnqueueGrant100(b *testing.B)    { benchmarkQueue(b, 100) }
func BenchmarkEnqueueGrant10000(b *testing.B)  { benchmarkQueue(b, 10_000) }
func BenchmarkEnqueueGrant100000(b *testing.B) { benchmarkQueue(b, 100_000) }
