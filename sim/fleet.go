package sim

import (
	"container/heap"

	"github.com/sluicehq/sluice/store"
)

// call is one thing to be done, sent as often as its strategy sees fit. What it
// turns out to cost is not for strategies to know: see sizes.
type call struct {
	agent    *agent
	job      *job
	number   int      // among all calls of the scenario
	asks     *Request // what its caller knows of it: token counts are the agent's usual ones
	sends    int
	sentAt   store.Time
	wantedAt store.Time // when a worker took it up, if wanted
	wanted   bool
	accepted bool
	ticket   store.ID  // of the sluice strategy
	record   *Recorded // nil: its times and its size are drawn
	next     []*call   // what its caller sends once it is over
	wire     wire
}

// wire is a call on its way to the provider and back. Only what faces the provider looks at it.
type wire struct {
	req   *Request // as the provider counts it; nil: it has not arrived
	resp  Response
	body  store.Time // how long the answer takes from its first byte on
	begun store.Time // when the caller has seen that
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
	first   int     // number of its first call
	asks    Request // what its calls ask for
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

// recycle takes back a call that is over, for the agent's next one.
func (a *agent) recycle(c *call) {
	if c.record == nil {
		a.spare = c
	}
}

// demand lays out everything there is to do. It depends on the scenario alone, so
// that all strategies and the oracle face the same work.
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

// agents are the fleet before it has begun.
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
