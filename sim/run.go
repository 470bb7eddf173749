package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// maxSteps bounds a run, so that no scenario can keep the simulator busy forever.
const maxSteps = 60_000_000

// strategy decides when a call is sent and what happens when it is refused. It
// must see to it that every call it was handed is sent or given up.
type strategy interface {
	// want hands over a call that is to be done.
	want(c *call)
	// answered tells that the first byte of an answer has reached the caller.
	answered(c *call, resp Response)
	// ended tells that an accepted call is over, and what it used.
	ended(c *call, used usage)
}

// leaver is a strategy that wants to know when an agent has nothing left to do.
type leaver interface{ left(a *agent) }

// usage is what an answer says its request has cost, in tokens.
type usage struct{ input, output int64 }

// desk is all that a strategy has to work with: time, chance, what is published of
// the provider, and its callers. The provider itself and what calls will turn
// out to cost are out of its sight.
type desk struct {
	*loop
	sc     *Scenario
	jitter *rand.Rand
	agents []*agent
	callers
}

// callers do what a strategy says.
type callers interface {
	// send puts c on the wire.
	send(c *call)
	// retry lets again happen after d, unless one of the scenario's walls is in the way.
	retry(c *call, d store.Time, again func())
	// giveUp ends a call that was not accepted.
	giveUp(c *call)
	// late reports whether c has run into its job's deadline.
	late(c *call) bool
}

// run is one fleet under one strategy on one network.
type run struct {
	*loop
	sc       *Scenario
	net      Delay
	provider *Provider
	sizes    sizes
	strategy strategy
	tally    *tally

	netRand, serviceRand *rand.Rand
}

// simulate carries out the scenario under the strategy that make returns.
func simulate(sc *Scenario, make func(*desk) strategy, net Delay, seed uint64) (*run, error) {
	r := newRun(sc, make, net, seed)
	return r, r.finishAll()
}

func newRun(sc *Scenario, make func(*desk) strategy, net Delay, seed uint64) *run {
	r := &run{
		loop:        newLoop(),
		sc:          sc,
		net:         net,
		provider:    NewProvider(sc.Limits, sc.Policy),
		sizes:       sizes{sc: sc, seed: seed},
		tally:       newTally(sc),
		netRand:     stream(seed, drawNetwork),
		serviceRand: stream(seed, drawService),
	}
	agents, arrivals := demand(sc)
	for _, a := range arrivals {
		r.at(a.at, func() { r.arrive(a) })
	}
	outside(r.loop, sc, r.provider, seed, false, func() bool { return r.tally.left > 0 })
	r.watch()
	r.strategy = make(&desk{loop: r.loop, sc: sc, jitter: stream(seed, drawJitter), agents: agents, callers: r})
	return r
}

// finishAll lets time pass until everything is done or the horizon has come.
func (r *run) finishAll() error {
	end := Epoch.Add(r.sc.Horizon)
	if !r.loop.run(end, maxSteps) {
		return fmt.Errorf("scenario %s: not over after %d events, %v into it", r.sc.Name, maxSteps, r.now.Sub(Epoch))
	}
	r.tally.close(end)
	return nil
}

func (r *run) arrive(a arrival) {
	for _, c := range a.calls {
		r.tally.demanded(r.now, c)
	}
	a.agent.pending = append(a.agent.pending, a.calls...)
	r.pump(a.agent)
}

// pump puts idle workers to work.
func (r *run) pump(a *agent) {
	for a.busy < a.Workers && len(a.pending) > 0 {
		c := a.pending[0]
		a.pending = a.pending[1:]
		a.busy++
		if r.late(c) {
			r.giveUp(c)
			continue
		}
		c.wanted, c.wantedAt = true, r.now
		r.strategy.want(c)
	}
}

func (r *run) late(c *call) bool { return r.now > c.job.deadline }

func (r *run) send(c *call) {
	c.sends++
	c.sentAt = r.now
	r.tally.sent(r.now, c)
	r.after(r.net.draw(r.netRand), func() { r.reach(c) })
}

// reach is c's arrival at the provider.
func (r *run) reach(c *call) {
	req := r.sizes.of(c)
	resp := r.provider.Arrive(r.now, &req)
	c.accepted = resp.Accepted
	r.tally.reached(r.now, c, resp)
	if !resp.Accepted {
		r.after(r.net.draw(r.netRand), func() { r.strategy.answered(c, resp) })
		return
	}
	begun := Never // when the caller has seen the first byte
	service, body := c.takes(r.sc, r.serviceRand)
	serve(r.loop, r.provider, &req, service, body,
		func() {
			if r.sc.Policy.Headers {
				resp.Headers = r.provider.headers(r.now, &req)
			}
			begun = r.now + r.net.draw(r.netRand)
			r.at(begun, func() { r.strategy.answered(c, resp) })
		},
		func() {
			over := begun // a short answer comes in one piece
			if body > 0 {
				over = max(begun, r.now+r.net.draw(r.netRand))
			}
			r.at(over, func() {
				r.strategy.ended(c, usage{req.Input, req.Output})
				r.finish(c)
			})
		})
}

func (r *run) retry(c *call, d store.Time, again func()) {
	if r.sc.Attempts > 0 && c.sends >= r.sc.Attempts || r.now+d > c.job.deadline {
		r.giveUp(c)
		return
	}
	r.after(d, again)
}

func (r *run) finish(c *call) {
	r.tally.finished(r.now, c)
	r.release(c)
}

func (r *run) giveUp(c *call) {
	r.tally.gaveUp(r.now, c)
	r.release(c)
}

// release frees a worker. Its next call begins in an event of its own: a strategy
// may be in the middle of a decision.
func (r *run) release(c *call) {
	a := c.agent
	a.left--
	r.after(0, func() {
		a.busy--
		r.pump(a)
		c.follow(r.loop, r.arrive)
		if l, ok := r.strategy.(leaver); ok && a.left == 0 && a.busy == 0 {
			l.left(a)
		}
	})
}
