package sluice

import (
	"context"

	"github.com/sluicehq/sluice/inspect"
)

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
