package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Recorded is one call of a log: its agent, when it was wanted, what it used, and how long its response took.
type Recorded struct {
	Agent int           // index in the scenario's Fleet
	At    time.Duration // when it was wanted, since the start of the log
	// Follows is the index of an earlier call. This call comes the duration Think after the end of that one, whenever
	// it ends. Negative: this call comes at At.
	Follows int
	Think   time.Duration
	// Request is the real usage. Until the response ends, strategies only know the mean of its agent and model.
	Request Request
	// Service is the time from the arrival to the first byte of the response, Body from there to its end.
	Service, Body time.Duration
}

// recorded returns the agents and calls of a log. Calls that follow another one are not arrivals: they come when that
// one ends.
func recorded(sc *Scenario) ([]*agent, jobs) {
	agents := sc.agents()
	usual := usualSizes(sc)
	all := make([]*call, len(sc.Recorded))
	for i := range sc.Recorded {
		rec := &sc.Recorded[i]
		a := agents[rec.Agent]
		a.left++
		asks := usual[sizeOf{rec.Agent, rec.Request.Model}]
		asks.Agent = a.Name
		j := &job{deadline: Never, left: 1}
		all[i] = &call{agent: a, job: j, number: i, asks: asks, record: rec}
	}
	var coming jobs
	for i, c := range all {
		if from := c.record.Follows; from >= 0 {
			all[from].next = append(all[from].next, c)
			continue
		}
		coming.logged = append(coming.logged, c.arrives(Epoch.Add(sc.Recorded[i].At)))
	}
	slices.SortStableFunc(coming.logged, func(a, b arrival) int { return int(a.at - b.at) })
	return agents, coming
}

// arrives returns the job of a recorded call.
func (c *call) arrives(at store.Time) arrival {
	return arrival{at: at, agent: c.agent, job: c.job, n: 1, call: c}
}

type sizeOf struct {
	agent int
	model string
}

// usualSizes returns the mean request of each agent and model, which callers know.
func usualSizes(sc *Scenario) map[sizeOf]*Request {
	usual, n := map[sizeOf]*Request{}, map[sizeOf]int64{}
	for i := range sc.Recorded {
		rec := &sc.Recorded[i]
		key := sizeOf{rec.Agent, rec.Request.Model}
		sum := usual[key]
		if sum == nil {
			sum = &Request{}
			usual[key] = sum
		}
		sum.Model, sum.Write, sum.Create = rec.Request.Model, rec.Request.Write, rec.Request.Create
		sum.Input += rec.Request.Input
		sum.Output += rec.Request.Output
		n[key]++
	}
	for key, sum := range usual {
		sum.Input, sum.Output = (sum.Input+n[key]-1)/n[key], (sum.Output+n[key]-1)/n[key]
	}
	return usual
}

// follow schedules the calls that c's caller sends when c has ended.
func (c *call) follow(l *loop, arrive func(arrival)) {
	for _, next := range c.next {
		a := next.arrives(l.now + micros(next.record.Think))
		l.at(a.at, func() { arrive(a) })
	}
}

// takes returns the times of c's response: as recorded, or drawn at random.
func (c *call) takes(sc *Scenario, r *rand.Rand) (service, body store.Time) {
	if c.record != nil {
		return micros(c.record.Service), micros(c.record.Body)
	}
	service = sc.Service.draw(r)
	return service, sc.Body.draw(r)
}

// usually returns the times of c's response: as recorded, or the means.
func (c *call) usually(sc *Scenario) (service, body store.Time) {
	if c.record != nil {
		return micros(c.record.Service), micros(c.record.Body)
	}
	return sc.Service.Mean(), sc.Body.Mean()
}

// Ideal returns how long the work of sc takes if each call arrives at the very time at which the limits have room for
// it, without network delays.
func Ideal(sc *Scenario) time.Duration {
	return time.Duration(newIdeal(sc, Delay{}, 1, nil).span.seconds() * float64(time.Second))
}

// Replayed is the result of recorded calls behind the gate.
type Replayed struct {
	Figures
	Waits []ClassWaits
}

// ClassWaits are the waiting times of a class's calls in seconds, from when they were wanted until the provider
// accepted them.
type ClassWaits struct {
	Name               string
	Calls              int
	Mean, P95, Longest float64
}

// Replay runs the recorded calls of sc through the gate. net is the delay of messages. It calls progress, if not nil,
// from time to time with the fraction of calls that are over.
func Replay(sc *Scenario, net Delay, seed uint64, progress func(part float64)) (*Replayed, error) {
	f := &follower{ctx: context.Background()}
	if progress != nil {
		f.to = func(p Progress) { progress(p.Part) }
	}
	best := newIdeal(sc, net, seed, f.still)
	r := newRun(sc, newSluice, net, seed)
	f.follow(r)
	if err := r.finishAll(); err != nil {
		return nil, err
	}
	out := &Replayed{Figures: figures("sluice", r, best, seed, f.still)}
	for i, class := range sc.classes() {
		w := r.tally.classes[i].waits
		if len(w) == 0 {
			continue
		}
		one := ClassWaits{Name: class.Name, Calls: len(w)}
		one.Mean, one.P95 = waits(w)
		one.Longest = round(w[len(w)-1].Sub(0).Seconds()) // waits has sorted them
		out.Waits = append(out.Waits, one)
	}
	return out, nil
}

// Arrival is one send of a log, at the time it reached the provider.
type Arrival struct {
	At       time.Duration
	Request  Request
	Accepted bool
	// Service and Body are as in [Recorded], for an accepted send.
	Service, Body time.Duration
}

// Explained says how well limits explain a log.
type Explained struct {
	Sends   int
	Refused int // in the log
	Model   int // by the limits, after what the log accepted before
	// Differ counts the sends that only one of the two refuses.
	Differ int
}

// Explain checks every send of a log against these limits, in the order of time. The limits count what the log
// accepted, even if they would have refused it.
func Explain(limits []Limit, arrivals []Arrival) Explained {
	l, p := newLoop(), NewProvider(limits, Policy{})
	out := Explained{Sends: len(arrivals)}
	for i := range arrivals {
		a := &arrivals[i]
		l.run(Epoch.Add(a.At), maxSteps)
		l.now = max(l.now, Epoch.Add(a.At))
		_, limit := p.EarliestAccept(l.now, &a.Request)
		if limit >= 0 {
			out.Model++
		}
		if !a.Accepted {
			out.Refused++
		}
		if a.Accepted != (limit < 0) {
			out.Differ++
		}
		if a.Accepted {
			p.take(l.now, &a.Request, true)
			serve(l, p, &a.Request, micros(a.Service), micros(a.Body), nil, func() {})
		}
	}
	return out
}
