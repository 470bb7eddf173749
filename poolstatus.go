package sluice

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// Pool returns how a resource's quota is divided among its agents.
func (g *Gate) Pool(ctx context.Context, resource string) (inspect.PoolStatus, error) {
	s := inspect.PoolStatus{Allocations: map[string]inspect.AgentAllocation{}}
	r, err := g.resource(resource)
	if err != nil {
		return s, err
	}
	v, err := g.look(ctx, false) // of all resources: what holds an agent may be elsewhere
	if err != nil {
		return s, err
	}
	at := slices.Index(v.names, resource)
	snap, c := &v.snaps[at], v.clock
	s.TotalLimit = r.totalLimit(snap)
	if l := r.total(snap); l != nil {
		s.ResetAt = c.moment(resetOf(l))
	}
	state := v.states()
	for i := range snap.Agents {
		a := v.agent(&snap.Agents[i])
		a.State, _ = state(a.Name)
		a.Class = r.settings.className(snap.Agents[i].Class)
		s.Allocations[a.Name] = inspect.AgentAllocation{
			Priority: snap.Agents[i].Class, Allocated: allocated(s.TotalLimit, &snap.Agents[i]), Used: snap.Agents[i].Used, LeaseExpiry: a.LeaseExpiresAt,
			LeaseStart: a.LeaseStartedAt, Leased: a.Leased, Class: a.Class, User: a.User, Machine: a.Machine, State: a.State,
		}
	}
	return s, nil
}

// totalLimit returns the amount that is divided among agents; 0: not known.
func (r *resource) totalLimit(snap *store.Snapshot) int64 {
	if l := r.total(snap); l != nil {
		return l.Size
	}
	return r.modelTotal(snap)
}

// allocated returns an agent's part of the total, which may be less than 1, or [inspect.Unknown].
func allocated(total int64, a *store.Agent) int64 {
	if a.Allocated == 0 && total == 0 {
		return inspect.Unknown
	}
	return a.Allocated
}

// modelTotal returns the sum of the known sizes of the first limit on requests of each model or key.
func (r *resource) modelTotal(snap *store.Snapshot) (sum int64) {
	first := ""
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if def := r.limit(l.Limit); def != nil && def.Per != 0 && def.Per&^store.Shared == 0 && def.Unit == Requests && def.Kind != Concurrency && (first == "" || first == l.Limit) {
			first = l.Limit
			sum += l.Size
		}
	}
	return sum
}

// total returns the first unscoped limit on requests or, if none counts requests, the first unscoped limit. Concurrency
// counts as a quota only if there is no other.
func (r *resource) total(snap *store.Snapshot) (first *store.LimitState) {
	var places *store.LimitState
	for i := range snap.Limits {
		l := &snap.Limits[i]
		switch def := r.limit(l.Limit); {
		case def == nil: // from another member
		case l.Scope != "" || def.Per != 0 || def.Plan:
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
