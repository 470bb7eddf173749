package sluice

import (
	"context"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// PoolStatus is who has what of a resource's quota.
type PoolStatus struct {
	// TotalLimit is that of the first limit on requests that is not scoped. If there is none, it is the sum over the models of the first
	// limit that each of them has. It is 0 if no size is known.
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
	LeaseStart  *time.Time `json:"leaseStart"`
	// Leased tells that the agent holds a lease; else it has only asked, and counts as alive for the length of one.
	Leased  bool   `json:"leased"`
	Class   string `json:"class"`
	User    string `json:"user"`
	Machine string `json:"machine"`
	State   string `json:"state"` // as in [AgentStatus]
}

// Pool tells who has what of a resource's quota.
func (g *Gate) Pool(ctx context.Context, resource string) (PoolStatus, error) {
	s := PoolStatus{Allocations: map[string]AgentAllocation{}}
	r, err := g.resource(resource)
	if err != nil {
		return s, err
	}
	v, err := g.look(ctx, false) // of all: what holds an agent may be elsewhere
	if err != nil {
		return s, err
	}
	at := slices.Index(v.names, resource)
	snap, c := &v.snaps[at], v.clock
	if l := r.total(snap); l != nil {
		s.TotalLimit, s.ResetAt = l.Size, c.moment(resetOf(l))
	} else {
		s.TotalLimit = r.modelTotal(snap)
	}
	state := v.states()
	for i := range snap.Agents {
		a := v.agent(&snap.Agents[i])
		a.State, _ = state(a.Name)
		a.Class = r.plan.className(snap.Agents[i].Class)
		s.Allocations[a.Name] = AgentAllocation{
			Priority: snap.Agents[i].Class, Allocated: snap.Agents[i].Allocated, Used: snap.Agents[i].Used, LeaseExpiry: a.LeaseExpiresAt,
			LeaseStart: a.LeaseStartedAt, Leased: a.Leased, Class: a.Class, User: a.User, Machine: a.Machine, State: a.State,
		}
	}
	return s, nil
}

// modelTotal returns the sum of the known sizes of the first limit on requests that each model or key has.
func (r *resource) modelTotal(snap *store.Snapshot) (sum int64) {
	first := -1
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Limit >= len(r.limits) {
			continue
		}
		if def := &r.limits[l.Limit]; def.Per != 0 && def.Per&^store.Shared == 0 && def.Unit == Requests && def.Kind != Concurrency && (first < 0 || first == l.Limit) {
			first = l.Limit
			sum += l.Size
		}
	}
	return sum
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
