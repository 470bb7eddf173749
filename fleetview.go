package sluice

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/reading"
	"github.com/sluicehq/sluice/store"
)

// How old a view may be for heartbeats. From viewAge on, or later if views take long to read, the next one is read while
// heartbeats still get the last one. None gets one older than viewAgeMax, so that each reports backpressure within two
// seconds.
const (
	viewAge    = 500 * time.Millisecond
	viewAgeMax = 1500 * time.Millisecond
	// viewWithin bounds one reading.
	viewWithin = 10 * time.Second
)

// viewRest is how long the store is left to others after a view was read.
func viewRest(took time.Duration) time.Duration { return min(2*took, viewAge/2) }

// recent returns a view that is at most viewAgeMax old.
func (g *Gate) recent(ctx context.Context) (*view, error) {
	return g.shared.Get(ctx, g.readShared, func(last reading.Last[*view]) reading.Use {
		switch {
		case last.Age > viewAgeMax:
			return reading.Refuse
		case last.Age <= max(viewAge, 10*last.Took):
			return reading.Keep
		}
		return reading.Renew
	})
}

// fresh returns a view that is begun after this call.
func (g *Gate) fresh(ctx context.Context) (*view, error) {
	return g.shared.Get(ctx, g.readShared, func(reading.Last[*view]) reading.Use { return reading.Refuse })
}

// readShared reads a view for all callers that want one at about the same time.
func (g *Gate) readShared(ctx context.Context) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	began := time.Now()
	v, err := g.look(ctx, false)
	if err != nil {
		return nil, err
	}
	v.began = began
	for i := range v.snaps { // the view is kept for a while: drop what is not used
		s := &v.snaps[i]
		v.totals = append(v.totals, g.resources[v.names[i]].totalLimit(s))
		s.Callers, s.Members, s.Limits = nil, nil, nil
	}
	return v, nil
}

// findAgent finds an agent in a list sorted by name; nil if it is not there.
func findAgent(list []store.Agent, name string) *store.Agent {
	i, ok := slices.BinarySearchFunc(list, name, func(a store.Agent, name string) int { return strings.Compare(a.Name, name) })
	if !ok {
		return nil
	}
	return &list[i]
}

// isCut reports whether a list has its maximum length and a name would come after its end.
func isCut(list []store.Agent, name string) bool {
	return len(list) >= store.MaxAgents && name > list[len(list)-1].Name
}

// largeFleet is the number of agents from which on an agent need not be in a view itself to be told what it may use: one
// agent more or less hardly changes what the others of its class have, and reading a large fleet for each that joins is slow.
const largeFleet = 500

// agentIn returns what a resource knows about an agent. If the agent is missing because the list is cut off, or because it
// has just joined a large fleet, it returns the allocation of another agent of the same class.
func (v *view) agentIn(i int, l *Lease) *store.Agent {
	list := v.snaps[i].Agents
	if a := findAgent(list, l.agent); a != nil {
		return a
	}
	uses := func(r *resource) bool { return r.name == v.names[i] }
	if !isCut(list, l.agent) && (len(list) < largeFleet || !slices.ContainsFunc(l.resources, uses)) {
		return nil
	}
	for k := range list {
		if a := &list[k]; a.Class == int(l.class) {
			return &store.Agent{Name: l.agent, Class: a.Class, Allocated: a.Allocated}
		}
	}
	return nil
}

// knows reports whether the view shows an agent as it is now, as far as the agent is told.
func (v *view) knows(l *Lease, waits []string) bool {
	if v.gate.settings.lease < 0 {
		return true
	}
	switch a := findAgent(v.joined, l.agent); {
	case a != nil:
		if !a.Leased || a.Class != int(l.class) || a.User != l.user || a.Machine != l.machine || !sameNames(a.WaitsFor, waits) {
			return false
		}
	case v.joinedCut && (len(v.joined) == 0 || l.agent > v.joined[len(v.joined)-1].Name):
		return true
	case len(v.joined) < largeFleet || len(waits) > 0:
		return false
	}
	for _, r := range l.resources {
		i := slices.Index(v.names, r.name)
		if a := v.agentIn(i, l); a == nil || a.Class != int(l.class) {
			return false
		}
	}
	return true
}

// sameNames reports whether two lists without duplicates have the same names, in any order.
func sameNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	return !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}

// view is the whole fleet at nearly one moment: pools are read separately.
type view struct {
	gate   *Gate
	names  []string         // of the resources
	snaps  []store.Snapshot // of the resources, by name
	joined []store.Agent    // agents with a lease, by name
	slots  []store.Agent    // of instances
	clock  clock
	graph  policy.Graph
	began  time.Time // when the reading began, for shared views
	totals []int64   // what agents share of each resource, for shared views; 0: not known
	cutOff bool      // parts are missing, because this process is cut off from the store
	// joinedCut is set if more agents have a lease than can be listed.
	joinedCut bool

	once  sync.Once // guards found
	found policy.Holds
}

// look reads all pools and the dependencies between agents. If anyway is set, it skips what it cannot read, because
// this process is cut off or because the pool belongs to another configuration.
func (g *Gate) look(ctx context.Context, anyway bool) (*view, error) {
	v := &view{gate: g, graph: policy.Graph{Waits: map[string][]string{}, Limited: map[string]string{}}}
	for _, one := range g.readAll(ctx, anyway) {
		if one.err != nil && anyway && one.of.other {
			continue
		}
		if one.err != nil {
			return nil, one.err
		}
		v.cutOff = v.cutOff || one.cutOff
		v.names, v.snaps, v.clock = append(v.names, one.of.name), append(v.snaps, one.snap), clockAt(one.snap.Now)
		one.of.findLimited(&one.snap, v.graph.Limited)
	}
	for name, k := range g.settings.agents {
		if len(k.waitsFor) > 0 {
			v.graph.Waits[name] = k.waitsFor
		}
	}
	if g.settings.lease < 0 || v.cutOff {
		v.addUnnamed()
		return v, nil
	}
	pool, err := g.fleetPool(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := pool.Snapshot(ctx)
	if err != nil {
		return nil, g.storeError(err)
	}
	v.joinedCut = len(snap.Agents) >= store.MaxAgents
	joined, besides := splitFleet(snap.Agents)
	v.joined = joined
	v.clock = clockAt(snap.Now)
	for _, a := range v.joined {
		if len(a.WaitsFor) > 0 {
			v.graph.Waits[a.Name] = a.WaitsFor // includes the configured ones
		}
	}
	v.addUnnamed()
	v.addBesides(besides)
	return v, nil
}

// poolRead is the result of reading one pool.
type poolRead struct {
	of     *resource
	snap   store.Snapshot
	cutOff bool
	err    error
}

// readAll reads all pools.
func (g *Gate) readAll(ctx context.Context, anyway bool) []poolRead {
	names := g.names()
	list := make([]poolRead, len(names))
	each(len(names), func(i int) {
		one := &list[i]
		one.of = g.resources[names[i]]
		one.snap, one.cutOff, one.err = one.of.snapshot(ctx, anyway)
	})
	return list
}

// each calls f for every number below n, up to 8 at the same time. With a remote store, many calls then take little
// longer than one.
func each(n int, f func(i int)) {
	const atOnce = 8
	if n == 1 {
		f(0)
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, atOnce) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i) - 1)
			}
		})
	}
	all.Wait()
}

// holds returns the agents that should start no new work. It is computed on first use.
func (v *view) holds() policy.Holds {
	v.once.Do(func() {
		if !v.gate.settings.noCascade {
			v.found = v.graph.Holds()
		}
	})
	return v.found
}

// addUnnamed adds the configured dependencies of agents that the configuration does not name.
func (v *view) addUnnamed() {
	if len(v.gate.settings.unknown.waitsFor) == 0 {
		return
	}
	for i := range v.snaps {
		for _, a := range v.snaps[i].Agents {
			v.addConfigured(a.Name)
		}
	}
}

// addConfigured adds the configured dependencies of an agent, unless its dependencies are already known.
func (v *view) addConfigured(agent string) {
	if _, known := v.graph.Waits[agent]; known {
		return
	}
	if waits := without(v.gate.settings.agent(agent).waitsFor, agent); len(waits) > 0 {
		v.graph.Waits[agent] = waits
	}
}

// agents lists the live agents of the fleet and of all resources.
func (v *view) agents() []inspect.AgentStatus {
	all := map[string]*inspect.AgentStatus{}
	for _, a := range v.joined {
		all[a.Name] = v.agent(&a)
	}
	for _, a := range v.slots {
		name, slot := a.WaitsFor[0], strings.TrimPrefix(a.Name, fleetMark)
		if all[name] == nil { // only its instances are left
			a.Name, a.Slot = name, false
			all[name] = v.agent(&a)
		}
		all[name].Slots = append(all[name].Slots, slot)
	}
	most := map[string]*foremost{}
	for i, name := range v.names {
		total := v.gate.resources[name].totalLimit(&v.snaps[i])
		for _, a := range v.snaps[i].Agents {
			s := all[a.Name]
			if s == nil {
				s = v.agent(&a)
				s.Class = v.gate.resources[name].settings.className(a.Class)
				all[a.Name] = s
			}
			if most[a.Name] == nil {
				most[a.Name] = new(foremost)
			}
			if most[a.Name].is(v, i, a.Used) {
				s.Resource, s.Allocated, s.Used = name, allocated(total, &a), a.Used
			}
		}
	}
	v.setStates(all)
	list := []inspect.AgentStatus{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// foremost finds the resource that an agent's situation is told by: the one that the agent uses most. If it uses none,
// one that the configuration names or that any agent uses goes before an idle preset.
type foremost struct {
	found bool
	used  int64
	rank  int
}

// is reports whether resource i comes before all earlier ones, given the agent's use of it.
func (f *foremost) is(v *view, i int, used int64) bool {
	rank := 0
	if r := v.gate.resources[v.names[i]]; !r.preset && !r.other {
		rank++
	}
	if v.snaps[i].Counters.Sent > 0 {
		rank++
	}
	if f.found && (used < f.used || used == f.used && rank <= f.rank) {
		return false
	}
	*f = foremost{found: true, used: used, rank: rank}
	return true
}

// noMachine is what the daemon keeps for an agent that states no machine: an empty one would mean the daemon's own.
const noMachine = "-"

// agent returns what one pool knows about an agent.
func (v *view) agent(a *store.Agent) *inspect.AgentStatus {
	user := a.User
	if !a.Leased { // an agent without a lease states no user
		user = v.gate.settings.agent(a.Name).user
	}
	slots := []string{}
	if a.Slot {
		slots = append(slots, a.Name)
	}
	machine := a.Machine
	if machine == noMachine {
		machine = ""
	}
	return &inspect.AgentStatus{
		Name: a.Name, Class: v.gate.settings.className(a.Class), User: user, Machine: machine, Leased: a.Leased, Slots: slots, State: "active",
		Allocated:      inspect.Unknown,
		LeaseStartedAt: v.clock.moment(a.Since), LeaseExpiresAt: v.clock.moment(a.Expires), PauseChain: []string{},
		WaitsFor: append([]string{}, v.graph.Waits[a.Name]...),
	}
}

func (v *view) setStates(all map[string]*inspect.AgentStatus) {
	state := v.states()
	for name, s := range all {
		s.State, s.PauseChain = state(name)
	}
}

// states returns a function that gives the state of an agent, and its chain if it is held.
func (v *view) states() func(agent string) (state string, chain []string) {
	waiting := map[string]bool{}
	for i := range v.snaps {
		for _, w := range v.snaps[i].Queue {
			waiting[w.Agent] = true
		}
	}
	holds := v.holds()
	return func(agent string) (string, []string) {
		hold, held := holds.Of(agent)
		_, limited := v.graph.Limited[agent]
		switch {
		case limited:
			return "limited", []string{}
		case held:
			return "held", hold.Chain
		case waiting[agent]:
			return "waiting", []string{}
		}
		return "active", []string{}
	}
}
