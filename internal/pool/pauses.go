package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// pauseRec is the gate of the whole pool, or of one model, key, or both.
type pauseRec struct {
	pause.State
	scope      store.Scope
	model, key int32
	cause      int32 // name
	prev, next int32
}

// maxGates bounds how many scopes can be paused at the same time; past it the whole
// pool is.
const maxGates = 256

func (g *pauseRec) covers(model, key int32) bool {
	return (g.scope&store.PerModel == 0 || g.model == model) && (g.scope&store.PerKey == 0 || g.key == key)
}

// stale reports that the gate is as good as a new one, or of a model or key that nobody came
// back to.
func (g *pauseRec) stale(t int64) bool { return g.Idle(t) || g.scope != 0 && g.Abandoned(t) }

// gateScope leaves of a scope what is known of the request.
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

// pauseOf finds or makes the gate of a scope.
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

// splitLanes makes lanes of their own for what a gate or a limit tells apart. Those who
// wait are put in line anew, in the order in which they came.
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
	p.gates.Free(i)
}

// pausesAllow asks every gate that covers a model and key.
func (p *Pool) pausesAllow(model, key int32) pause.Verdict {
	all := pause.Verdict{OK: true}
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		v := g.Allow(p.now)
		if v.OK || !g.covers(model, key) {
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

// dropStale drops gates that are as good as new, and those of models and keys that nobody came
// back to. Every step begins with it: what is decided must not depend on who looked before.
func (p *Pool) dropStale() {
	for i := p.firstGate; i != 0; {
		g := p.gates.At(i)
		next := g.next
		if g.Allow(p.now); g.stale(p.now) {
			p.dropPause(i)
		}
		i = next
	}
}

func (p *Pool) pausesSent(t int32, tk *ticket) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(tk.who.model, tk.who.key) {
			g.Sent(p.now, t)
		}
	}
}

// pausesLost tells gates that a ticket ended with no answer.
func (p *Pool) pausesLost(t int32, tk *ticket, unsent bool) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(tk.who.model, tk.who.key) {
			g.Lost(p.now, t, unsent)
		}
	}
}

func (p *Pool) limitsBind(who *names) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.covers(who.model, who.key) {
			g.LimitsBind()
		}
	}
}

// limitsKnown ends the ramp that a pool of unknown limits begins with.
func (p *Pool) limitsKnown() {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.scope == 0 {
			g.LimitsKnown()
		}
	}
}

// strict reports where class order alone counts: after a pause, until the ramp is over.
// All is for the whole pool, otherwise only lanes that a gate covers.
func (p *Pool) strict() order.Strictness { return p.strictFrom(pause.Probing) }

// strictFrom is strict with gates that are in a phase or past it.
func (p *Pool) strictFrom(phase pause.Phase) (s order.Strictness) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		g.Allow(p.now) // the pause may just be over
		switch {
		case g.Phase < phase || g.Phase == pause.Open:
		case g.scope == 0:
			s.All = true
		default:
			s.Lane = func(lane order.LaneKey) bool { return p.strictLane(lane, phase) }
		}
	}
	return s
}

// strictLane reports whether a gate that probes or ramps covers a lane.
func (p *Pool) strictLane(lane order.LaneKey, phase pause.Phase) bool {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if g.covers(lane.Model, lane.Key) && g.Phase >= phase && g.Phase != pause.Open {
			return true
		}
	}
	return false
}

// holding reports that a gate is not open: one that concerns the ticket, if it is still
// there.
func (p *Pool) holding(id store.ID) bool {
	t, tk := p.find(id)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if t != 0 && !g.covers(tk.who.model, tk.who.key) {
			continue
		}
		g.Allow(p.now) // its time may be over
		if g.Phase != pause.Open {
			return true
		}
	}
	return false
}

// judge moves the gates by the verdict on a request granted at granted. It reports a
// refusal that is the first of its kind: later ones, of probes, say nothing new of the
// ledger.
func (p *Pool) judge(op *store.Op, who names, granted int64, t int32) bool {
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
		if g := p.gateFor(op, who); !g.Exhausted(p.now, granted, hint) { // until when is not known: as after any refusal
			g.Throttled(p.now, granted, 0, p.throttle)
		}
	}
	return false
}

func (p *Pool) gateFor(op *store.Op, who names) *pauseRec {
	g := p.gates.At(p.pauseOf(op.Scope, who.model, who.key))
	p.setCause(g, op)
	return g
}

func (p *Pool) setCause(g *pauseRec, op *store.Op) {
	cause := op.Cause
	if cause == "" {
		cause = op.Verdict.String()
	}
	old := g.cause
	g.cause = p.names.Hold(cause[:min(len(cause), store.MaxName)])
	p.names.Drop(old)
}

func (p *Pool) pause(op *store.Op) {
	if op.RetryAfter <= 0 {
		refuse(op, store.CodeInvalid, -1, 0)
		return
	}
	if op.Cause == "" {
		op.Cause = "paused by hand"
	}
	p.withNames(op, func(who names) {
		g := p.gates.At(p.pauseOf(op.Scope, who.model, who.key))
		wait := op.RetryAfter.Microseconds()
		if g.Allow(p.now).Phase != pause.Paused || g.Until < p.now+wait { // else another reason holds for longer
			p.setCause(g, op)
		}
		g.Pause(p.now, wait)
	})
	op.Result.State = store.Ended
}

func (p *Pool) resume(op *store.Op) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.scope != 0 || !p.lossHolds() { // that is not for anybody to end
			g.Resume(p.now)
		}
	}
	op.Result.State = store.Ended
}

// withNames lends op's model and key as interned names.
func (p *Pool) withNames(op *store.Op, f func(names)) {
	who := names{
		model: p.names.Hold(op.Model[:min(len(op.Model), store.MaxName)]),
		key:   p.names.Hold(op.Key[:min(len(op.Key), store.MaxName)]),
	}
	f(who)
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
