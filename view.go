package sluice

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// view is the whole fleet at one moment, or nearly: pools are read one after the other.
type view struct {
	gate   *Gate
	snaps  []store.Snapshot // of the resources, by name
	joined []store.Agent    // that have a lease
	clock  clock
	graph  policy.Graph
	cutOff bool // some of it cannot be read, because this process is cut off from the store
}

// look reads all pools, and who waits for whose work. With anyway it goes on without what cannot be
// read because this process is cut off.
func (g *Gate) look(ctx context.Context, anyway bool) (*view, error) {
	v := &view{gate: g, graph: policy.Graph{Waits: map[string][]string{}, Limited: map[string]string{}}}
	for _, name := range g.names() {
		r := g.resources[name]
		snap, out, err := r.snapshot(ctx, anyway)
		if err != nil {
			return nil, err
		}
		v.cutOff = v.cutOff || out
		v.snaps, v.clock = append(v.snaps, snap), clockAt(snap.Now)
		r.findLimited(&snap, v.graph.Limited)
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
	v.joined, v.clock = snap.Agents, clockAt(snap.Now)
	for _, a := range snap.Agents {
		if len(a.WaitsFor) > 0 {
			v.graph.Waits[a.Name] = a.WaitsFor // with what is configured
		}
	}
	v.addUnnamed()
	return v, nil
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
func (v *view) agents() []AgentStatus {
	all := map[string]*AgentStatus{}
	for _, a := range v.joined {
		all[a.Name] = v.agent(&a)
	}
	for i, name := range v.gate.names() {
		for _, a := range v.snaps[i].Agents {
			s := all[a.Name]
			if s == nil {
				s = v.agent(&a)
				all[a.Name] = s
			}
			if s.Resource == "" || a.Used > s.Used {
				s.Resource, s.Allocated, s.Used = name, a.Allocated, a.Used
			}
		}
	}
	v.setStates(all)
	list := []AgentStatus{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[name])
	}
	return list
}

// agent is what one pool knows of an agent.
func (v *view) agent(a *store.Agent) *AgentStatus {
	user := a.User
	if !a.Leased { // one who only asks does not say
		user = v.gate.plan.agent(a.Name).user
	}
	return &AgentStatus{
		Name: a.Name, Class: v.gate.plan.className(a.Class), User: user, Machine: a.Machine, State: "active",
		LeaseStartedAt: v.clock.moment(a.Since), LeaseExpiresAt: v.clock.moment(a.Expires), PauseChain: []string{},
		WaitsFor: append([]string{}, v.graph.Waits[a.Name]...),
	}
}

func (v *view) setStates(all map[string]*AgentStatus) {
	waiting := map[string]bool{}
	for i := range v.snaps {
		for _, w := range v.snaps[i].Queue {
			waiting[w.Agent] = true
		}
	}
	var holds policy.Holds
	if !v.gate.plan.noCascade {
		holds = v.graph.Holds()
	}
	for name, s := range all {
		hold, held := holds.Of(name)
		_, limited := v.graph.Limited[name]
		switch {
		case limited:
			s.State = "limited"
		case held:
			s.State, s.PauseChain = "held", hold.Chain
		case waiting[name]:
			s.State = "waiting"
		}
	}
}

// PoolStatus is who has what of a resource's quota.
type PoolStatus struct {
	// TotalLimit is that of the first limit on requests that is not scoped; 0 if there is
	// none, or its size is not known.
	TotalLimit  int64                      `json:"totalLimit"`
	ResetAt     *time.Time                 `json:"resetAt"`
	Allocations map[string]AgentAllocation `json:"allocations"` // by agent
}

// AgentAllocation is what an agent has of a quota: its class's share, among the classes that
// are alive, divided by its living agents. What others leave it may use as well.
type AgentAllocation struct {
	Priority    int        `json:"priority"` // of its class; 0 is the highest
	Allocated   int64      `json:"allocated"`
	Used        int64      `json:"used"` // about
	LeaseExpiry *time.Time `json:"leaseExpiry"`
}

// Pool tells who has what of a resource's quota.
func (g *Gate) Pool(ctx context.Context, resource string) (PoolStatus, error) {
	s := PoolStatus{Allocations: map[string]AgentAllocation{}}
	r, err := g.resource(resource)
	if err != nil {
		return s, err
	}
	snap, err := r.pool.Snapshot(ctx)
	if err != nil {
		return s, r.storeError(err)
	}
	c := clockAt(snap.Now)
	if l := r.total(&snap); l != nil {
		s.TotalLimit, s.ResetAt = l.Size, c.moment(resetOf(l))
	}
	for _, a := range snap.Agents {
		s.Allocations[a.Name] = AgentAllocation{
			Priority: a.Class, Allocated: a.Allocated, Used: a.Used, LeaseExpiry: c.moment(a.Expires),
		}
	}
	return s, nil
}

// total returns the first limit on requests that is not scoped or, if none counts requests, the
// first that is not scoped at all. Places count as a quota only if there is no other.
func (r *resource) total(snap *store.Snapshot) (first *store.LimitState) {
	var places *store.LimitState
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Limit >= len(r.limits) {
			continue // another member's
		}
		switch def := &r.limits[l.Limit]; {
		case l.Scope != "" || def.Per != 0:
		case def.Kind == Concurrency:
			if places == nil {
				places = l
			}
		case def.Unit == Requests:
			return l
		case first == nil:
			first = l
		}
	}
	if first == nil {
		return places
	}
	return first
}
