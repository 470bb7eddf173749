package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/store"
)

// ticket is the record of a request, from the acquire to the close.
type ticket struct {
	head
	charges [store.MaxLimits]charge // the first n are set
}

// head is a ticket without its charges. end clears it as a whole.
type head struct {
	id       store.ID
	since    int64 // time of the acquire
	granted  int64
	deadline int64 // of waiting
	due      int64 // when the wheel expires it; 0: not scheduled
	ttl      int64 // time to live once it is held
	ends     int64 // end of the time to live; set when it is held
	alive    int64 // how long it waits without a poll; 0: without bound
	who      names
	caller   int32
	session  int32
	waiter   int32
	op       int32 // 1 + index of the op being applied that asked for it
	slot     int32 // of the wheel
	prev     int32 // in the wheel's slot
	next     int32
	lacked   uint16 // set of limits that had no room for it while it waited
	state    state
	class    uint8
	n        uint8 // number of charges
	retry    bool
	answered bool
	parked   bool  // it was parked on a limit of its own; others may still be, see passOn
	surplus  bool  // the queue was full when it came
	counted  bool  // its cost is in the queue's tags
	emergent bool  // an emergency
	once     bool  // it is spent with its grant
	lost     bool  // its session is gone
	tie      uint8 // a store.Tie: how it depends on its session
	note     int32 // the period of the history that counts it
}

type state uint8

const (
	stateWaiting state = iota + 1
	stateReady         // granted, not yet collected by its caller
	stateHeld          // granted and collected
	stateSpent         // closed, with charges that stay until its time to live is over
)

// charge is what a ticket takes, or asks for, from a meter.
type charge struct {
	meter.Charge
	inst  int32
	limit uint8
}

// names are references to interned names.
type names struct{ agent, user, model, tool, key int32 }

func (p *Pool) dropNames(n *names) {
	p.names.Drop(n.agent)
	if n.user|n.model|n.tool|n.key != 0 {
		p.names.Drop(n.user)
		p.names.Drop(n.model)
		p.names.Drop(n.tool)
		p.names.Drop(n.key)
	}
}

// collectWithin is how long a grant waits for its caller to collect it, in microseconds. Then it is given back.
const collectWithin = 1_000_000

func idHash(id store.ID) uint32 { return uint32(flat.Mix(id.Session*0x9e3779b97f4a7c15 + id.N)) }

// find returns the ticket with an id, or 0 if it has no record.
func (p *Pool) find(id store.ID) (int32, *ticket) {
	h := idHash(id)
	for i, n := p.ticketIx.Seek(h, 0); i != 0; i, n = p.ticketIx.Seek(h, n) {
		if t := p.tickets.At(i); t.id == id {
			return i, t
		}
	}
	return 0, nil
}

// newTicket creates a ticket for a valid acquire. The caller sets its charges.
func (p *Pool) newTicket(op *store.Op) (int32, *ticket) {
	i := p.tickets.New()
	t := p.tickets.At(i)
	t.id, t.since, t.deadline, t.class, t.retry = op.ID, p.now, meter.Never, op.Class, op.Retry
	t.emergent, t.once, t.tie = op.Emergency, op.Spent, uint8(op.Tie)
	t.ttl, t.alive = op.TTL.Microseconds(), op.Alive.Microseconds()
	t.session = p.lastSess // present has just set it
	if op.Wait >= 0 {
		t.deadline = p.now + op.Wait.Microseconds()
	}
	t.who = names{agent: p.names.Hold(op.Agent)}
	if op.User != "" || op.Model != "" || op.Tool != "" || op.Key != "" {
		t.who.user, t.who.model = p.names.Hold(op.User), p.names.Hold(op.Model)
		t.who.tool, t.who.key = p.names.Hold(op.Tool), p.names.Hold(op.Key)
	}
	t.caller = p.callerOf(t.who.agent)
	p.heard(t.caller, t.class)
	s := p.sessions.At(t.session)
	s.open++
	if op.Tie == store.TieGone {
		s.watched++
	}
	p.enter(i, t.id)
	return i, t
}

// enter adds a ticket to the index that find uses.
func (p *Pool) enter(i int32, id store.ID) { p.ticketIx.Add(idHash(id), i) }

// strikeOut removes a ticket from the index that find uses.
func (p *Pool) strikeOut(i int32, id store.ID) { p.ticketIx.Remove(idHash(id), i) }

// end removes a ticket. The caller has bound or refunded its charges.
func (p *Pool) end(i int32, t *ticket) {
	p.wheel.remove(p, t)
	for k := range t.n {
		if c := &t.charges[k]; p.unscoped[c.limit].at == nil {
			p.insts.At(c.inst).refs--
		}
	}
	p.dropNames(&t.who)
	p.strikeOut(i, t.id)
	s := p.sessions.At(t.session)
	s.open--
	if t.tie == uint8(store.TieGone) {
		s.watched--
	}
	s.last = p.now
	t.head = head{} // newTicket expects a cleared record
	p.tickets.Recycle(i)
}

// schedule sets when the wheel expires a ticket.
func (p *Pool) schedule(i int32, t *ticket, due int64) {
	if t.due != 0 {
		p.wheel.remove(p, t)
	}
	t.due = due
	p.wheel.add(p, i, t)
}

// scheduleWait sets when a waiting ticket expires: at its deadline, or when its caller has not polled for too long.
func (p *Pool) scheduleWait(i int32, t *ticket) {
	due := t.deadline
	if t.alive > 0 {
		due = min(due, p.now+t.alive)
	}
	if due < meter.Never {
		p.schedule(i, t, due)
	}
}

// The queue has one class more than the store contract: emergencies, above all others. That class has the largest weight
// allowed, so that it always starts level with the others and goes first.
const (
	emergency       = 0
	emergencyWeight = 1000
)

// rankOf returns the queue's class for a class of the contract.
func rankOf(class int) int { return class + 1 }

// position returns where in the queue a ticket belongs. Models and keys have lanes of their own only where limits or
// pauses are scoped to them. Otherwise an agent's requests keep their order across models and keys.
func (p *Pool) position(t *ticket) order.Position {
	at := order.Position{Agent: t.who.agent, Class: uint8(rankOf(int(t.class)))}
	if t.emergent {
		at.Class = emergency
	}
	if p.laneScopes&store.PerModel != 0 {
		at.Lane.Model = p.laneName(t, store.PerModel, t.who.model)
	}
	if p.laneScopes&store.PerKey != 0 {
		at.Lane.Key = p.laneName(t, store.PerKey, t.who.key)
	}
	for k := range t.n {
		bit := uint16(1) << t.charges[k].limit
		if p.shared&bit != 0 {
			at.Lane.Shared |= bit
		} else {
			at.Own |= bit
		}
	}
	if p.ownScopes&store.PerUser != 0 {
		at.User = t.who.user
	}
	if p.ownScopes&store.PerTool != 0 {
		at.Tool = t.who.tool
	}
	return at
}

// laneName returns the model or key whose lane a ticket waits in. Every step visits all lanes and clients can invent
// names, so the number of lanes is bounded. Names that share the crowd's meter share a lane, because they lack the same
// room. Names that only pauses distinguish share one once there are maxLanes: a pause of one name then holds the others
// of that lane too.
func (p *Pool) laneName(t *ticket, per store.Scope, name int32) int32 {
	told := false
	for k := range t.n {
		c := &t.charges[k]
		if p.shared&(1<<c.limit) == 0 || p.spec.Limits[c.limit].Per&per == 0 {
			continue
		}
		if c.inst != p.crowd[c.limit] {
			return name
		}
		told = true
	}
	if told || name != 0 && p.queue.Lanes() >= maxLanes {
		return p.other
	}
	return name
}
