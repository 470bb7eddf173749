package pool

import (
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// lease is what an agent's heartbeats keep alive.
type lease struct {
	name, user, machine int32
	since, expires      int64
	slotTill            int64  // 0: it has no slot
	session             uint64 // that sent the last heartbeat
	before              uint64 // another one of the same machine, and until when it is good
	beforeTill          int64
	waits               [store.MaxWaits]int32
	n                   uint8
	class               uint8
}

// left marks a caller that has taken its leave: it is dead until it asks again.
const left = 0xff

// heard notes that an agent asks: it is alive.
func (p *Pool) heard(caller int32, class uint8) {
	rec := p.callers.recs.At(caller)
	rec.class, rec.asked = class, p.age()
	if p.lease > 0 {
		p.aliveTill[class] = max(p.aliveTill[class], p.now+p.lease) // a heartbeat may have said for longer
	}
}

// alive reports whether a class has an agent that is alive: one with a lease, one that asked
// within the length of a lease, or one that waits.
func (p *Pool) alive(class int) bool {
	return p.lease > 0 && (p.now < p.aliveTill[class] || p.queue.Waiting(rankOf(class)) > 0 ||
		class == 0 && p.queue.Waiting(emergency) > 0)
}

// living returns the set of classes that are alive.
func (p *Pool) living() (set uint16) {
	for c := range p.spec.Classes {
		if p.alive(c) {
			set |= 1 << c
		}
	}
	return set
}

// nextDeath returns when the next class but one will be dead if it is not heard of: what was
// kept for it is then free.
func (p *Pool) nextDeath(but uint8) int64 {
	at := int64(meter.Never)
	for c := range p.spec.Classes {
		if c != int(but) {
			at = min(at, p.deathOf(c))
		}
	}
	return at
}

// deathOf returns when time alone will make a class dead: not while one of it waits.
func (p *Pool) deathOf(class int) int64 {
	if t := p.aliveTill[class]; t > p.now && p.queue.Waiting(rankOf(class)) == 0 && (class > 0 || p.queue.Waiting(emergency) == 0) {
		return t
	}
	return meter.Never
}

// heartbeat takes or keeps an agent's lease, and with it its user's slot: the check and the
// taking are one step.
func (p *Pool) heartbeat(op *store.Op) {
	if p.lease == 0 || !p.validMember(op) {
		refuse(op, store.CodeInvalid, -1, 0)
		return
	}
	if p.leases.Len() >= store.MaxLeases {
		p.bury()
	}
	p.burySome(2) // not all of them: a large fleet would pay for it with every heartbeat
	agent, user := p.names.Hold(op.Agent), p.names.Hold(op.User)
	caller := p.callers.of(&p.names, agent)
	rec := p.callers.recs.At(caller)
	if rec.lease != 0 {
		p.buryOne(rec.lease) // one that has run out is taken anew
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
		refuse(op, code, -1, at)
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

// heldBy notes which session keeps a lease alive. Two processes of one machine may both do so;
// if the later one leaves, the other still has it.
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

// slotFree returns when a user who has most slots has one for the agent whose lease is mine:
// now, if it has one or there is no bound.
func (p *Pool) slotFree(user, mine int32, most int) int64 {
	if most == 0 {
		return p.now
	}
	if mine != 0 {
		if l := p.leases.At(mine); l.user == user && l.slotTill > p.now {
			return p.now // it keeps what it has, though there may be fewer now
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
	return taken[over] // there may be more than there may be now
}

// leave gives an agent's lease and slot back, unless another process holds it.
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

// handOn reports whether a lease stays although one leaves it: another process has taken it
// over, or has held it as well. One that names no machine speaks for all.
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

// bury drops leases that have run out.
func (p *Pool) bury() {
	for i := int32(1); i < p.leases.End(); i++ {
		p.buryOne(i)
	}
}

// burySome looks at some of them: who sends no heartbeats does not call bury either.
func (p *Pool) burySome(n int) {
	for range n {
		if p.sweepDead++; p.sweepDead >= p.leases.End() {
			p.sweepDead = 0
			return
		}
		p.buryOne(p.sweepDead)
	}
}

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

// countLiving works out anew when each class will be dead: one of its agents has left.
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

// launch tells when a job should start, so that those that would start together are spread
// over op.Wait.
func (p *Pool) launch(op *store.Op) {
	if op.Wait < 0 || op.Wait > store.MaxTTL {
		refuse(op, store.CodeInvalid, -1, 0)
		return
	}
	op.Result.State = store.Granted
	op.Result.Reason.At = store.Time(p.scatter.Next(p.now, op.Wait.Microseconds()))
}
