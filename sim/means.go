package sim

// means holds what the gate has learned of the usage of its callers, because the usage of a call is only known at its
// end. It is nil if no limit counts tokens.
type means map[who]*mean

type who struct{ agent, model string }

// mean is the mean usage of the calls of one agent to one model. It weights the last few dozen calls most.
type mean struct {
	input, output float64
	n             float64
}

// memory is the number of calls that a mean looks back.
const memory = 32

// of returns the mean for c. The first value is the usual size that its agent states.
func (m means) of(c *call) *mean {
	key := who{c.agent.Name, c.asks.Model}
	if m[key] == nil {
		m[key] = &mean{input: float64(c.asks.Input), output: float64(c.asks.Output), n: 1}
	}
	return m[key]
}

func (m means) learn(c *call, used usage) {
	if m == nil {
		return
	}
	usual := m.of(c)
	usual.n = min(usual.n+1, memory)
	usual.input += (float64(used.input) - usual.input) / usual.n
	usual.output += (float64(used.output) - usual.output) / usual.n
}

// cost returns what c is expected to take from l.
func (m means) cost(l *Limit, c *call) int64 {
	if !l.tokens() {
		return c.asks.cost(l)
	}
	if (usage{c.asks.Input, c.asks.Output}).of(l) == 0 {
		return 0
	}
	usual := m.of(c)
	return max(1, usage{int64(usual.input), int64(usual.output)}.of(l))
}

// of returns the part of u that l counts.
func (u usage) of(l *Limit) int64 {
	switch l.Unit {
	case InputTokens:
		return u.input
	case OutputTokens:
		return u.output
	}
	return u.input + u.output
}
