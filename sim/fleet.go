package sim

import (
	"github.com/sluicehq/sluice/store"
)

// call is one thing to be done, sent as often as its strategy sees fit. What it
// turns out to cost is not in it: see sizes.
type call struct {
	agent    *agent
	job      *job
	number   int     // among all calls of the scenario
	asks     Request // what its caller knows of it: token counts are the agent's usual ones
	sends    int
	sentAt   store.Time
	wantedAt store.Time // when a worker took it up, if wanted
	wanted   bool
	accepted bool
	ticket   store.ID  // of the sluice strategy
	record   *Recorded // nil: its times and its size are drawn
	next     []*call   // what its caller sends once it is over
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
	left    int // calls neither done nor given up
}

// arrival is a job and the moment it comes up.
type arrival struct {
	at    store.Time
	agent *agent
	calls []*call
}

// demand lays out everything there is to do. It depends on the scenario alone, so
// that all strategies and the oracle face the same work.
func demand(sc *Scenario) ([]*agent, []arrival) {
	var agents []*agent
	var arrivals []arrival
	if len(sc.Recorded) > 0 {
		return recorded(sc)
	}
	number := 0
	for i := range sc.Fleet {
		a := &agent{Agent: &sc.Fleet[i], index: i, left: sc.Fleet[i].Jobs * sc.Fleet[i].Calls}
		agents = append(agents, a)
		for n := range a.Jobs {
			at := Epoch.Add(a.Start) + store.Time(n)*store.Time(a.Every.Microseconds())
			j := &job{deadline: Never, left: a.Calls}
			if sc.Deadline > 0 {
				j.deadline = at.Add(sc.Deadline)
			}
			calls := make([]*call, a.Calls)
			for k := range calls {
				calls[k] = &call{agent: a, job: j, number: number, asks: a.Request}
				calls[k].asks.Agent = a.Name
				number++
			}
			arrivals = append(arrivals, arrival{at, a, calls})
		}
	}
	return agents, arrivals
}
