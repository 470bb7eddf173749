package sim

import (
	"math"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// sizes determines the real cost of calls. Only the provider's side uses it: a strategy knows the usual size of a call,
// and learns the real one from the response. A call always has the same cost, however often and by whichever strategy
// it is sent.
type sizes struct {
	sc   *Scenario
	seed uint64
	// alter changes the drawn request; for tests.
	alter func(c *call, req *Request)
}

// of returns c as the provider counts it. The provider's side calls it when c arrives. Only the oracles may call it
// earlier, because they know the future.
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
		const golden = 0x9e3779b97f4a7c15 // keeps the random streams of consecutive calls apart
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

// fit reduces a request to what the limits can hold, because a larger one would be refused forever.
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

// capacity returns the most that one request can take.
func (l *Limit) capacity() int64 {
	if l.Kind == store.Bucket {
		return l.Burst
	}
	return l.Size
}

// spread draws a lognormal value with mean n.
func spread(r *rand.Rand, n int64, sigma float64) int64 {
	if n == 0 {
		return 0
	}
	return max(1, int64(float64(n)*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)))
}
