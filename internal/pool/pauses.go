package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// pauseRec is the pause of the whole pool, of a model, of a key, or of both together. It stays while its state says more
// than a new record would.
type pauseRec struct {
	pause.State
	scope      store.Scope
	model, key int32
	cause      int32 // name
	agent      int32 // name: whose request began it; 0: not known
	prev, next int32
}

// maxGates bounds the number of pause records. Beyond it, a pause applies to the whole pool.
const maxGates = 256

// covers reports whether a pause applies to requests with a model and key.
func (g *pauseRec) covers(model, key int32) bool {
	return (g.scope&store.PerModel == 0 || g.model == model) && (g.scope&store.PerKey == 0 || g.key == key)
}

// stale reports whether the record can be dropped: it is as good as a new one, or no request came for its model or key
// after the pause.
func (g *pauseRec) stale(t int64) bool { return g.Idle(t) || g.scope != 0 && g.Abandoned(t) }

// gateScope reduces a scope to the attributes that the request has.
func gateScope(scope store.Scope, model, key int32) (store.Scope, int32, int32) {
	scope &= store.Shared
	if scope&store.PerModel == 0 || model == 0 {
		scope, model = scope&^store.PerModel, 0
	}
	if scope&store.PerKey == 0 || key == 0 {
		scope, key = scope&^store.PerKey, 0
	}
	return scope, model, key
}

// pauseOf returns the pause record of a scope, and creates it if needed.
func (p *Pool) pauseOf(scope store.Scope, model, key int32) int32 {
	scope, model, key = gateScope(scope, model, key)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.scope == scope && g.model == model && g.key == key {
			return i
		}
	}
	if p.gates.Len() >= maxGates && scope != 0 {
		return p.pauseOf(0, 0, 0)
	}
	p.splitLanes(scope)
	i := p.gates.New()
	g := p.gates.At(i)
	g.scope, g.model, g.key = scope, p.names.Keep(model), p.names.Keep(key)
	if g.next = p.firstGate; g.next != 0 {
		p.gates.At(g.next).prev = i
	}
	p.firstGate = i
	return i
}

// splitLanes gives the models or keys in scope lanes of their own, because a pause or a limit distinguishes them. It
// queues all waiting requests again, in the order in which they came.
func (p *Pool) splitLanes(scope store.Scope) {
	if scope&^p.laneScopes == 0 {
		return
	}
	p.laneScopes |= scope
	var waiting []int32
	for i := int32(1); i < p.tickets.End(); i++ {
		if p.tickets.At(i).state == stateWaiting {
			waiting = append(waiting, i)
		}
	}
	slices.SortFunc(waiting, func(a, b int32) int {
		return cmp.Compare(p.queue.Number(p.tickets.At(a).waiter), p.queue.Number(p.tickets.At(b).waiter))
	})
	for _, i := range waiting {
		p.queue.Remove(p.tickets.At(i).waiter)
	}
	for _, i := range waiting {
		tk := p.tickets.At(i)
		costs := p.costs(tk)
		tk.waiter, tk.parked = p.queue.Push(p.position(tk), i, &costs, false), false
	}
}

func (p *Pool) dropPause(i int32) {
	g := p.gates.At(i)
	if g.prev != 0 {
		p.gates.At(g.prev).next = g.next
	} else {
		p.firstGate = g.next
	}
	if g.next != 0 {
		p.gates.At(g.next).prev = g.prev
	}
	p.names.Drop(g.model)
	p.names.Drop(g.key)
	p.names.Drop(g.cause)
	p.names.Drop(g.agent)
	p.gates.Free(i)
}

// pausesAllow returns the combined verdict of all pauses that cover a model and key.
func (p *Pool) pausesAllow(model, key int32) pause.Verdict {
	all := pause.Verdict{OK: true}
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if !g.covers(model, key) { // most do not where each model or key has a ramp
			continue
		}
		v := g.Allow(p.now)
		if v.OK {
			continue
		}
		next := max(all.Next, v.Next)
		if all.OK || v.At > all.At {
			all = v
		}
		all.Next = next
	}
	return all
}

// dropStale drops stale pause records. Every step begins with it, so that no decision depends on earlier reads of the
// pool.
func (p *Pool) dropStale() {
	for i := p.firstGate; i != 0; {
		g := p.gates.At(i)
		next := g.next
		if g.Allow(p.now); g.stale(p.now) && !p.rampStays(g) {
			p.dropPause(i)
		}
		i = next
	}
}

// pausesSent tells pauses that a ticket was granted.
func (p *Pool) pausesSent(t int32, tk *ticket) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(tk.who.model, tk.who.key) {
			g.Sent(p.now, t)
		}
	}
}

// pausesLost tells pauses that a ticket ended without an answer. unsent says that its request was never sent.
func (p *Pool) pausesLost(t int32, tk *ticket, unsent bool) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(tk.who.model, tk.who.key) {
			g.Lost(p.now, t, unsent)
		}
	}
}

// limitsBind tells pauses that limits hold requests back now, which ends a ramp.
func (p *Pool) limitsBind(who *names) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(who.model, who.key) {
			g.LimitsBind()
		}
	}
}

// strict returns where a higher class always goes first: after a pause, until its ramp is over. That is the whole pool,
// or the lanes that the pause covers.
func (p *Pool) strict() order.Strictness { return p.strictFrom(pause.Probing) }

// strictFrom is strict for pauses that are in a phase or past it.
func (p *Pool) strictFrom(phase pause.Phase) (s order.Strictness) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		g.Allow(p.now) // the pause may just be over
		switch {
		case g.Phase < phase || g.Settled(p.now):
		case g.scope == 0:
			s.All = true
		default:
			s.Lane = func(lane order.LaneKey) bool { return p.strictLane(lane, phase) }
		}
	}
	return s
}

// strictLane reports whether a pause that is in a phase or past it covers a lane.
func (p *Pool) strictLane(lane order.LaneKey, phase pause.Phase) bool {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if g.covers(lane.Model, lane.Key) && g.Phase >= phase && !g.Settled(p.now) {
			return true
		}
	}
	return false
}

// holding reports whether a pause, probe or ramp is in force for a ticket. If the ticket has ended, any of the pool's
// counts.
func (p *Pool) holding(id store.ID) bool {
	t, tk := p.find(id)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if t != 0 && !g.covers(tk.who.model, tk.who.key) {
			continue
		}
		if v := g.Allow(p.now); !v.OK || !g.Settled(p.now) {
			return true
		}
	}
	return false
}

// pausesAnswered tells pauses the outcome of a request that was granted at granted. It reports whether this is the first
// refusal of a pause. Later ones, of probes, say nothing new about the ledger.
func (p *Pool) pausesAnswered(op *store.Op, who names, granted int64, t int32) bool {
	hint := op.RetryAfter.Microseconds()
	switch op.Verdict {
	case store.VerdictOK:
		for i := p.firstGate; i != 0; i = p.gates.At(i).next {
			if g := p.gates.At(i); g.covers(who.model, who.key) {
				g.Succeeded(p.now, granted, t)
			}
		}
	case store.VerdictThrottled:
		g := p.gateFor(op, who)
		return g.Throttled(p.now, granted, hint, p.throttle) && g.Throttles == 1
	case store.VerdictOverloaded:
		p.gateFor(op, who).Overloaded(p.now, granted, hint, p.overload, p.throttle.Cap)
	case store.VerdictExhausted:
		if g := p.gateFor(op, who); !g.Exhausted(p.now, granted, hint) { // the end is unknown: treat it as a refusal
			g.Throttled(p.now, granted, 0, p.throttle)
		}
	}
	return false
}

// gateFor returns the pause record for the verdict of op, and sets its cause.
func (p *Pool) gateFor(op *store.Op, who names) *pauseRec {
	g := p.gates.At(p.pauseOf(op.Scope, who.model, who.key))
	if g.Untouched() {
		p.followRamp(g, who)
	}
	p.setCause(g, op, who.agent)
	return g
}

// setCause notes why a pause begins, and whose request began it.
func (p *Pool) setCause(g *pauseRec, op *store.Op, agent int32) {
	cause := op.Cause
	if cause == "" {
		cause = op.Verdict.String()
	}
	old := g.cause
	g.cause = p.names.Hold(cause[:min(len(cause), store.MaxName)])
	p.names.Drop(old)
	old = g.agent
	g.agent = p.names.Keep(agent)
	p.names.Drop(old)
}

// pause pauses a scope by hand.
func (p *Pool) pause(op *store.Op) {
	if op.RetryAfter <= 0 {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	if op.Cause == "" {
		op.Cause = "paused by hand"
	}
	p.withNames(op, func(who names) {
		g := p.gates.At(p.pauseOf(op.Scope, who.model, who.key))
		wait := op.RetryAfter.Microseconds()
		if g.Allow(p.now).Phase != pause.Paused || g.Until < p.now+wait { // otherwise the current pause lasts longer
			p.setCause(g, op, 0)
		}
		g.Pause(p.now, wait)
	})
	op.Result.State = store.Ended
}

// resume ends all pauses by hand, except the pause after the store has lost its memory.
func (p *Pool) resume(op *store.Op) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.scope != 0 || !p.lossHolds() {
			g.Resume(p.now)
		}
	}
	op.Result.State = store.Ended
}

// withNames calls f with op's agent, model and key as interned names, which are valid during the call.
func (p *Pool) withNames(op *store.Op, f func(names)) {
	who := names{
		agent: p.names.Hold(op.Agent[:min(len(op.Agent), store.MaxName)]),
		model: p.names.Hold(op.Model[:min(len(op.Model), store.MaxName)]),
		key:   p.names.Hold(op.Key[:min(len(op.Key), store.MaxName)]),
	}
	f(who)
	p.names.Drop(who.agent)
	p.names.Drop(who.model)
	p.names.Drop(who.key)
}

func holdCode(ph pause.Phase) store.Code {
	switch ph {
	case pause.Probing:
		return store.CodeProbe
	case pause.Ramping:
		return store.CodeRamp
	default:
		return store.CodePaused
	}
}
