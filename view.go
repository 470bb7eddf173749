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
	"github.com/sluicehq/sluice/store"
)

// view is the whole fleet at one moment, or nearly: pools are read one after the other.
type view struct {
	gate   *Gate
	names  []string         // of the resources
	snaps  []store.Snapshot // of the resources, by name
	joined []store.Agent    // that have a lease, by name
	slots  []store.Agent    // of instances
	clock  clock
	graph  policy.Graph
	began  time.Time // when it was read, if it is shared
	number uint64    // of those that are shared
	cutOff bool      // some of it cannot be read, because this process is cut off from the store
	// joinedCut tells that more have a lease than can be listed.
	joinedCut bool

	once  sync.Once // of what follows
	found policy.Holds
}

// look reads all pools, and who waits for whose work. With anyway it goes on without what cannot be
// read because this process is cut off, or because the pool belongs to another configuration.
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
	for name, k := range g.plan.agents {
		if len(k.waitsFor) > 0 {
			v.graph.Waits[name] = k.waitsFor
		}
	}
	if g.plan.lease < 0 || v.cutOff {
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
			v.graph.Waits[a.Name] = a.WaitsFor // with what is configured
		}
	}
	v.addUnnamed()
	v.addBesides(besides)
	return v, nil
}

// reading is a pool as it was read.
type reading struct {
	of     *resource
	snap   store.Snapshot
	cutOff bool
	err    error
}

// readAll reads all pools.
func (g *Gate) readAll(ctx context.Context, anyway bool) []reading {
	names := g.names()
	list := make([]reading, len(names))
	each(len(names), func(i int) {
		one := &list[i]
		one.of = g.resources[names[i]]
		one.snap, one.cutOff, one.err = one.of.snapshot(ctx, anyway)
	})
	return list
}

// each calls f for every number below n, some at once: a store far away then takes little longer for many than for one.
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

// holds is who should start no new work. It is worked out when it is first asked for.
func (v *view) holds() policy.Holds {
	v.once.Do(func() {
		if !v.gate.plan.noCascade {
			v.found = v.graph.Holds()
		}
	})
	return v.found
}

// addUnnamed adds what the configuration says of agents that it does not name.
func (v *view) addUnnamed() {
	if len(v.gate.plan.unknown.waitsFor) == 0 {
		return
	}
	for i := range v.snaps {
		for _, a := range v.snaps[i].Agents {
			v.addConfigured(a.Name)
		}
	}
}

// addConfigured adds what the configuration says an agent waits for, unless more is known.
func (v *view) addConfigured(agent string) {
	if _, known := v.graph.Waits[agent]; known {
		return
	}
	if waits := without(v.gate.plan.agent(agent).waitsFor, agent); len(waits) > 0 {
		v.graph.Waits[agent] = waits
	}
}

// agents lists those that are alive, in the fleet or in any resource.
func (v *view) agents() []inspect.AgentStatus {
	all := map[string]*inspect.AgentStatus{}
	for _, a := range v.joined {
		all[a.Name] = v.agent(&a)
	}
	for _, a := range v.slots {
		name, slot := a.WaitsFor[0], strings.TrimPrefix(a.Name, fleetMark)
		if all[name] == nil { // all that is left of it
			a.Name, a.Slot = name, false
			all[name] = v.agent(&a)
		}
		all[name].Slots = append(all[name].Slots, slot)
	}
	for i, name := range v.names {
		for _, a := range v.snaps[i].Agents {
			s := all[a.Name]
			if s == nil {
				s = v.agent(&a)
				s.Class = v.gate.resources[name].plan.className(a.Class)
				all[a.Name] = s
			}
			if s.Resource == "" || a.Used > s.Used {
				s.Resource, s.Allocated, s.Used = name, a.Allocated, a.Used
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

// agent is what one pool knows of an agent.
func (v *view) agent(a *store.Agent) *inspect.AgentStatus {
	user := a.User
	if !a.Leased { // one who only asks does not say
		user = v.gate.plan.agent(a.Name).user
	}
	slots := []string{}
	if a.Slot {
		slots = append(slots, a.Name)
	}
	return &inspect.AgentStatus{
		Name: a.Name, Class: v.gate.plan.className(a.Class), User: user, Machine: a.Machine, Leased: a.Leased, Slots: slots, State: "active",
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

// states tells the state of each agent, and the chain of one that is held.
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
