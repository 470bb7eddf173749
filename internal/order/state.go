package order

import (
	"encoding/binary"
	"unsafe"

	"github.com/sluicehq/sluice/internal/flat"
)

// What the state of a queue leaves out is made again from the rest: the trees and the spots from the flows, and the
// indexes. So their shape, which decides nothing, is not part of a state.
var (
	countsPlan = flat.PlanOf[counts]("parked")
	waiterPlan = flat.PlanOf[waiter]()
	flowPlan   = flat.PlanOf[flow]("node", "spot", "spotNode")
	memberPlan = flat.PlanOf[partAgent]()
	lanePlan   = flat.PlanOf[lane]("roots")
	domainPlan = flat.PlanOf[domain]("least")
)

// Plans returns the plans of a queue's records.
func Plans() []*flat.Plan {
	return []*flat.Plan{countsPlan, waiterPlan, flowPlan, memberPlan, lanePlan, domainPlan}
}

// AppendState appends the queue. Numbers near now take few bytes.
func (q *Queue) AppendState(b []byte, now int64) []byte {
	b = countsPlan.Append(b, unsafe.Pointer(q.counts), now)
	b = q.waiters.AppendState(b, func(b []byte, w *waiter) []byte { return waiterPlan.Append(b, unsafe.Pointer(w), now) })
	b = q.flows.AppendState(b, func(b []byte, f *flow) []byte {
		b = flowPlan.Append(b, unsafe.Pointer(f), now)
		on := int32(0)
		if f.spot != 0 {
			on = q.spots.At(f.spot).on
		}
		// The key that it is sorted by may differ from what enter would use now: the mode may have changed since.
		return flat.AppendNumber(binary.AppendVarint(b, int64(on)), q.tree.KeyOf(f.node).A, now)
	})
	b = q.members.AppendState(b, func(b []byte, m *partAgent) []byte { return memberPlan.Append(b, unsafe.Pointer(m), now) })
	b = q.lanes.AppendState(b, func(b []byte, l *lane) []byte { return lanePlan.Append(b, unsafe.Pointer(l), now) })
	return q.domains.AppendState(b, func(b []byte, d *domain) []byte { return domainPlan.Append(b, unsafe.Pointer(d), now) })
}

// ReadState fills an empty queue on the heap with what AppendState wrote, and checks that all of it fits together. The
// caller checks its own numbers: see EachOf.
func (q *Queue) ReadState(r *flat.Reader) {
	countsPlan.Read(r, unsafe.Pointer(q.counts))
	q.waiters.ReadState(r, func(r *flat.Reader, w *waiter) { waiterPlan.Read(r, unsafe.Pointer(w)) })
	type place struct {
		on int32
		at int64
	}
	var places []place
	q.flows.ReadState(r, func(r *flat.Reader, f *flow) {
		flowPlan.Read(r, unsafe.Pointer(f))
		places = append(places, place{r.Link(), r.Number()})
	})
	q.members.ReadState(r, func(r *flat.Reader, m *partAgent) { memberPlan.Read(r, unsafe.Pointer(m)) })
	q.lanes.ReadState(r, func(r *flat.Reader, l *lane) { lanePlan.Read(r, unsafe.Pointer(l)) })
	q.domains.ReadState(r, func(r *flat.Reader, d *domain) { domainPlan.Read(r, unsafe.Pointer(d)) })
	if r.Bad() {
		return
	}
	c := check{q: q, waiters: q.waiters.Live(), flows: q.flows.Live(), members: q.members.Live(), lanes: q.lanes.Live(), domains: q.domains.Live()}
	if !c.records() {
		r.Fail()
		return
	}
	k := 0
	for i := range c.flows {
		if !c.flows[i] {
			continue
		}
		f, fl, p := int32(i), q.flows.At(int32(i)), places[k]
		k++
		seq := q.waiters.At(fl.first).seq
		if p.on == 0 {
			fl.node = q.tree.Insert(&q.lanes.At(fl.lane).roots[fl.key.Class], flat.Key{A: p.at, B: seq}, f)
			continue
		}
		fl.node = q.tree.Insert(&q.parked, flat.Key{A: p.at, B: int64(f)}, f)
		fl.spot = q.spotOf(p.on, fl.lane)
		fl.spotNode = q.tree.Insert(&q.spots.At(fl.spot).root, flat.Key{A: seq}, f)
	}
}

// EachMember calls f with the name of every agent that the queue remembers.
func (q *Queue) EachMember(f func(agent int32)) {
	for i, live := range q.members.Live() {
		if live {
			f(q.members.At(int32(i)).agent)
		}
	}
}

// EachWaiter calls f with every waiter.
func (q *Queue) EachWaiter(f func(waiter, ticket int32)) {
	for i, live := range q.waiters.Live() {
		if live {
			f(int32(i), q.waiters.At(int32(i)).ticket)
		}
	}
}

// EachParked calls f with the caller's number of the limit that each parked flow lacks.
func (q *Queue) EachParked(f func(on int32)) {
	for i, live := range q.spots.Live() {
		if live {
			f(q.spots.At(int32(i)).on)
		}
	}
}

// check checks the records of a state. It also fills the indexes.
type check struct {
	q                                       *Queue
	waiters, flows, members, lanes, domains flat.Live
}

func (c *check) records() bool {
	return c.eachLane() && c.eachMember() && c.eachFlow() && c.sums()
}

// eachLane checks the lanes, their list, and the domains.
func (c *check) eachLane() bool {
	q := c.q
	uses := make([]int32, len(c.domains))
	left, before := c.lanes.Count(), int32(0)
	for i := q.first; i != 0; i = q.lanes.At(i).next {
		if left--; left < 0 || !c.lanes.Has(i) {
			return false
		}
		l := q.lanes.At(i)
		if l.prev != before || l.n < 1 || l.n > MaxMeters || q.findLane(l.key) != 0 {
			return false
		}
		before = i
		q.laneIx.Add(l.key.hash(), i)
		for k, d := range l.domains {
			if int32(k) >= l.n {
				if d != 0 {
					return false
				}
				continue
			}
			if !c.domains.Has(d) {
				return false
			}
			uses[d]++
		}
	}
	if left != 0 {
		return false
	}
	seen := map[int32]bool{}
	for i, live := range c.domains {
		if !live {
			continue
		}
		d := q.domains.At(int32(i))
		if d.lanes != uses[i] || d.lanes < 1 || d.on < 0 || seen[d.on] {
			return false
		}
		seen[d.on] = true
		q.domIx.Add(onHash(d.on), int32(i))
	}
	return true
}

// eachMember checks the agents of all parts and the lists of idle ones.
func (c *check) eachMember() bool {
	q := c.q
	idle := 0
	for i, live := range c.members {
		if !live {
			continue
		}
		m := q.members.At(int32(i))
		if !c.lanes.Has(m.lane) || m.class >= MaxClasses || m.agent <= 0 || m.waiting < 0 || q.findMember(m.lane, m.class, m.agent) != 0 {
			return false
		}
		q.membIx.Add(memberHash(m.lane, m.class, m.agent), int32(i))
		if m.waiting == 0 {
			idle++
		}
	}
	for i, live := range c.lanes {
		if !live {
			continue
		}
		l := q.lanes.At(int32(i))
		for class := range l.parts {
			pt, before := &l.parts[class], int32(0)
			for k := pt.idle; k != 0; k = q.members.At(k).next {
				if idle--; idle < 0 || !c.members.Has(k) {
					return false
				}
				m := q.members.At(k)
				if m.prev != before || m.waiting != 0 || m.lane != int32(i) || int(m.class) != class {
					return false
				}
				before = k
			}
			if pt.idleEnd != before {
				return false
			}
		}
	}
	return idle == 0
}

// eachFlow checks the flows, their waiters, and the lists of flows of an agent.
func (c *check) eachFlow() bool {
	q := c.q
	left := c.waiters.Count()
	seen := make(map[int64]bool, left)
	for i, live := range c.flows {
		if !live {
			continue
		}
		f, fl := int32(i), q.flows.At(int32(i))
		if !c.lanes.Has(fl.lane) || !c.members.Has(fl.member) || fl.first == 0 {
			return false
		}
		m := q.members.At(fl.member)
		if q.lanes.At(fl.lane).key != fl.key.Lane || m.lane != fl.lane || m.class != fl.key.Class || m.agent != fl.key.Agent {
			return false
		}
		h := fl.key.hash()
		for k, p := q.flowIx.Seek(h, 0); k != 0; k, p = q.flowIx.Seek(h, p) {
			if q.flows.At(k).key == fl.key {
				return false
			}
		}
		q.flowIx.Add(h, f)
		before := int32(0)
		for w := fl.first; w != 0; w = q.waiters.At(w).next {
			if left--; left < 0 || !c.waiters.Has(w) {
				return false
			}
			wt := q.waiters.At(w)
			if wt.flow != f || wt.prev != before || wt.cost < 1 || wt.cost > 4*Unit || int32(wt.lead) >= q.lanes.At(fl.lane).n ||
				seen[wt.seq] || wt.seq > q.seq || wt.seq < q.front {
				return false
			}
			seen[wt.seq], before = true, w
		}
		if fl.last != before {
			return false
		}
	}
	if left != 0 {
		return false
	}
	flows := c.flows.Count()
	for i, live := range c.members {
		if !live {
			continue
		}
		before := int32(0)
		for f := q.members.At(int32(i)).flows; f != 0; f = q.flows.At(f).mnext {
			if flows--; flows < 0 || !c.flows.Has(f) {
				return false
			}
			if fl := q.flows.At(f); fl.member != int32(i) || fl.mprev != before {
				return false
			}
			before = f
		}
	}
	return flows == 0
}

// sums adds up what waits, and compares it with what the records say.
func (c *check) sums() bool {
	q := c.q
	type sum struct {
		n    int32
		cost int64
	}
	var all sum
	var byClass [MaxClasses]int32
	members := make([]sum, len(c.members))
	for i, live := range c.waiters {
		if !live {
			continue
		}
		wt := q.waiters.At(int32(i))
		m := q.flows.At(wt.flow).member
		members[m].n++
		members[m].cost += wt.cost
		byClass[q.members.At(m).class]++
		all.n++
		all.cost += wt.cost
	}
	parts := make([][MaxClasses]struct {
		sum
		active int32
	}, len(c.lanes))
	for i, live := range c.members {
		if !live {
			continue
		}
		m := q.members.At(int32(i))
		if m.waiting != members[i].n || m.queued != members[i].cost {
			return false
		}
		pt := &parts[m.lane][m.class]
		pt.n += m.waiting
		pt.cost += m.queued
		if m.waiting > 0 {
			pt.active++
		}
	}
	active := make([][MaxClasses]int32, len(c.domains))
	for i, live := range c.lanes {
		if !live {
			continue
		}
		l, waiting := q.lanes.At(int32(i)), int32(0)
		for class := range l.parts {
			pt, want := &l.parts[class], parts[i][class]
			if pt.waiting != want.n || pt.queued != want.cost || pt.active != want.active {
				return false
			}
			waiting += pt.waiting
			for k := range l.n {
				active[l.domains[k]][class] += pt.active
			}
		}
		if l.waiting != waiting {
			return false
		}
	}
	for i, live := range c.domains {
		if live && q.domains.At(int32(i)).active != active[i] {
			return false
		}
	}
	return q.waiting == int64(all.n) && q.queued == all.cost && q.byClass == byClass
}
