package sluice

import (
	"context"
)

// maxHeld is how many agents Held lists.
const maxHeld = 1000

// Held is an agent that should start no new work, because of others.
type Held struct {
	Agent string `json:"agent"`
	// Chain leads from the agent to the one that is limited: each waits for the next.
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"` // why the last of the chain is limited
}

// Backpressure is who is held, and who waits for each other.
type Backpressure struct {
	Held   []Held     `json:"held"`   // by name, the first thousand
	Cycles [][]string `json:"cycles"` // circles of agents that wait for each other
}

// Backpressure lists the agents that should start no new work because one that they wait for is limited, whether or not they have
// requests that wait. With a name it looks only at that agent, and at circles that it is in.
func (g *Gate) Backpressure(ctx context.Context, agent string) (Backpressure, error) {
	b := Backpressure{Held: []Held{}, Cycles: [][]string{}}
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
			b.Held = append(b.Held, Held{name, hold.Chain, hold.Reason})
		}
	}
	return b, nil
}
