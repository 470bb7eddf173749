package inspect

// CheckInResult is what an agent is told that has sent a heartbeat.
type CheckInResult struct {
	NewWork
	// Light is that of the resource that the agent uses most, Allocated its part of it.
	Resource  string
	Light     string
	Allocated int64
	// TakenOverBy is the machine that has the agent's lease now; empty: the one that asks. An agent that has moved is told so where
	// it was: its lease is not taken back, and it should start no new work there.
	TakenOverBy string
}

// NewWork is whether an agent should start new work. What it has begun goes on either way.
type NewWork struct {
	Start bool `json:"start_new_work"`
	// Chain leads from the agent to the one that is limited: each waits for the next.
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"` // why the last of the chain is limited
	// Cycle is the shortest circle of agents that wait for each other which this one is in, if
	// it is in any.
	Cycle []string `json:"cycle,omitempty"`
}

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
