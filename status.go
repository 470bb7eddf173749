package sluice

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Status is the state of a gate at one moment.
type Status struct {
	Store     string           `json:"store"`
	Resources []ResourceStatus `json:"resources"`
}

// ResourceStatus is the state of one resource.
type ResourceStatus struct {
	Name           string         `json:"name"`
	PausedUntil    *time.Time     `json:"paused_until"`
	PauseReason    string         `json:"pause_reason"`
	Consecutive429 int            `json:"consecutive_429"`
	Last429        *time.Time     `json:"last_429"`
	Waiting        map[string]int `json:"waiting"` // by class
	InFlight       int            `json:"in_flight"`
	Limits         []LimitStatus  `json:"limits"`
	Gates          []GateStatus   `json:"gates"`
	CallerStatus
	Callers []CallerStatus `json:"callers"`
}

// LimitStatus is the state of one limit, for one scope.
type LimitStatus struct {
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Unit      string     `json:"unit"`
	Scope     string     `json:"scope"`
	Limit     int64      `json:"limit"`
	Used      int64      `json:"used"`
	Remaining int64      `json:"remaining"`
	Outside   int64      `json:"outside"`
	ResetAt   *time.Time `json:"reset_at"`
}

// GateStatus is a pause, probe or ramp in force.
type GateStatus struct {
	Scope string     `json:"scope"`
	Phase string     `json:"phase"`
	Until *time.Time `json:"until"`
	Cause string     `json:"cause"`
}

// CallerStatus is what was sent, by one agent or by all.
type CallerStatus struct {
	Agent     string  `json:"agent,omitempty"`
	Sent      int64   `json:"sent"`
	Throttled int64   `json:"throttled"`
	Retried   int64   `json:"retried"`
	WaitedMS  int64   `json:"waited_ms"`
	PeakPerS  int64   `json:"peak_per_s"`
	MeanPerS  float64 `json:"mean_per_s"`
}

// Waiting is a request in the queue and why it is there.
type Waiting struct {
	Ticket     string     `json:"ticket"`
	Agent      string     `json:"agent"`
	Class      string     `json:"class"`
	Limit      string     `json:"limit"`
	HeldBy     []string   `json:"held_by"`
	Position   int        `json:"position"`
	ExpectedAt *time.Time `json:"expected_at"`
	Reason     string     `json:"reason"`
}

// Status reads the state of all resources.
func (g *Gate) Status(ctx context.Context) (Status, error) {
	s := Status{Store: g.url, Resources: []ResourceStatus{}}
	for _, name := range slices.Sorted(maps.Keys(g.resources)) {
		r := g.resources[name]
		snap, err := r.pool.Snapshot(ctx)
		if err != nil {
			return s, r.storeError(err)
		}
		s.Resources = append(s.Resources, r.status(&snap))
	}
	return s, nil
}

// Why lists who waits for a resource, in order, each with the limit in the way, who holds
// it, and when it is expected to go.
func (g *Gate) Why(ctx context.Context, resource string) ([]Waiting, error) {
	r, err := g.resource(resource)
	if err != nil {
		return nil, err
	}
	snap, err := r.pool.Snapshot(ctx)
	if err != nil {
		return nil, r.storeError(err)
	}
	list := []Waiting{}
	for _, w := range snap.Queue {
		list = append(list, Waiting{
			Ticket: Ticket{id: w.ID}.ID(), Agent: w.Agent, Class: r.className(w.Class), Limit: r.limitName(w.Reason.Limit),
			HeldBy: append([]string{}, w.HeldBy...), Position: w.Position, ExpectedAt: moment(w.Expected), Reason: w.Reason.Code.String(),
		})
	}
	return list, nil
}

func (r *resource) status(snap *store.Snapshot) ResourceStatus {
	s := ResourceStatus{
		Name: r.name, Waiting: map[string]int{}, InFlight: snap.InFlight, Last429: moment(snap.Counters.Last429),
		Limits: []LimitStatus{}, Gates: []GateStatus{}, Callers: []CallerStatus{}, CallerStatus: callerStatus("", snap.Counters),
	}
	for i, n := range snap.Waiting {
		s.Waiting[r.className(i)] = n
	}
	for _, l := range snap.Limits {
		if l.Limit >= len(r.limits) {
			continue // another member added it: its name is not known here
		}
		def := r.limits[l.Limit]
		s.Limits = append(s.Limits, LimitStatus{
			Name: def.Name, Kind: def.Kind.String(), Unit: def.Unit, Scope: l.Scope, Limit: l.Size, Used: l.Used,
			Remaining: l.Remaining, Outside: l.Outside, ResetAt: moment(l.Reset),
		})
	}
	for _, g := range snap.Gates {
		s.Gates = append(s.Gates, GateStatus{Scope: g.Scope, Phase: g.Phase, Until: moment(g.Until), Cause: g.Cause})
		if g.Scope == "" {
			s.PausedUntil, s.PauseReason, s.Consecutive429 = moment(g.Until), g.Cause, g.Consecutive
		}
	}
	for _, c := range snap.Callers {
		s.Callers = append(s.Callers, callerStatus(c.Agent, c.Counters))
	}
	return s
}

func callerStatus(agent string, c store.Counters) CallerStatus {
	return CallerStatus{
		Agent: agent, Sent: c.Sent, Throttled: c.Throttled, Retried: c.Retried, WaitedMS: c.Waited.Milliseconds(),
		PeakPerS: c.Peak, MeanPerS: c.Mean(),
	}
}

// className names a class of the pool, which may have got more from another member.
func (r *resource) className(i int) string {
	if i >= len(r.plan.classes) {
		return fmt.Sprintf("class %d", i)
	}
	return r.plan.classes[i].Name
}

func (r *resource) limitName(i int8) string {
	if i < 0 || int(i) >= len(r.limits) {
		return ""
	}
	return r.limits[i].Name
}

// moment is a store time as people and JSON want it; nil for none.
func moment(t store.Time) *time.Time {
	if t == 0 {
		return nil
	}
	std := t.Std()
	return &std
}
