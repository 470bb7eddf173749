package inspect

// CheckInResult is the result of an agent's heartbeat.
type CheckInResult struct {
	NewWork
	// Resource is the resource that the agent uses most. Light is its light, and Allocated the agent's part of it, or
	// [Unknown].
	Resource  string
	Light     string
	Allocated int64
	// TakenOverBy is the machine that now holds the agent's lease; empty if it is the one that asks. An agent that has
	// moved does not get its lease back on the old machine, and should start no new work there.
	TakenOverBy string
}

// NewWork says whether an agent should start new work. Work that it has begun continues either way.
type NewWork struct {
	Start bool `json:"start_new_work"`
	// Chain leads from the agent to the limited agent: each waits for the next.
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"` // why the last agent of the chain is limited
	// Cycle is the shortest cycle of waiting agents that includes this one. It is empty if there is none.
	Cycle []string `json:"cycle,omitempty"`
}

// Held is an agent that should start no new work because an agent it waits for is limited.
type Held struct {
	Agent string `json:"agent"`
	// Chain leads from the agent to the limited agent: each waits for the next.
	Chain  []string `json:"chain"`
	Reason string   `json:"reason"` // why the last agent of the chain is limited
}

// Backpressure lists the agents that are held and the agents that wait for each other.
type Backpressure struct {
	Held   []Held     `json:"held"`   // by name, the first 1000
	Cycles [][]string `json:"cycles"` // agents that wait for each other in a circle
}
