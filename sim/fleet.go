package sim

import (
	"math"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// call is one thing to be done, sent as often as its strategy sees fit.
type call struct {
	agent    *agent
	job      *job
	req      Request
	sends    int
	sentAt   store.Time
	accepted bool
	ticket   store.ID // of the sluice strategy
}

type job struct {
	deadline store.Time // Never: none
	left     int        // calls neither done nor given up
	failed   bool
}

// agent is a caller at work.
type agent struct {
	*Agent
	index   int
	pending []*call
	busy    int
}

// arrival is a job and the moment it comes up.
type arrival struct {
	at    store.Time
	agent *agent
	calls []*call
}

// demand lays out everything there is to do. It depends on the scenario and the
// seed alone, so that all strategies and the oracle face the same work.
func demand(sc *Scenario, seed uint64) ([]*agent, []arrival) {
	sizes := stream(seed, drawDemand)
	var agents []*agent
	var arrivals []arrival
	for i := range sc.Fleet {
		a := &agent{Agent: &sc.Fleet[i], index: i}
		agents = append(agents, a)
		for n := range a.Jobs {
			at := Epoch.Add(a.Start) + store.Time(n)*store.Time(a.Every.Microseconds())
			j := &job{deadline: Never, left: a.Calls}
			if sc.Deadline > 0 {
				j.deadline = at.Add(sc.Deadline)
			}
			calls := make([]*call, a.Calls)
			for k := range calls {
				calls[k] = &call{agent: a, job: j, req: a.draw(sizes)}
			}
			arrivals = append(arrivals, arrival{at, a, calls})
		}
	}
	return agents, arrivals
}

// draw returns a request of the agent. What the provider takes its input to be
// is the agent's usual size, which the request itself spreads around.
func (a *agent) draw(r *rand.Rand) Request {
	req := a.Request
	req.Agent = a.Name
	if a.Spread > 0 {
		req.Estimate = req.Input
		req.Input = spread(r, req.Input, a.Spread)
		req.Output = spread(r, req.Output, a.Spread)
	}
	return req
}

func spread(r *rand.Rand, n int64, sigma float64) int64 {
	if n == 0 {
		return 0
	}
	return max(1, int64(float64(n)*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)))
}
