package sluice

import (
	"context"

	"github.com/sluicehq/sluice/inspect"
)

// maxHeld is how many agents Held lists.
const maxHeld = 1000

// Backpressure lists the agents that should start no new work because one that they wait for is limited, whether or not they have
// requests that wait. With a name it looks only at that agent, and at circles that it is in.
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
		if hold, held := holds.Of(name); held && len(hold.Chain) > 1 { // one that is limited itself waits for its own turn
			b.Held = append(b.Held, inspect.Held{Agent: name, Chain: hold.Chain, Reason: hold.Reason})
		}
	}
	return b, nil
}
