package sim

import (
	"container/heap"

	"github.com/sluicehq/sluice/store"
)

// call is one unit of work. The strategy sends it as often as necessary. Strategies do not know the real cost of a
// call; see sizes.
type call struct {
	agent    *agent
	job      *job
	number   int      // unique in the scenario
	asks     *Request // what the caller knows of it, with the agent's usual token counts
	sends    int
	sentAt   store.Time
	wantedAt store.Time // when a worker took it; valid if wanted
	wanted   bool
	accepted bool
	ticket   store.ID  // used by the sluice strategy
	record   *Recorded // nil: its times and sizes are drawn at random
	next     []*call   // calls that its caller sends when this one ends
	wire     wire
}

// wire is the state of a call between caller and provider. Strategies must not read it.
type wire struct {
	req   *Request // as the provider counts it; nil: not arrived yet
	resp  Response
	body  store.Time // time from the first to the last byte of the response
	begun store.Time // when the first byte reaches the caller
}

type job struct {
	deadline store.Time // Never: none
	left     int        // calls neither done nor given up
	failed   bool
}

// agent is the state of a caller during a run.
type agent struct {
	*Agent
	index   int
	first   int     // number of its first call
	asks    Request // request of its calls
	pending []arrival
	busy    int
	left    int // calls neither done nor given up
	spare   *call
}

// take returns the next call that waits for a worker.
func (a *agent) take() *call {
	c := a.pending[0].take()
	if a.pending[0].n == 0 {
		a.pending = a.pending[1:]
	}
	return c
}

// recycle keeps a call that is over, to reuse it for the agent's next one.
func (a *agent) recycle(c *call) {
	if c.record == nil {
		a.spare = c
	}
}

// demand returns the agents and all their work. It depends only on the scenario, so all strategies and the oracle get
// the same work.
func demand(sc *Scenario) ([]*agent, jobs) {
	if len(sc.Recorded) > 0 {
		return recorded(sc)
	}
	agents := sc.agents()
	coming := jobs{sc: sc, fleet: make(comers, 0, len(agents))}
	number := 0
	for _, a := range agents {
		a.first, a.left = number, a.Jobs*a.Calls
		number += a.left
		if a.left > 0 {
			coming.fleet = append(coming.fleet, comer{at: Epoch.Add(a.Start), agent: a})
		}
	}
	heap.Init(&coming.fleet)
	return agents, coming
}

// agents returns the fleet before the run.
func (s *Scenario) agents() []*agent {
	all := make([]agent, len(s.Fleet))
	agents := make([]*agent, len(s.Fleet))
	for i := range all {
		a := &all[i]
		a.Agent, a.index = &s.Fleet[i], i
		a.asks = a.Request
		a.asks.Agent = a.Name
		agents[i] = a
	}
	return agents
}
