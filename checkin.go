package sluice

import (
	"context"
	"fmt"

	"github.com/sluicehq/sluice/inspect"
)

// CheckIn is [Gate.Heartbeat] for agents that want to know their situation. All agents that check in at about the same
// time share one recent view of the fleet, so thousands can. The view includes what the agent has just reported; but an agent that
// joins a large fleet, and does not wait for other agents, gets the allocation that its class has.
func (g inside) CheckIn(ctx context.Context, m JoinRequest) (inspect.CheckInResult, error) {
	l, err := g.newLease(m)
	if err != nil {
		return inspect.CheckInResult{}, err
	}
	l.stop() // no background heartbeats
	by, err := g.movedTo(ctx, l)
	if err != nil {
		return inspect.CheckInResult{}, err
	}
	if by != "" {
		return inspect.CheckInResult{
			NewWork: inspect.NewWork{Chain: []string{}, Reason: movedReason(by)}, Light: "green", Allocated: inspect.Unknown, TakenOverBy: by,
		}, nil
	}
	if err := l.beat(ctx); err != nil {
		return inspect.CheckInResult{}, err
	}
	v, err := g.recent(ctx)
	if err == nil && !v.knows(l, union(l.waitsFor, l.waits)) {
		v, err = g.fresh(ctx)
	}
	if err != nil {
		return inspect.CheckInResult{}, err
	}
	return v.checkInResult(l), nil
}

// movedReason says in words where the agent has moved.
func movedReason(machine string) string {
	return fmt.Sprintf("machine %q has taken the lease over", machine)
}

// checkInResult returns the result of an agent's heartbeat.
func (v *view) checkInResult(l *Lease) inspect.CheckInResult {
	s := inspect.CheckInResult{NewWork: v.newWork(l.agent), Light: "green", Allocated: inspect.Unknown}
	var most foremost
	for i, name := range v.names {
		if a := v.agentIn(i, l); a != nil && most.is(v, i, a.Used) {
			s.Resource, s.Allocated = name, allocated(v.totals[i], a)
			s.Light = v.snaps[i].Light.String()
		}
	}
	return s
}

// newWork reports whether an agent should start new work. It modifies nothing, because views are shared.
func (v *view) newWork(agent string) inspect.NewWork {
	w := inspect.NewWork{Start: true, Chain: []string{}}
	if v.gate.settings.noCascade {
		return w
	}
	if hold, held := v.holds().Of(agent); held {
		w.Start, w.Chain, w.Reason = false, hold.Chain, hold.Reason
	}
	return w
}
