package order

import (
	"slices"
	"testing"
)

// List leaves classes out of account from which it has listed all, on lanes with meters of their own.
func TestListComparesOnlyWhoWaits(t *testing.T) {
	q, names := newQueue(Fair, 1, 1, 1)
	on := func(meter int32, cost int64) *Costs {
		return &Costs{On: [MaxMeters]int32{meter}, Cost: [MaxMeters]int64{cost}, N: 1}
	}
	here, there := LaneKey{Shared: 1}, LaneKey{Shared: 2}
	costs := map[int32]Costs{1: *on(1, 100), 2: *on(1, 100), 3: *on(1, 1), 4: *on(2, 1)}
	push := func(lane LaneKey, class uint8, ticket int32) int32 {
		c := costs[ticket]
		return q.Push(Position{Lane: lane, Agent: names.Hold("a"), Class: class}, ticket, &c, false)
	}
	first := push(here, 1, 1)
	push(here, 1, 2)
	c := costs[1]
	q.Granted(first, &c) // its class is ahead now
	push(here, 0, 3)
	push(there, 2, 4)
	var got []int32
	for _, l := range q.List(Strictness{}, 9, func(ticket int32) Costs { return costs[ticket] }) {
		got = append(got, l.Ticket)
	}
	if !slices.Equal(got, []int32{3, 2, 4}) {
		t.Errorf("listed are %v", got)
	}
	if n := len(q.List(Strictness{}, 2, func(ticket int32) Costs { return costs[ticket] })); n != 2 {
		t.Errorf("of two, %d are listed", n)
	}
}

// A request may need every meter that a lane has room for.
func TestLaneWithAsManyMetersAsThereMayBe(t *testing.T) {
	q, names := newQueue(Fair, 1)
	c := Costs{N: MaxMeters}
	for i := range c.On {
		c.On[i], c.Cost[i] = int32(i+1), 1
	}
	w := q.Push(Position{Agent: names.Hold("a")}, 1, &c, false)
	if h := q.Heads(Strictness{}, false); len(h) != 1 || h[0].Waiter != w {
		t.Fatalf("the heads are %v", h)
	}
	q.Granted(w, &c)
	if q.Len() != 0 {
		t.Error("it still waits")
	}
}

// An empty queue keeps nothing, whether its last waiters were granted or left, and whether lanes shared a meter.
func TestEmptyQueueKeepsNothing(t *testing.T) {
	q, names := newQueue(Fair, 1)
	one, two := costing(1), &Costs{On: [MaxMeters]int32{1, 2}, Cost: [MaxMeters]int64{1, 1}, N: 2}
	for range 3 {
		a := q.Push(Position{Lane: LaneKey{Shared: 1}, Agent: names.Hold("a")}, 1, one, false)
		b := q.Push(Position{Lane: LaneKey{Shared: 3}, Agent: names.Hold("b")}, 2, two, false)
		q.Remove(a)
		q.Remove(b)
		if n := q.lanes.Len() + q.domains.Len() + q.members.Len() + q.flows.Len() + q.waiters.Len(); n != 0 || q.queued != 0 {
			t.Fatalf("%d records and a cost of %d are kept", n, q.queued)
		}
	}
}

// Of meters that a request costs equally, the first leads. A request that costs nothing counts as one.
func TestLargestCost(t *testing.T) {
	for _, c := range []struct {
		costs []int64
		cost  int64
		lead  uint8
	}{{[]int64{1, 1}, 1, 0}, {[]int64{0, 0}, 1, 0}, {[]int64{5, 5}, 5, 0}, {[]int64{3, 5, 5}, 5, 1}} {
		costs := Costs{N: len(c.costs)}
		copy(costs.Cost[:], c.costs)
		if cost, lead := costs.largest(); cost != c.cost || lead != c.lead {
			t.Errorf("%v: %d on meter %d, want %d on %d", c.costs, cost, lead, c.cost, c.lead)
		}
	}
}

// An agent whose latest flows have left still knows its others: they move back when one of them is granted.
func TestAgentKnowsTheFlowsThatItKeeps(t *testing.T) {
	q, names := newQueue(Fair, 1)
	a, b := names.Hold("a"), names.Hold("b")
	var flows [4]int32
	for user := range int32(4) {
		flows[user] = q.Push(Position{Agent: a, User: 1 + user}, 1+user, costing(10), false)
	}
	q.Push(Position{Agent: a, User: 2}, 6, costing(10), false)
	q.Remove(flows[3])
	q.Remove(flows[2])
	q.Push(Position{Agent: b}, 5, costing(10), false) // in the record of a flow that has left
	q.Granted(flows[1], costing(10))
	if next := q.Ticket(q.Heads(Strictness{}, false)[0].Waiter); next != 5 {
		t.Errorf("ticket %d of the agent that had its turn is next, want 5", next)
	}
}
