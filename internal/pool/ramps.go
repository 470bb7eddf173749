package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Requests whose limits are not known start with a ramp. Each model or key has its own where the provider limits them
// separately: what a response states about one says nothing about another.

const (
	// maxRamps bounds the ramps of models and keys, so that there are pause records left for refusals.
	maxRamps = maxGates / 2
	// showsRate is the longest window of a limit that holds back bursts. Below a limit of a day, a provider usually
	// has another of a minute.
	showsRate = 60 * minute
)

// ramps reports whether the meters of limit i start with a ramp if their size is unknown.
func (p *Pool) ramps(i int) bool {
	l := &p.spec.Limits[i]
	return l.Per != 0 && l.Per&^store.Shared == 0 && !l.Plan && p.defs[i].Kind != meter.Concurrency
}

// rampsScopes reports whether models or keys start with ramps of their own.
func (p *Pool) rampsScopes() bool {
	for i := range p.spec.Limits {
		if p.ramps(i) {
			return true
		}
	}
	return false
}

// startRamp makes the requests of a new scope start slowly.
func (p *Pool) startRamp(scope store.Scope, model, key int32) {
	if scope != 0 && p.gates.Len() >= maxRamps {
		return
	}
	if g := p.gates.At(p.pauseOf(scope, model, key)); g.Untouched() {
		g.StartRamp(p.now)
	}
}

// rampStays reports whether the ramp of a scope stays, however long ago its latest request was: the scope still has a
// meter of unknown size, and only a new meter starts a ramp.
func (p *Pool) rampStays(g *pauseRec) bool {
	if !g.Unknown() {
		return false
	}
	who := names{model: g.model, key: g.key}
	for i := range p.spec.Limits {
		per := p.spec.Limits[i].Per
		if scope, _, _ := gateScope(per, g.model, g.key); !p.ramps(i) || scope != g.scope {
			continue
		}
		if at := p.findInst(i, scoped(&who, per)); at != 0 && p.insts.At(at).Cap == 0 {
			return true
		}
	}
	return false
}

// limitKnown ends the ramp of a meter's scope, because a response has stated a size. Only a limit that counts requests
// exactly and whose window is short makes the ramp needless.
func (p *Pool) limitKnown(in *inst) {
	l := &p.spec.Limits[in.limit]
	if l.Estimated || p.defs[in.limit].Window > showsRate {
		return
	}
	scope, model, key := gateScope(l.Per, in.scope.model, in.scope.key)
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.scope == scope && g.model == model && g.key == key {
			g.LimitsKnown()
		}
	}
}

// endRamps ends all ramps of unknown limits, because a member states sizes.
func (p *Pool) endRamps() {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if g := p.gates.At(i); g.Unknown() {
			g.LimitsKnown()
		}
	}
}

// followRamp makes the first pause of a scope continue the ramp that its requests were in. What that has learned holds
// for them.
func (p *Pool) followRamp(g *pauseRec, who names) {
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		if of := p.gates.At(i); of.Unknown() && of.covers(who.model, who.key) {
			g.Follow(&of.State)
			return
		}
	}
}
