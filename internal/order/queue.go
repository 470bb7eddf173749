// Package order decides which request is next. Each pool has one queue. It uses two-level start-time fair queueing:
// among classes, then among the agents of a class. Requests of one agent go first come, first served. Costs are
// fractions of a limit. The caller decides whether the next request has room.
//
// Requests that need the same shared meters wait in one lane. If the first request of a lane lacks shared room, all
// requests behind it do too, so a pass examines only the heads of lanes. A request that lacks room only on a limit
// of its own, such as a limit per agent, is parked. It leaves the lane, and the requests behind it move up.
//
// Agents take turns within their lane. Lanes share no virtual time, because meters run at different speeds: a
// newcomer to a slow lane would start far behind the tags of a fast one. So a class's part of a lane has tags for
// each meter that the lane needs, in that meter's virtual time. The meter on which the part is furthest ahead
// decides its rank.
package order

import "github.com/sluicehq/sluice/internal/flat"

// MaxClasses bounds the number of classes: the eight of the store contract, and one above them for emergencies.
const MaxClasses = 9

// MaxMeters bounds the number of shared meters of a lane.
const MaxMeters = 16

// Unit is the cost of a whole limit.
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

// Queue holds all waiting requests of a pool. Call Open, and set Weights and Names, before use.
type Queue struct {
	Mode    Mode
	Weights [MaxClasses]int64
	Names   *flat.Names // names of agents; the queue holds a reference for each agent it remembers

	*counts
	waiters  flat.Slab[waiter]
	flows    flat.Slab[flow]
	members  flat.Slab[partAgent]
	lanes    flat.Slab[lane]
	domains  flat.Slab[domain]
	spots    flat.Slab[spot]
	flowIx   flat.Index
	membIx   flat.Index
	laneIx   flat.Index
	domIx    flat.Index
	spotIx   flat.Index
	tree     flat.Tree
	heads    []Head
	held     []Head  // heads that cannot go in this pass, for a reason that does not hold up other waiters
	unparked []int32 // scratch space of Unpark
}

// counts is the part of a queue that exists once.
type counts struct {
	seq     int64 // number of the latest arrival
	front   int64 // number of the latest arrival at the front: below all others
	waiting int64
	queued  int64 // sum of waiting costs
	byClass [MaxClasses]int32
	first   int32 // first of the list of lanes
	parked  int32 // root of the tree of parked flows by wake time
}

// Open places the queue's records in space, or on the heap when space is nil.
func (q *Queue) Open(space *flat.Space) {
	q.counts = flat.Single[counts](space)
	q.waiters.Open(space)
	q.flows.Open(space)
	q.members.Open(space)
	q.lanes.Open(space)
	q.domains.Open(space)
	q.spots.Open(space)
	for _, ix := range []*flat.Index{&q.flowIx, &q.membIx, &q.laneIx, &q.domIx, &q.spotIx} {
		ix.Open(space)
	}
	q.tree.Open(space)
}

// domain is the virtual time of one shared meter.
type domain struct {
	virtual int64
	latest  int64             // highest finish tag
	active  [MaxClasses]int32 // agents that wait for it
	least   int64             // lowest start tag of the waiting parts, while heads are ranked
	on      int32             // the caller's number for the meter
	lanes   int32             // lanes that need the meter
}

// lane holds the requests that need the same shared meters.
type lane struct {
	key        LaneKey
	domains    [MaxMeters]int32
	n          int32
	waiting    int32
	prev, next int32
	pass       uint32            // the pass in which it was closed
	roots      [MaxClasses]int32 // trees of flows, by class
	parts      [MaxClasses]part
}

// part holds the waiters of one class in one lane.
type part struct {
	tags          [MaxMeters]tags
	virtual       int64 // virtual time of its agents
	latest        int64 // highest finish tag of an agent
	queued        int64
	waiting       int32
	active        int32 // members with waiters
	idle, idleEnd int32 // list of members without waiters
}

// tags are start and finish in a meter's virtual time.
type tags struct{ start, finish int64 }

// partAgent is one agent in a part.
type partAgent struct {
	start, finish int64
	queued        int64
	agent         int32
	lane          int32
	waiting       int32
	flows         int32
	prev, next    int32 // in the part's idle list
	class         uint8
}

// flow is one agent's waiters that need the same limits.
type flow struct {
	key         Position
	member      int32
	lane        int32
	first, last int32 // waiters
	node        int32 // in the lane's tree, or the parked tree
	mprev       int32 // flows of the member
	mnext       int32
	spot        int32 // where it is parked; 0: in its lane
	spotNode    int32
}

type waiter struct {
	flow, prev, next int32
	ticket           int32
	seq              int64
	cost             int64 // its largest cost on any meter
	lead             uint8 // the index of the meter with that cost
}

// Costs are the costs of a request on the shared meters of its lane, in Units, in the order of the lane.
type Costs struct {
	On   [MaxMeters]int32 // the caller's numbers for the meters
	Cost [MaxMeters]int64
	N    int
}

// largest returns the largest cost, which counts within a lane, and the index of its meter. The cost is at least 1.
func (c *Costs) largest() (cost int64, lead uint8) {
	cost = 1
	for i := range c.N {
		if c.Cost[i] > cost {
			cost, lead = c.Cost[i], uint8(i)
		}
	}
	return cost, lead
}

// LaneKey names the shared limits a request needs: which ones, and for what model
// and key.
type LaneKey struct {
	Model, Key int32
	Shared     uint16 // set of limits
}

// Position says where in the queue a request belongs.
type Position struct {
	Lane       LaneKey
	Agent      int32
	User, Tool int32  // set where a limit is scoped by them, else 0
	Own        uint16 // set of limits scoped to the caller
	Class      uint8
}

// Len returns the number of waiters.
func (q *Queue) Len() int { return int(q.waiting) }

// Lanes returns the number of lanes.
func (q *Queue) Lanes() int { return q.lanes.Len() }

// Waiting returns the number of waiters of a class.
func (q *Queue) Waiting(c int) int { return int(q.byClass[c]) }

// Number returns a waiter's arrival number. Lower numbers came earlier.
func (q *Queue) Number(w int32) int64 { return q.waiters.At(w).seq }

// IsFirst reports whether a waiter is the first of its flow.
func (q *Queue) IsFirst(w int32) bool { return q.flows.At(q.waiters.At(w).flow).first == w }

// Ticket returns the ticket of a waiter.
func (q *Queue) Ticket(w int32) int32 { return q.waiters.At(w).ticket }

// Push queues a ticket and returns its waiter. The ticket joins the end of its flow. With front it joins the
// beginning: a renewed ticket was granted before and keeps its turn.
func (q *Queue) Push(at Position, ticket int32, costs *Costs, front bool) int32 {
	f := q.flowOf(at, costs)
	fl := q.flows.At(f)
	cost, lead := costs.largest()
	w := q.waiters.New()
	*q.waiters.At(w) = waiter{flow: f, prev: fl.last, ticket: ticket, seq: q.number(front), cost: cost, lead: lead}

	l, m := q.lanes.At(fl.lane), q.members.At(fl.member)
	pt := &l.parts[at.Class]
	if pt.waiting == 0 {
		for i := range l.n {
			pt.tags[i].start = max(q.domains.At(l.domains[i]).virtual, pt.tags[i].finish)
		}
	}
	if m.waiting == 0 {
		m.start = max(pt.virtual, m.finish)
		q.activate(l, at.Class, 1)
		q.leaveIdle(fl.member)
	}
	q.count(l, m, 1, cost)

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

// number returns the next arrival number: the highest so far, or with front the lowest.
func (q *Queue) number(front bool) int64 {
	if front {
		q.front--
		return q.front
	}
	q.seq++
	return q.seq
}

// activate counts n agents, 1 or -1, that begin or stop waiting.
func (q *Queue) activate(l *lane, class uint8, n int32) {
	l.parts[class].active += n
	for i := range l.n {
		d := q.domains.At(l.domains[i])
		d.active[class] += n
		d.level()
	}
}

// level forgives past use of a meter without waiters, so that all start level next time.
func (d *domain) level() {
	if d.active == [MaxClasses]int32{} {
		d.virtual = max(d.virtual, d.latest)
	}
}

// level does the same for the agents of a part.
func (pt *part) level() {
	if pt.waiting == 0 {
		pt.virtual = max(pt.virtual, pt.latest)
	}
}

// Remove takes a waiter out without a grant. No tags change.
func (q *Queue) Remove(w int32) {
	wt := *q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	l, m := q.lanes.At(fl.lane), q.members.At(fl.member)
	q.count(l, m, -1, -wt.cost)

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
			q.enter(wt.flow) // parked or not: the next pass examines its new head
		}
	}
	member := fl.member
	if fl.first == 0 {
		q.dropFlow(wt.flow)
	}
	pt := &l.parts[m.class]
	if m.waiting == 0 {
		q.activate(l, m.class, -1)
		q.enterIdle(member)
		q.forget(pt) // otherwise a lane that never empties would remember every agent it has seen
	}
	pt.level()
	if q.waiting == 0 {
		q.rest()
	}
}

func (q *Queue) count(l *lane, m *partAgent, n int32, cost int64) {
	pt := &l.parts[m.class]
	m.waiting += n
	m.queued += cost
	pt.waiting += n
	pt.queued += cost
	l.waiting += n
	q.byClass[m.class] += n
	q.waiting += int64(n)
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
