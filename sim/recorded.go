package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Recorded is one call of a log: who wanted it and when, what it used and how long its answer took.
type Recorded struct {
	Agent int           // index in the scenario's Fleet
	At    time.Duration // when it was wanted, from the start of the log
	// Follows is the index of the call whose end it came Think after: it comes when that call is over, however long
	// that takes. Negative: it comes at At.
	Follows int
	Think   time.Duration
	// Request is what it used. A strategy knows the mean of its agent and model until the answer is over.
	Request Request
	// Service is the time from its arrival to the first byte of the answer, Body from there to its end.
	Service, Body time.Duration
}

// recorded lays out the calls of a log. Those that follow another one are no arrivals: they come with its end.
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

// arrives is a recorded call as the job it is.
func (c *call) arrives(at store.Time) arrival {
	return arrival{at: at, agent: c.agent, job: c.job, n: 1, call: c}
}

type sizeOf struct {
	agent int
	model string
}

// usualSizes are the means that callers know.
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

// follow lets the calls come that c's caller sends once c is over.
func (c *call) follow(l *loop, arrive func(arrival)) {
	for _, next := range c.next {
		a := next.arrives(l.now + micros(next.record.Think))
		l.at(a.at, func() { arrive(a) })
	}
}

// takes are the times of c's answer: as they were, or drawn.
func (c *call) takes(sc *Scenario, r *rand.Rand) (service, body store.Time) {
	if c.record != nil {
		return micros(c.record.Service), micros(c.record.Body)
	}
	service = sc.Service.draw(r)
	return service, sc.Body.draw(r)
}

// usually are the times of c's answer as they were, or in the mean.
func (c *call) usually(sc *Scenario) (service, body store.Time) {
	if c.record != nil {
		return micros(c.record.Service), micros(c.record.Body)
	}
	return sc.Service.Mean(), sc.Body.Mean()
}

// Ideal is how long the work of sc takes if each call arrives at the very moment the limits have room for it, without a
// network.
func Ideal(sc *Scenario) time.Duration {
	return time.Duration(newIdeal(sc, Delay{}, 1, nil).span.seconds() * float64(time.Second))
}

// Replayed is what became of recorded calls behind the gate.
type Replayed struct {
	Figures
	Waits []ClassWaits
}

// ClassWaits are how long calls of a class took from the moment they were wanted until the provider accepted them, in
// seconds.
type ClassWaits struct {
	Name               string
	Calls              int
	Mean, P95, Longest float64
}

// Replay runs the recorded calls of sc through the gate. Messages take net. It calls progress, if there is one, now and
// then with the part of the calls that is over.
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

// Arrival is one send of a log, as it came to the provider.
type Arrival struct {
	At       time.Duration
	Request  Request
	Accepted bool
	// Service and Body are as of [Recorded], of a send that was accepted.
	Service, Body time.Duration
}

// Explained says how well limits explain a log.
type Explained struct {
	Sends   int
	Refused int // by the log
	Model   int // by the limits, each with what the log had accepted before
	// Differ counts the sends that only one of the two refuses.
	Differ int
}

// Explain asks a provider with these limits about every send of a log, in the order of time. The limits count what the log
// accepted, whatever they would have said.
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
