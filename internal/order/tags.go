package order

// Granted takes a waiter out of the queue and moves the tags of its class and agent forward by its costs. It uses
// the weights of this moment and stores none.
func (q *Queue) Granted(w int32, costs *Costs) {
	wt := *q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	member := fl.member
	l, m := q.lanes.At(fl.lane), q.members.At(member)
	pt := &l.parts[m.class]

	for i := range l.n {
		d, tg := q.domains.At(l.domains[i]), &pt.tags[i]
		d.virtual = max(d.virtual, tg.start)
		tg.finish = tg.start + q.partCost(l, m.class, i, costs.Cost[i])
		tg.start = tg.finish
		d.latest = max(d.latest, tg.finish)
	}
	q.carry()
	pt.virtual = max(pt.virtual, m.start)
	m.finish = m.start + wt.cost
	m.start = m.finish
	pt.latest = max(pt.latest, m.finish)
	q.Remove(w)
	if m.waiting > 0 {
		q.rekey(member)
	}
	q.forget(pt)
}

// partCost returns how far a cost moves the tags of a class's part of a lane, on one meter. The class's weight is
// divided among its lanes by the number of agents that wait in each.
func (q *Queue) partCost(l *lane, class uint8, i int32, cost int64) int64 {
	all := int64(max(q.domains.At(l.domains[i]).active[class], 1))
	here := int64(max(l.parts[class].active, 1))
	return cost * weightScale * all / (max(q.Weights[class], 1) * here)
}

// Settled corrects the tags of an agent whose request cost more or less than it was granted for. It does nothing if
// the queue no longer remembers the agent.
func (q *Queue) Settled(at Position, was, is *Costs) {
	lane := q.findLane(at.Lane)
	if lane == 0 {
		return
	}
	i := q.findMember(lane, at.Class, at.Agent)
	if i == 0 {
		return
	}
	l, m := q.lanes.At(lane), q.members.At(i)
	pt := &l.parts[at.Class]
	for k := range l.n {
		tg := &pt.tags[k]
		correct(&tg.start, &tg.finish, q.partCost(l, at.Class, k, is.Cost[k]-was.Cost[k]), pt.waiting > 0)
		d := q.domains.At(l.domains[k])
		d.latest = max(d.latest, tg.finish)
		d.level()
	}
	before, _ := was.largest()
	after, _ := is.largest()
	correct(&m.start, &m.finish, after-before, m.waiting > 0)
	pt.latest = max(pt.latest, m.finish)
	pt.level()
	if m.waiting > 0 {
		q.rekey(i)
	}
}

// correct moves a finish tag by delta. The start tag of a waiting party follows if it was equal to the old finish.
func correct(start, finish *int64, delta int64, waits bool) {
	old := *finish
	*finish = max(old+delta, 0)
	if waits && *start == old {
		*start = *finish
	} else if waits {
		*start = max(*start, *finish)
	}
}

// rekey moves an agent's flows to the position of its new start tag.
func (q *Queue) rekey(member int32) {
	if q.Mode == FIFO {
		return
	}
	for f := q.members.At(member).flows; f != 0; f = q.flows.At(f).mnext {
		if q.flows.At(f).spot == 0 {
			q.leave(f)
			q.enter(f)
		}
	}
}

// rest drops lanes when the queue becomes empty.
func (q *Queue) rest() {
	for i := q.first; i != 0; {
		l := q.lanes.At(i)
		next := l.next
		for c := range l.parts {
			q.forget(&l.parts[c])
		}
		q.retire(i)
		i = next
	}
}

// retire drops an empty lane whose tags virtual time has passed. A new lane would start with the same tags.
func (q *Queue) retire(i int32) {
	l := q.lanes.At(i)
	if l.waiting > 0 {
		return
	}
	for c := range l.parts {
		pt := &l.parts[c]
		for k := range l.n {
			if pt.tags[k].finish > q.domains.At(l.domains[k]).virtual {
				return
			}
		}
		if q.forget(pt); pt.idle != 0 {
			return
		}
	}
	q.dropLane(i)
}

// forget drops up to four idle agents whose tags virtual time has passed. They would start like new agents. A few at
// a time keeps every step small.
func (q *Queue) forget(pt *part) {
	for range 4 {
		i := pt.idle
		if i == 0 {
			return
		}
		if q.members.At(i).finish > pt.virtual {
			q.leaveIdle(i)
			q.enterIdle(i) // examine another one next time
			continue
		}
		q.dropMember(i)
	}
}

func (q *Queue) partOf(m *partAgent) *part { return &q.lanes.At(m.lane).parts[m.class] }

func (q *Queue) enterIdle(i int32) {
	m := q.members.At(i)
	pt := q.partOf(m)
	m.prev, m.next = pt.idleEnd, 0
	if pt.idleEnd != 0 {
		q.members.At(pt.idleEnd).next = i
	} else {
		pt.idle = i
	}
	pt.idleEnd = i
}

func (q *Queue) leaveIdle(i int32) {
	m := q.members.At(i)
	pt := q.partOf(m)
	if m.prev != 0 {
		q.members.At(m.prev).next = m.next
	} else {
		pt.idle = m.next
	}
	if m.next != 0 {
		q.members.At(m.next).prev = m.prev
	} else {
		pt.idleEnd = m.prev
	}
	m.prev, m.next = 0, 0
}
