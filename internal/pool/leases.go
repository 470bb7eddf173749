package pool

import (
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// lease is an agent's membership in the fleet. Heartbeats keep it alive.
type lease struct {
	name, user, machine int32
	since, expires      int64
	slotTill            int64  // end of its slot; 0: it has none
	session             uint64 // session that sent the last heartbeat
	before              uint64 // another session of the same machine that sends heartbeats too; 0: none
	beforeTill          int64  // end of the lease by the heartbeats of before
	waits               [store.MaxWaits]int32
	n                   uint8
	class               uint8
}

// left is the class of a caller that has left. It is not live until it asks again.
const left = 0xff

// heard notes a request of an agent, which makes the agent live.
func (p *Pool) heard(caller int32, class uint8) {
	rec := p.callers.recs.At(caller)
	rec.class, rec.asked = class, p.age()
	if p.lease > 0 {
		p.aliveTill[class] = max(p.aliveTill[class], p.now+p.lease) // a heartbeat may have asked for a longer lease
	}
}

// alive reports whether a class is live: one of its agents holds a lease, waits, or asked within the length of a lease.
func (p *Pool) alive(class int) bool {
	return p.lease > 0 && (p.now < p.aliveTill[class] || p.queue.Waiting(rankOf(class)) > 0 ||
		class == 0 && p.queue.Waiting(emergency) > 0)
}

// living returns the set of live classes.
func (p *Pool) living() (set uint16) {
	for c := range p.spec.Classes {
		if p.alive(c) {
			set |= 1 << c
		}
	}
	return set
}

// nextDeath returns when the next class, except but, will no longer be live if only time passes. The room kept for it is
// free then.
func (p *Pool) nextDeath(but uint8) int64 {
	at := int64(meter.Never)
	for c := range p.spec.Classes {
		if c != int(but) {
			at = min(at, p.deathOf(c))
		}
	}
	return at
}

// deathOf returns when a class will no longer be live if only time passes. It returns meter.Never while a request of the
// class waits, or if the class is not live.
func (p *Pool) deathOf(class int) int64 {
	if t := p.aliveTill[class]; t > p.now && p.queue.Waiting(rankOf(class)) == 0 && (class > 0 || p.queue.Waiting(emergency) == 0) {
		return t
	}
	return meter.Never
}

// heartbeat creates or renews an agent's lease, and takes a slot of its user if op asks for one. Checking for a free slot
// and taking it are one step.
func (p *Pool) heartbeat(op *store.Op) {
	if p.lease == 0 || !p.validMember(op) {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	if p.leases.Len() >= store.MaxLeases {
		p.bury()
	}
	p.burySome(2) // checking all leases would make every heartbeat of a large fleet expensive
	agent, user := p.names.Hold(op.Agent), p.names.Hold(op.User)
	caller := p.callers.of(&p.names, agent)
	rec := p.callers.recs.At(caller)
	if rec.lease != 0 {
		p.buryOne(rec.lease) // an expired lease is created again
	}
	code, at := store.CodeNone, int64(0)
	if free := p.slotFree(user, rec.lease, op.Slots.Max); free > p.now {
		code, at = store.CodeSlots, free
	} else if rec.lease == 0 && p.leases.Len() >= store.MaxLeases {
		code = store.CodeFull
	}
	if code != 0 {
		p.names.Drop(user)
		p.names.Drop(agent)
		p.dropCaller(caller)
		refuse(op, code, at)
		return
	}
	moved := rec.class == left
	if rec.lease == 0 {
		rec.lease = p.leases.New()
		*p.leases.At(rec.lease) = lease{name: p.names.Keep(agent), since: p.now, class: op.Class}
		moved = moved || rec.asked > 0 && rec.class != op.Class
	}
	l := p.leases.At(rec.lease)
	p.names.Drop(agent)
	p.names.Drop(l.user)
	old := l.machine
	l.user, l.machine = user, p.names.Hold(op.Machine)
	l.heldBy(op.ID.Session, l.machine == old && l.expires > p.now)
	p.names.Drop(old)
	p.setWaits(l, op.WaitsFor)
	moved = moved || l.class != op.Class
	l.class, rec.class = op.Class, op.Class
	l.expires, l.slotTill = p.now+p.lease, 0
	if op.TTL > 0 {
		l.expires = p.now + op.TTL.Microseconds()
	}
	if op.Slots.Max > 0 {
		l.slotTill = p.now + op.Slots.TTL.Microseconds()
	}
	if moved {
		p.countLiving()
	}
	p.aliveTill[op.Class] = max(p.aliveTill[op.Class], l.expires)
	op.Result.State = store.Granted
}

// validMember reports whether the fields of a heartbeat are in range.
func (p *Pool) validMember(op *store.Op) bool {
	if op.Agent == "" || max(len(op.Agent), len(op.User), len(op.Machine)) > store.MaxName || len(op.WaitsFor) > store.MaxWaits {
		return false
	}
	for _, name := range op.WaitsFor {
		if name == "" || len(name) > store.MaxName {
			return false
		}
	}
	s := op.Slots
	return int(op.Class) < len(p.spec.Classes) && op.TTL >= 0 && op.TTL <= store.MaxTTL && s.Max >= 0 && s.Max <= store.MaxSlots &&
		(s.Max == 0 || s.TTL > 0 && s.TTL <= store.MaxTTL)
}

// heldBy notes the session that renews a lease. Two processes of one machine may both renew it: if one leaves, the other
// still holds it. shared says that the lease was valid and held on the same machine before.
func (l *lease) heldBy(session uint64, shared bool) {
	if l.session == session {
		return
	}
	l.before, l.beforeTill = 0, 0
	if shared {
		l.before, l.beforeTill = l.session, l.expires
	}
	l.session = session
}

// setWaits sets the names of the agents that a lease's agent waits for.
func (p *Pool) setWaits(l *lease, names []string) {
	was, n := l.waits, l.n
	l.n = 0
	for _, name := range names {
		l.waits[l.n] = p.names.Hold(name)
		l.n++
	}
	for i := range n {
		p.names.Drop(was[i])
	}
}

// slotFree returns when a user with most slots has one for the agent with lease mine. It returns now if a slot is free,
// if the agent has one already, or if most is 0, which means no bound.
func (p *Pool) slotFree(user, mine int32, most int) int64 {
	if most == 0 {
		return p.now
	}
	if mine != 0 {
		if l := p.leases.At(mine); l.user == user && l.slotTill > p.now {
			return p.now // it keeps its slot, even if the bound is smaller now
		}
	}
	var taken []int64
	for i := int32(1); i < p.leases.End(); i++ {
		l := p.leases.At(i)
		if l.name == 0 || l.user != user || l.slotTill <= p.now || i == mine {
			continue
		}
		taken = append(taken, l.slotTill)
	}
	over := len(taken) - most
	if over < 0 {
		return p.now
	}
	slices.Sort(taken)
	return taken[over] // more than most can be taken, if the bound was larger before
}

// leave ends an agent's lease and frees its slot, unless another process holds the lease too.
func (p *Pool) leave(op *store.Op) {
	op.Result.State = store.Ended
	if op.Agent == "" || len(op.Agent) > store.MaxName {
		return
	}
	agent := p.names.Hold(op.Agent)
	i := p.names.Tags(agent)[callerTag]
	if i != 0 {
		rec := p.callers.recs.At(i)
		if rec.lease == 0 || !p.handOn(p.leases.At(rec.lease), op) {
			rec.class = left
			if rec.lease != 0 {
				p.dropLease(rec.lease)
			}
			p.countLiving()
		}
	}
	p.names.Drop(agent)
	if i != 0 {
		p.dropCaller(i)
	}
}

// handOn reports whether a lease stays when op leaves it, because another process has taken it over or holds it too. An
// op without a machine ends the lease for all processes.
func (p *Pool) handOn(l *lease, op *store.Op) bool {
	switch {
	case op.Machine == "" || l.expires <= p.now:
		return false
	case l.session != op.ID.Session || p.names.Text(l.machine) != op.Machine:
		if l.before == op.ID.Session {
			l.before = 0
		}
		return true
	case l.before == 0 || l.beforeTill <= p.now:
		return false
	}
	l.session, l.expires = l.before, l.beforeTill
	l.before = 0
	return true
}

// bury drops all expired leases.
func (p *Pool) bury() {
	for i := int32(1); i < p.leases.End(); i++ {
		p.buryOne(i)
	}
}

// burySome checks n leases and drops the expired ones. Steps call it too, because heartbeats may stop.
func (p *Pool) burySome(n int) {
	for range n {
		if p.sweepDead++; p.sweepDead >= p.leases.End() {
			p.sweepDead = 0
			return
		}
		p.buryOne(p.sweepDead)
	}
}

// buryOne drops a lease if it has expired and its slot too.
func (p *Pool) buryOne(i int32) {
	if l := p.leases.At(i); l.name != 0 && l.expires <= p.now && l.slotTill <= p.now {
		caller := p.names.Tags(l.name)[callerTag]
		p.dropLease(i)
		p.dropCaller(caller)
	}
}

func (p *Pool) dropLease(i int32) {
	l := p.leases.At(i)
	p.setWaits(l, nil)
	p.names.Drop(l.user)
	p.names.Drop(l.machine)
	p.callers.recs.At(p.names.Tags(l.name)[callerTag]).lease = 0
	p.names.Drop(l.name)
	p.leases.Free(i)
}

// countLiving computes again until when each class is live, after an agent has left or changed its class.
func (p *Pool) countLiving() {
	p.aliveTill = [store.MaxClasses]int64{}
	for i := int32(1); i < p.leases.End(); i++ {
		if l := p.leases.At(i); l.name != 0 {
			p.aliveTill[l.class] = max(p.aliveTill[l.class], l.expires)
		}
	}
	for i := int32(1); i < p.callers.recs.End(); i++ {
		if c := p.callers.recs.At(i); c.name != 0 && c.class != left && c.asked > 0 {
			p.aliveTill[c.class] = max(p.aliveTill[c.class], c.lastSeen()+p.lease)
		}
	}
}

// launch returns when a job should start, so that jobs that would start together are spread over op.Wait.
func (p *Pool) launch(op *store.Op) {
	if op.Wait < 0 || op.Wait > store.MaxTTL {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	op.Result.State = store.Granted
	op.Result.Reason.At = store.Time(p.scatter.Next(p.now, op.Wait.Microseconds()))
}
