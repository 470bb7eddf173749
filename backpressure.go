package sluice

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// StartNewWork reports whether to start new work. The answer is no while the agent, or an agent that it waits for,
// directly or not, is limited: new work would only pile up.
func (l *Lease) StartNewWork(ctx context.Context) (inspect.NewWork, error) {
	return l.gate.StartNewWork(ctx, l.agent)
}

// StartNewWork is [Lease.StartNewWork] for any agent.
func (g *Gate) StartNewWork(ctx context.Context, agent string) (inspect.NewWork, error) {
	w := inspect.NewWork{Start: true, Chain: []string{}}
	if g.settings.noCascade {
		return w, nil
	}
	v, err := g.look(ctx, false)
	if err != nil {
		return w, err
	}
	v.addConfigured(agent)
	if hold, held := v.graph.HoldOf(agent); held {
		w.Start, w.Chain, w.Reason = false, hold.Chain, hold.Reason
	}
	w.Cycle = v.graph.CycleOf(agent)
	return w, nil
}

// limitedAfter is how long an agent's request must have waited for the agent to count as limited. A short wait for its
// turn is no reason to stop others.
const limitedAfter = time.Second

// findLimited adds the agents that a resource holds up.
func (r *resource) findLimited(snap *store.Snapshot, limited map[string]string) {
	if why := r.windowWords(snap); why != "" {
		for i := range snap.Agents {
			if a := &snap.Agents[i]; a.Class > 0 { // new work would only wait for the reset
				limited[a.Name] = why
			}
		}
	}
	for _, w := range snap.Queue {
		if _, known := limited[w.Agent]; known {
			continue
		}
		waited := snap.Now.Sub(w.Since)
		switch w.Reason.Code {
		case store.CodePaused, store.CodeProbe, store.CodeLight, store.CodeReserve, store.CodeBreaker:
		default:
			if waited < limitedAfter {
				continue
			}
		}
		why := fmt.Sprintf("%s: %s", r.name, w.Reason.Code)
		if name := w.Reason.Limit; name != "" {
			why += fmt.Sprintf(" (limit %q)", name)
		}
		limited[w.Agent] = fmt.Sprintf("%s, waiting for %v", why, waited.Round(time.Second))
		if left := w.Reason.At.Sub(snap.Now); w.Reason.Code == store.CodePaused && left > 0 {
			limited[w.Agent] = fmt.Sprintf("%s for another %v", why, (left + time.Second - 1).Truncate(time.Second))
		}
	}
}

// maxHeld bounds the agents that Backpressure lists.
const maxHeld = 1000

// Backpressure lists the agents that should start no new work because an agent they wait for is limited, whether or not
// they have waiting requests. If agent is not empty, it covers only that agent and its cycles.
func (g *Gate) Backpressure(ctx context.Context, agent string) (inspect.Backpressure, error) {
	b := inspect.Backpressure{Held: []inspect.Held{}, Cycles: [][]string{}}
	v, err := g.look(ctx, false)
	if err != nil {
		return b, err
	}
	names := []string{agent}
	if agent != "" {
		v.addConfigured(agent)
		if cycle := v.graph.CycleOf(agent); cycle != nil {
			b.Cycles = append(b.Cycles, cycle)
		}
	} else {
		names = v.holds().Agents()
		b.Cycles = append(b.Cycles, v.graph.Cycles()...)
	}
	holds := v.holds()
	for _, name := range names {
		if len(b.Held) == maxHeld {
			break
		}
		if hold, held := holds.Of(name); held && len(hold.Chain) > 1 { // an agent that is itself limited waits for its own turn
			b.Held = append(b.Held, inspect.Held{Agent: name, Chain: hold.Chain, Reason: hold.Reason})
		}
	}
	return b, nil
}
