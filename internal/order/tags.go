package order

// Granted takes a waiter out of the line and moves its class's and its agent's tags on
// by what it cost. Weights count at this moment; none is stored.
func (q *Queue) Granted(w int32) {
	wt := *q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	member := fl.member
	m, c := q.members.At(member), &q.classes[fl.key.Class]

	q.virtual = max(q.virtual, c.start)
	c.finish = c.start + q.classCost(fl.key.Class, wt.cost)
	c.start = c.finish
	c.virtual = max(c.virtual, m.start)
	m.finish = m.start + wt.cost
	m.start = m.finish
	c.latest = max(c.latest, m.finish)
	q.Remove(w)
	if m.waiting > 0 {
		q.rekey(member)
	}
	q.forget(c)
}

// Settled corrects the tags of an agent whose request cost more or less than it
// was granted for. Agents that are no longer remembered owe nothing.
func (q *Queue) Settled(class uint8, agent int32, delta int64) {
	i := q.findMember(class, agent)
	if i == 0 || delta == 0 {
		return
	}
	m, c := q.members.At(i), &q.classes[class]
	correct(&c.start, &c.finish, q.classCost(class, delta), c.waiting > 0)
	correct(&m.start, &m.finish, delta, m.waiting > 0)
	c.latest = max(c.latest, m.finish)
	if m.waiting > 0 {
		q.rekey(i)
	}
}

// correct moves a finish tag, and the start tag of one who waits if it came from it.
func correct(start, finish *int64, delta int64, waits bool) {
	old := *finish
	*finish = max(old+delta, 0)
	if waits && *start == old {
		*start = *finish
	} else if waits {
		*start = max(*start, *finish)
	}
}

func (q *Queue) classCost(class uint8, cost int64) int64 {
	return cost * weightScale / max(q.Weights[class], 1)
}

// rekey moves an agent's flows to where its new start tag puts them.
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

// rest ends a busy period: with nobody waiting, past use is forgiven.
func (q *Queue) rest() {
	for i := range q.classes {
		c := &q.classes[i]
		q.virtual = max(q.virtual, c.finish)
		c.virtual = max(c.virtual, c.latest)
		q.forget(c)
	}
}

// forget drops some idle agents whose tags virtual time has passed: they would start
// like new ones. A few at a time keeps every step small.
func (q *Queue) forget(c *class) {
	for range 4 {
		i := c.idle
		if i == 0 {
			return
		}
		if q.members.At(i).finish > c.virtual {
			q.leaveIdle(i)
			q.enterIdle(i) // look at another one next time
			continue
		}
		q.dropMember(i)
	}
}

func (q *Queue) enterIdle(i int32) {
	m := q.members.At(i)
	c := &q.classes[m.class]
	m.prev, m.next = c.idleEnd, 0
	if c.idleEnd != 0 {
		q.members.At(c.idleEnd).next = i
	} else {
		c.idle = i
	}
	c.idleEnd = i
}

func (q *Queue) leaveIdle(i int32) {
	m := q.members.At(i)
	c := &q.classes[m.class]
	if m.prev != 0 {
		q.members.At(m.prev).next = m.next
	} else {
		c.idle = m.next
	}
	if m.next != 0 {
		q.members.At(m.next).prev = m.prev
	} else {
		c.idleEnd = m.prev
	}
	m.prev, m.next = 0, 0
}
