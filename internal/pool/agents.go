package pool

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// namedCaller is a caller with the text of its name.
type namedCaller struct {
	name string
	rec  int32
}

// callersByName returns all callers by name. Both lists of a snapshot are made from it: in a large fleet nothing costs more
// than texts and their order.
func (p *Pool) callersByName() []namedCaller {
	list := make([]namedCaller, 0, p.callers.recs.Len())
	for i := int32(1); i < p.callers.recs.End(); i++ {
		if c := p.callers.recs.At(i); c.name != 0 {
			list = append(list, namedCaller{p.names.Text(c.name), i})
		}
	}
	slices.SortFunc(list, func(a, b namedCaller) int { return strings.Compare(a.name, b.name) })
	return list
}

// agentStates lists the live agents by name, at most store.MaxAgents.
func (p *Pool) agentStates(byName []namedCaller) []store.Agent {
	list := make([]store.Agent, 0, len(byName))
	var count [store.MaxClasses]int
	waiting := p.waitingCallers()
	all := int64(0) // used by all agents, live or not
	for _, n := range byName {
		a, ok := p.agentState(n, waiting[n.rec])
		all += a.Used
		if !ok {
			continue
		}
		count[a.Class]++
		list = append(list, a)
	}
	p.divideUse(list, all)
	var alive uint16
	for c := range p.spec.Classes {
		if count[c] > 0 {
			alive |= 1 << c
		}
	}
	s := policy.Shares{Size: p.totalLimit(), Weights: p.weights, Alive: alive}
	for i := range list {
		class := list[i].Class
		list[i].Allocated = s.Allocated(class, count[class])
	}
	return list[:min(len(list), store.MaxAgents)]
}

// divideUse divides the use of a window that is shorter than a minute among the agents that sent within it, by what they
// sent in the last minute: the history has no finer figures.
func (p *Pool) divideUse(list []store.Agent, all int64) {
	in := p.total()
	if in == nil || all == 0 || !isShort(p.defOf(in)) {
		return
	}
	used := min(in.Used(p.defOf(in), p.ring(in)), all)
	for i := range list {
		list[i].Used = (list[i].Used*used + all - 1) / all
	}
}

// isShort reports whether the history, which counts by minutes, is too coarse for a window, and the count of the latest
// second too fine.
func isShort(d *meter.Def) bool {
	return (d.Kind == meter.Rolling || d.Kind == meter.Bucket) && d.Window >= 2*second && d.Window < minute
}

// agentState describes an agent. ok says whether it is live.
func (p *Pool) agentState(n namedCaller, waits bool) (a store.Agent, ok bool) {
	c := p.callers.recs.At(n.rec)
	a = store.Agent{Name: n.name, Class: int(c.class), Since: store.Time(c.first), Used: p.recentUse(c)}
	switch {
	case p.lease == 0: // no agent counts as live
	case c.lease != 0 && p.leases.At(c.lease).expires > p.now: // an agent with an expired lease may still ask
		l := p.leases.At(c.lease)
		a.Class, a.Leased, a.Slot = int(l.class), true, l.slotTill > p.now
		a.User, a.Machine = p.names.Text(l.user), p.names.Text(l.machine)
		a.Since, a.Expires = store.Time(l.since), store.Time(l.expires)
		for _, w := range l.waits[:l.n] {
			a.WaitsFor = append(a.WaitsFor, p.names.Text(w))
		}
		ok = true
	case c.class == left:
	case waits:
		a.Expires, ok = store.Time(p.now+p.lease), true
	default:
		a.Expires, ok = store.Time(c.lastSeen()+p.lease), c.lastSeen()+p.lease > p.now && c.asked > 0
	}
	return a, ok && a.Class < len(p.spec.Classes)
}

// waitingCallers returns the set of callers that have waiting requests.
func (p *Pool) waitingCallers() map[int32]bool {
	set := map[int32]bool{}
	if p.queue.Len() == 0 {
		return set
	}
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); t.state == stateWaiting {
			set[p.names.Tags(t.who.agent)[callerTag]] = true
		}
	}
	return set
}

// total returns the meter that is divided among agents, see [store.Agent]. It is that of the first unscoped limit on
// requests, else of the first other unscoped limit. Concurrency comes last, and windows of subscriptions do not count.
// total returns nil if there is none.
func (p *Pool) total() *inst {
	var first, places *inst
	for i := range p.spec.Limits {
		u, l := p.unscoped[i].at, &p.spec.Limits[i]
		switch {
		case u == nil || p.isRetired(i) || l.Plan:
		case p.defs[i].Kind == meter.Concurrency:
			if places == nil {
				places = u
			}
		case l.Unit == "requests":
			return u
		case first == nil:
			first = u
		}
	}
	if first == nil {
		return places
	}
	return first
}

// modelLimit returns the first limit on requests per model or key, or -1 if there is none.
func (p *Pool) modelLimit() int {
	for i := range p.spec.Limits {
		if l := &p.spec.Limits[i]; l.Per != 0 && l.Per&^store.Shared == 0 && l.Unit == "requests" && p.defs[i].Kind != meter.Concurrency && !p.isRetired(i) {
			return i
		}
	}
	return -1
}

// totalLimit returns the amount that is divided among agents. If only models or keys have limits, it is the sum of the known
// ones.
func (p *Pool) totalLimit() (sum int64) {
	if in := p.total(); in != nil {
		return in.Capacity(p.ring(in))
	}
	limit := p.modelLimit()
	for i := int32(1); i < p.insts.End() && limit >= 0; i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit && in.Cap > 0 {
			sum += in.Capacity(p.ring(in))
		}
	}
	return sum
}

// ofModels returns some meter of the limit per model or key with a known size, or nil if there is none.
func (p *Pool) ofModels() *inst {
	limit := p.modelLimit()
	for i := int32(1); i < p.insts.End() && limit >= 0; i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit && in.Cap > 0 {
			return in
		}
	}
	return nil
}

// recentUse estimates what an agent has used of the total limit. If its window is short, this is the use in the last minute.
func (p *Pool) recentUse(c *caller) int64 {
	in := p.total()
	if in == nil {
		in = p.ofModels()
	}
	if in == nil {
		return 0
	}
	d := p.defOf(in)
	unit := slices.Index(p.history.units, p.spec.Limits[in.limit].Unit)
	switch {
	case d.Kind == meter.Concurrency:
		return p.placesOf(c.name)
	case d.Window < 2*second: // the history counts by minutes, which is too coarse
		if p.now-c.last >= d.Window {
			return 0
		}
		return int64(c.inSecond)
	case in.IsStock(d):
		return p.recent(c, max(p.now-(in.Hi-d.Window), 0), unit)
	case isShort(d) && in == p.total():
		if p.now-c.last >= d.Window {
			return 0
		}
		return p.recent(c, minute, unit)
	case d.Window < minute:
		return (p.recent(c, minute, unit)*d.Window + minute - 1) / minute
	}
	return p.recent(c, d.Window, unit)
}

// placesOf counts the granted requests of an agent that are not closed.
func (p *Pool) placesOf(agent int32) (n int64) {
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); (t.state == stateHeld || t.state == stateReady) && t.who.agent == agent {
			n++
		}
	}
	return n
}
