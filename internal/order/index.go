package order

import "github.com/sluicehq/sluice/internal/flat"

func (k LaneKey) hash() uint32 {
	return uint32(flat.Mix(uint64(uint32(k.Model))<<32 | uint64(uint32(k.Key))<<16 ^ uint64(k.Shared)))
}

func (p Position) hash() uint32 {
	h := flat.Mix(uint64(p.Lane.hash())<<32 | uint64(uint32(p.Agent)))
	h = flat.Mix(h ^ uint64(uint32(p.User))<<32 ^ uint64(uint32(p.Tool)))
	return uint32(flat.Mix(h ^ uint64(p.Own)<<8 ^ uint64(p.Class)))
}

func memberHash(lane int32, class uint8, agent int32) uint32 {
	return uint32(flat.Mix(flat.Mix(uint64(class)<<32|uint64(uint32(agent))) ^ uint64(uint32(lane))))
}

// flowOf finds or creates the flow of a position.
func (q *Queue) flowOf(at Position, costs *Costs) int32 {
	h := at.hash()
	for i, p := q.flowIx.Seek(h, 0); i != 0; i, p = q.flowIx.Seek(h, p) {
		if q.flows.At(i).key == at {
			return i
		}
	}
	i := q.flows.New()
	fl := q.flows.At(i)
	fl.key, fl.lane = at, q.laneOf(at.Lane, costs)
	fl.member = q.memberOf(fl.lane, at.Class, at.Agent)
	m := q.members.At(fl.member)
	if fl.mnext = m.flows; fl.mnext != 0 {
		q.flows.At(fl.mnext).mprev = i
	}
	m.flows = i
	q.flowIx.Add(h, i)
	return i
}

func (q *Queue) dropFlow(i int32) {
	fl := q.flows.At(i)
	if fl.mprev != 0 {
		q.flows.At(fl.mprev).mnext = fl.mnext
	} else {
		q.members.At(fl.member).flows = fl.mnext
	}
	if fl.mnext != 0 {
		q.flows.At(fl.mnext).mprev = fl.mprev
	}
	q.flowIx.Remove(fl.key.hash(), i)
	q.flows.Free(i)
}

func (q *Queue) findLane(key LaneKey) int32 {
	h := key.hash()
	for i, p := q.laneIx.Seek(h, 0); i != 0; i, p = q.laneIx.Seek(h, p) {
		if q.lanes.At(i).key == key {
			return i
		}
	}
	return 0
}

func (q *Queue) laneOf(key LaneKey, costs *Costs) int32 {
	if i := q.findLane(key); i != 0 {
		q.rebind(i, costs)
		return i
	}
	i := q.lanes.New()
	l := q.lanes.At(i)
	l.key, l.next, l.n = key, q.first, int32(costs.N)
	for k := range costs.N {
		l.domains[k] = q.domainOf(costs.On[k])
	}
	if q.first != 0 {
		q.lanes.At(q.first).prev = i
	}
	q.first = i
	q.laneIx.Add(key.hash(), i)
	return i
}

// rebind points an empty lane at the meters that its key stands for now. While the lane was empty its old meters may
// have been dropped, and their numbers reused for other meters.
func (q *Queue) rebind(i int32, costs *Costs) {
	l := q.lanes.At(i)
	if l.waiting > 0 {
		return
	}
	for k := range l.n {
		if q.domains.At(l.domains[k]).on == costs.On[k] {
			continue
		}
		q.leaveDomain(l.domains[k])
		l.domains[k] = q.domainOf(costs.On[k])
		for c := range l.parts {
			l.parts[c].tags[k] = tags{}
		}
	}
}

func (q *Queue) dropLane(i int32) {
	l := q.lanes.At(i)
	if l.prev != 0 {
		q.lanes.At(l.prev).next = l.next
	} else {
		q.first = l.next
	}
	if l.next != 0 {
		q.lanes.At(l.next).prev = l.prev
	}
	for k := range l.n {
		q.leaveDomain(l.domains[k])
	}
	q.laneIx.Remove(l.key.hash(), i)
	q.lanes.Free(i)
}

// domainOf finds or creates the virtual time of a meter, and counts one more lane that uses it.
func (q *Queue) domainOf(on int32) int32 {
	h := onHash(on)
	for i, p := q.domIx.Seek(h, 0); i != 0; i, p = q.domIx.Seek(h, p) {
		if d := q.domains.At(i); d.on == on {
			d.lanes++
			return i
		}
	}
	i := q.domains.New()
	d := q.domains.At(i)
	d.on, d.lanes = on, 1
	q.domIx.Add(h, i)
	return i
}

func (q *Queue) leaveDomain(i int32) {
	d := q.domains.At(i)
	if d.lanes--; d.lanes == 0 {
		q.domIx.Remove(onHash(d.on), i)
		q.domains.Free(i)
	}
}

func (q *Queue) findMember(lane int32, class uint8, agent int32) int32 {
	h := memberHash(lane, class, agent)
	for i, p := q.membIx.Seek(h, 0); i != 0; i, p = q.membIx.Seek(h, p) {
		if m := q.members.At(i); m.agent == agent && m.class == class && m.lane == lane {
			return i
		}
	}
	return 0
}

// memberOf finds or creates an agent's record in a part. A new record is idle.
func (q *Queue) memberOf(lane int32, class uint8, agent int32) int32 {
	if i := q.findMember(lane, class, agent); i != 0 {
		return i
	}
	i := q.members.New()
	m := q.members.At(i)
	m.agent, m.class, m.lane = q.Names.Keep(agent), class, lane
	q.membIx.Add(memberHash(lane, class, agent), i)
	q.enterIdle(i)
	return i
}

func (q *Queue) dropMember(i int32) {
	m := q.members.At(i)
	q.leaveIdle(i)
	q.membIx.Remove(memberHash(m.lane, m.class, m.agent), i)
	q.Names.Drop(m.agent)
	q.members.Free(i)
}
