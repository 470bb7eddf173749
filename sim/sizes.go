package sim

import (
	"math"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// sizes says what calls turn out to cost. Only what faces the provider holds one: a
// strategy knows a call's usual size, and learns its real one from the answer.
// A call costs the same however often it is sent and whoever sends it.
type sizes struct {
	sc   *Scenario
	seed uint64
	// alter changes what was drawn; for tests.
	alter func(c *call, req *Request)
}

// of returns c as the provider will count it. It is called when c arrives there, and
// by those who are allowed to know the future: the oracles.
func (s *sizes) of(c *call) *Request {
	sigma := c.agent.Spread
	if c.record == nil && sigma == 0 && s.alter == nil {
		return c.asks
	}
	req := *c.asks
	if c.record != nil {
		req = c.record.Request
		req.Agent = c.agent.Name
		s.fit(&req)
	} else if sigma > 0 {
		const golden = 0x9e3779b97f4a7c15 // sets the streams of neighbours far apart
		r := stream(s.seed+golden*uint64(c.number), drawSizes)
		req.Input = spread(r, req.Input, sigma)
		req.Output = spread(r, req.Output, sigma)
		s.fit(&req)
	}
	if s.alter != nil {
		s.alter(c, &req)
	}
	return &req
}

// fit cuts off what a limit could never hold: such a call would be refused for ever.
func (s *sizes) fit(req *Request) {
	for i := range s.sc.Limits {
		l := &s.sc.Limits[i]
		switch l.Unit {
		case InputTokens:
			req.Input = min(req.Input, l.capacity())
		case Tokens:
			req.Input = min(req.Input, l.capacity())
			req.Output = min(req.Output, l.capacity()-req.Input)
		}
	}
}

// capacity is the most that one request can take.
func (l *Limit) capacity() int64 {
	if l.Kind == store.Bucket {
		return l.Burst
	}
	return l.Size
}

// spread draws around a mean of n.
func spread(r *rand.Rand, n int64, sigma float64) int64 {
	if n == 0 {
		return 0
	}
	return max(1, int64(float64(n)*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)))
}
