package pool

import (
	"github.com/sluicehq/sluice/store"
)

// Names come from requests, so clients can invent any number of them. A limit therefore keeps a bounded
// number of meters. All scopes beyond that bound share one more meter, the crowd's.
//
// The crowd's meter is safe for each scope on it: it counts the sum of their charges, and its size is
// the smallest that any of them has. A scope that has a meter of its own keeps it. A scope moves from the
// crowd to a meter of its own only when nothing is charged to the crowd: before that, some of those charges
// may be the scope's, and it would have the limit twice.

const (
	// sharedPart divides the bound for limits per model or key: there are few models, and their meters are large.
	sharedPart = 10
	// maxCallers bounds the agents that are counted one by one. The others are counted together.
	maxCallers = 1 << 15
	// maxLanes is the number of lanes from which on new models and keys share a lane, if only pauses distinguish them.
	maxLanes = 1 << 10
	// otherName stands for all names that are counted together.
	otherName = "(other)"
	// keepCrowded is how many ages an idle meter with a size stated by the provider is kept, once half of the meters are
	// in use. Before that, such a meter is kept forever.
	keepCrowded = 600
	keepAlways  = 1<<32 - 1
)

// mostMeters returns how many scopes of a limit can have a meter of their own.
func (p *Pool) mostMeters(limit int) int32 {
	most := p.spec.MaxMeters
	if most == 0 {
		most = store.DefaultMeters
	}
	if p.spec.Limits[limit].Per&^store.Shared == 0 {
		most = max(most/sharedPart, 1)
	}
	return int32(most)
}

// crowded reports whether a scope without a meter must share the crowd's.
func (p *Pool) crowded(limit int) bool {
	if p.scoped[limit] >= p.mostMeters(limit) {
		return true
	}
	i := p.crowd[limit]
	return i != 0 && (p.insts.At(i).refs > 0 || !p.uncharged(i))
}

// crowdScope returns the scope of the crowd's meter.
func (p *Pool) crowdScope(per store.Scope) names {
	who := names{p.other, p.other, p.other, p.other, p.other}
	return scoped(&who, per)
}

// uncharged reports whether a meter has no charges.
func (p *Pool) uncharged(i int32) bool {
	in, _, r := p.touch(i)
	return in.Idle() && (r == nil || r.Sum == 0)
}

// enroll counts a new meter of a limit with a scope.
func (p *Pool) enroll(limit int, scope names, i int32) {
	per := p.spec.Limits[limit].Per
	if per == 0 {
		return
	}
	p.scoped[limit]++
	if scope == p.crowdScope(per) {
		p.crowd[limit], p.crowdSize[limit] = i, 0
	}
}

// strike subtracts a dropped meter from the count.
func (p *Pool) strike(limit int, i int32) {
	if p.spec.Limits[limit].Per == 0 {
		return
	}
	p.scoped[limit]--
	if p.crowd[limit] == i {
		p.crowd[limit] = 0
	}
}

// resetOf returns the reset time of a new meter. The windows of scopes in the crowd may reset at different times, so the
// crowd's meter gets none: then it counts a rolling window, which is safe for all of them.
func (p *Pool) resetOf(limit int, scope names) int64 {
	l := &p.spec.Limits[limit]
	if l.Per != 0 && p.defs[limit].NeedsRing() && scope == p.crowdScope(l.Per) {
		return 0
	}
	return int64(l.Reset)
}

// learnCrowd applies what a response states about a scope that shares the crowd's meter. The meter has the smallest size
// that any response stated, and at most the room that the response says remains.
func (p *Pool) learnCrowd(limit int, o *store.Observed, made int64) {
	i, l := p.crowd[limit], &p.spec.Limits[limit]
	in, d, r := p.touch(i)
	if o.Size <= 0 || o.Size > store.MaxAmount {
		return
	}
	if least := p.crowdSize[limit]; least == 0 || o.Size < least {
		p.crowdSize[limit] = o.Size
		p.learnSize(i, in, d, l, o.Size)
	}
	if o.Remaining >= 0 && o.Remaining < in.Cap {
		in.ObserveUsed(d, r, p.now, made, in.Cap-o.Remaining, true)
	}
}

// keepFor returns for how many ages an idle meter is kept.
func (p *Pool) keepFor(in *inst) uint32 {
	switch {
	case !in.stated:
		return keepIdle
	case 2*p.scoped[in.limit] > p.mostMeters(int(in.limit)):
		return keepCrowded
	}
	return keepAlways
}

// callerOf returns the record that counts an agent's requests, and creates it if needed. If maxCallers agents have one,
// new agents share the record of otherName.
func (p *Pool) callerOf(agent int32) int32 {
	if known := p.names.Tags(agent)[callerTag]; known != 0 {
		return known
	}
	if p.callers.recs.Len() >= maxCallers {
		agent = p.other
	}
	return p.callers.of(&p.names, agent)
}

// callerFor returns the record that counts the requests of a ticket's agent. The record that the ticket began with may
// have been dropped since.
func (p *Pool) callerFor(tk *ticket) *caller {
	if tk.caller < p.callers.recs.End() { // Compact may have dropped the last records
		if rec := p.callers.recs.At(tk.caller); rec.name == tk.who.agent || rec.name == p.other {
			return rec
		}
	}
	tk.caller = p.callerOf(tk.who.agent)
	return p.callers.recs.At(tk.caller)
}

// dropCaller drops the record of an agent that never asked, sent nothing and has no lease.
func (p *Pool) dropCaller(i int32) {
	c := p.callers.recs.At(i)
	if c.name == 0 || c.lease != 0 || c.sent != 0 || c.asked != 0 || !p.names.Sole(c.name) {
		return
	}
	p.names.Tags(c.name)[callerTag] = 0
	p.names.Drop(c.name)
	p.callers.recs.Free(i)
}
