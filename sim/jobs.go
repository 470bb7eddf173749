package sim

import (
	"container/heap"

	"github.com/sluicehq/sluice/store"
)

// arrival is a job and the time at which it arrives. Its calls are only created when a worker takes them, so calls that
// wait for a worker need no memory.
type arrival struct {
	at    store.Time
	agent *agent
	job   *job
	first int   // number of its next call
	n     int   // calls left
	call  *call // the only call of a job from a log
}

// take returns the next call of the job.
func (a *arrival) take() *call {
	a.n--
	if a.call != nil {
		return a.call
	}
	a.first++
	c := a.agent.spare
	if c == nil {
		c = &call{}
	}
	a.agent.spare = nil
	*c = call{agent: a.agent, job: a.job, number: a.first - 1, asks: &a.agent.asks}
	return c
}

// model returns the model of its calls.
func (a *arrival) model() string {
	if a.call != nil {
		return a.call.asks.Model
	}
	return a.agent.asks.Model
}

// jobs holds the arrivals to come, ordered by time, and at the same time by the order of the fleet. Jobs of a fleet are
// computed when they arrive.
type jobs struct {
	logged []arrival // from a log
	fleet  comers
	sc     *Scenario
}

// next returns when the next job arrives, or Never if there is none.
func (j *jobs) next() store.Time {
	switch {
	case len(j.logged) > 0:
		return j.logged[0].at
	case len(j.fleet) > 0:
		return j.fleet[0].at
	}
	return Never
}

func (j *jobs) pop() arrival {
	if len(j.logged) > 0 {
		a := j.logged[0]
		j.logged = j.logged[1:]
		return a
	}
	next := &j.fleet[0]
	at, a := next.at, next.agent
	came := arrival{at: at, agent: a, job: j.sc.job(at, a), first: a.first + next.n*a.Calls, n: a.Calls}
	if next.n++; next.n < a.Jobs {
		next.at += micros(a.Every)
		heap.Fix(&j.fleet, 0)
	} else {
		heap.Pop(&j.fleet)
	}
	return came
}

// job returns a new job of a that arrives at the given time.
func (s *Scenario) job(at store.Time, a *agent) *job {
	j := &job{deadline: Never, left: a.Calls}
	if s.Deadline > 0 {
		j.deadline = at.Add(s.Deadline)
	}
	return j
}

// comer is an agent and the time of its next job.
type comer struct {
	at    store.Time
	agent *agent
	n     int // jobs that have arrived
}

type comers []comer

func (q comers) Len() int { return len(q) }
func (q comers) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].agent.index < q[j].agent.index
}
func (q comers) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *comers) Push(x any)   { *q = append(*q, x.(comer)) }
func (q *comers) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
