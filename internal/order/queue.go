// Package order decides who is next: one queue per pool, two-level start-time
// fair queueing among classes and among the agents of a class, first come first
// served within an agent. It knows costs only as a fraction of a window, and
// nothing of limits: whether the first in line can go is for others to say.
//
// Those who need the same shared limits stand in one lane. If the first of a lane
// lacks something shared, so does everyone behind it, so only the heads of lanes
// are ever examined. Who lacks something of its own is parked aside instead, and
// holds up nobody.
package order

import "github.com/sluicehq/sluice/internal/flat"

// MaxClasses bounds the number of classes.
const MaxClasses = 8

// Unit is the cost of a whole window of a request's scarcest limit.
const Unit = 1 << 20

// weightScale keeps a class's tags exact enough when costs are divided by weights.
const weightScale = 256

// Mode is the order among waiters.
type Mode uint8

// The modes, in the order of the store contract.
const (
	Fair Mode = iota
	Strict
	FIFO
)

// Queue holds everyone who waits. Set Weights and Names before use.
type Queue struct {
	Mode    Mode
	Weights [MaxClasses]int64
	Names   *flat.Names // of agents; a queue keeps references to those it remembers

	virtual int64 // the class level's virtual time
	seq     int64 // number of the last that came
	front   int64 // number of the last that came to the front: below all others
	waiting int
	queued  int64 // sum of waiting costs
	classes [MaxClasses]class

	waiters flat.Slab[waiter]
	flows   flat.Slab[flow]
	members flat.Slab[member]
	lanes   flat.Slab[lane]
	spots   flat.Slab[spot]
	flowIx  flat.Index
	membIx  flat.Index
	laneIx  flat.Index
	spotIx  flat.Index
	tree    flat.Tree
	first   int32 // of the list of lanes
	parked  int32 // root of the tree of parked flows by wake time
	heads   []Head
}

type class struct {
	start, finish int64
	virtual       int64 // the agent level's virtual time
	latest        int64 // highest finish tag of an agent
	queued        int64
	waiting       int32
	active        int32 // members with waiters
	idle, idleEnd int32 // list of members without
}

// member is an agent in a class.
type member struct {
	start, finish int64
	queued        int64
	agent         int32
	waiting       int32
	flows         int32
	prev, next    int32 // in the class's idle list
	class         uint8
}

// flow is one agent's waiters that need the same limits.
type flow struct {
	key         Place
	member      int32
	lane        int32
	first, last int32 // waiters
	node        int32 // in the lane's tree, or the parked tree
	mprev       int32 // flows of the member
	mnext       int32
	spot        int32 // where it is parked, 0: in its lane
	spotNode    int32
}

// lane is everyone who needs the same shared limits.
type lane struct {
	key        LaneKey
	roots      [MaxClasses]int32
	flows      int32
	prev, next int32
}

type waiter struct {
	flow, prev, next int32
	ticket           int32
	seq, cost        int64
}

// LaneKey names the shared limits a request needs: which ones, and for what model
// and key.
type LaneKey struct {
	Model, Key int32
	Shared     uint16 // set of limits
}

// Place is where in the order a request belongs.
type Place struct {
	Lane       LaneKey
	Agent      int32
	User, Tool int32  // where a limit is scoped by them, else 0
	Own        uint16 // set of limits scoped to the caller
	Class      uint8
}

// Len returns the number of waiters.
func (q *Queue) Len() int { return q.waiting }

// Waiting returns the number of waiters of a class.
func (q *Queue) Waiting(c int) int { return int(q.classes[c].waiting) }

// Ticket returns the ticket of a waiter.
func (q *Queue) Ticket(w int32) int32 { return q.waiters.At(w).ticket }

// Push puts a ticket in line, behind the others of its flow or, when it has been
// granted before and only renews, before them. cost is what it takes of its scarcest
// limit, in Units.
func (q *Queue) Push(at Place, ticket int32, cost int64, front bool) int32 {
	f := q.flowOf(at)
	fl := q.flows.At(f)
	w := q.waiters.New()
	*q.waiters.At(w) = waiter{flow: f, prev: fl.last, ticket: ticket, seq: q.number(front), cost: cost}

	m, c := q.members.At(fl.member), &q.classes[at.Class]
	if c.waiting == 0 {
		c.start = max(q.virtual, c.finish)
	}
	if m.waiting == 0 {
		m.start = max(c.virtual, m.finish)
		c.active++
		q.leaveIdle(fl.member)
	}
	q.count(m, c, 1, cost)

	switch {
	case fl.first == 0:
		fl.first, fl.last = w, w
		q.enter(f)
	case front:
		q.leave(f)
		next := q.waiters.At(fl.first)
		wt := q.waiters.At(w)
		wt.prev, wt.next = 0, fl.first
		next.prev, fl.first = w, w
		q.enter(f)
	default:
		q.waiters.At(fl.last).next = w
		fl.last = w
	}
	return w
}

// number gives out places in the line: at its end, or before everyone.
func (q *Queue) number(front bool) int64 {
	if front {
		q.front--
		return q.front
	}
	q.seq++
	return q.seq
}

// Remove takes a waiter out without a grant; nobody's tags change.
func (q *Queue) Remove(w int32) {
	wt := *q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	m, c := q.members.At(fl.member), &q.classes[fl.key.Class]
	q.count(m, c, -1, -wt.cost)

	wasFirst := fl.first == w
	if wt.prev != 0 {
		q.waiters.At(wt.prev).next = wt.next
	} else {
		fl.first = wt.next
	}
	if wt.next != 0 {
		q.waiters.At(wt.next).prev = wt.prev
	} else {
		fl.last = wt.prev
	}
	q.waiters.Recycle(w)

	if wasFirst {
		q.leave(wt.flow)
		if fl.first != 0 {
			q.enter(wt.flow) // parked or not: its new head is looked at afresh
		}
	}
	member := fl.member
	if fl.first == 0 {
		q.dropFlow(wt.flow)
	}
	if m.waiting == 0 {
		c.active--
		q.enterIdle(member)
	}
	if q.waiting == 0 {
		q.rest()
	}
}

func (q *Queue) count(m *member, c *class, n int32, cost int64) {
	m.waiting += n
	m.queued += cost
	c.waiting += n
	c.queued += cost
	q.waiting += int(n)
	q.queued += cost
}

// enter puts a flow with a head into its lane's tree.
func (q *Queue) enter(f int32) {
	fl := q.flows.At(f)
	key := flat.Key{A: q.members.At(fl.member).start, B: q.waiters.At(fl.first).seq}
	if q.Mode == FIFO {
		key.A = 0
	}
	fl.node = q.tree.Insert(&q.lanes.At(fl.lane).roots[fl.key.Class], key, f)
}

// leave takes a flow out of its lane's tree, or from where it is parked.
func (q *Queue) leave(f int32) {
	fl := q.flows.At(f)
	if fl.spot != 0 {
		q.leaveSpot(f)
		q.tree.Delete(&q.parked, fl.node)
	} else {
		q.tree.Delete(&q.lanes.At(fl.lane).roots[fl.key.Class], fl.node)
	}
	fl.node = 0
}
