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
	// ended tells that an accepted call is over.
	ended(c *call)
}

// run is one fleet under one strategy on one network.
type run struct {
	*loop
	sc       *Scenario
	net      Delay
	provider *Provider
	strategy strategy
	tally    *tally

	netRand, serviceRand, jitter *rand.Rand
}

// simulate carries out the scenario under the strategy that make returns.
func simulate(sc *Scenario, make func(*run) strategy, net Delay, seed uint64) (*run, error) {
	r := &run{
		loop:        newLoop(),
		sc:          sc,
		net:         net,
		provider:    NewProvider(sc.Limits, sc.Policy),
		tally:       newTally(sc),
		netRand:     stream(seed, drawNetwork),
		serviceRand: stream(seed, drawService),
		jitter:      stream(seed, drawJitter),
	}
	_, arrivals := demand(sc, seed)
	for _, a := range arrivals {
		r.at(a.at, func() { r.arrive(a) })
	}
	outside(r.loop, sc, r.provider, seed, false, func() bool { return r.tally.left > 0 })
	r.strategy = make(r)
	end := Epoch.Add(sc.Horizon)
	if !r.loop.run(end, maxSteps) {
		return nil, fmt.Errorf("scenario %s: not over after %d events, %v into it", sc.Name, maxSteps, r.now.Sub(Epoch))
	}
	r.tally.close(end)
	return r, nil
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
		r.strategy.want(c)
	}
}

// late reports whether c has run into its job's deadline.
func (r *run) late(c *call) bool { return r.now > c.job.deadline }

// send puts c on the wire.
func (r *run) send(c *call) {
	c.sends++
	c.sentAt = r.now
	r.tally.sent(r.now, c)
	r.after(r.net.draw(r.netRand), func() { r.reach(c) })
}

// reach is c's arrival at the provider.
func (r *run) reach(c *call) {
	resp := r.provider.Arrive(r.now, &c.req)
	r.tally.reached(r.now, c, resp)
	if !resp.Accepted {
		r.after(r.net.draw(r.netRand), func() { r.strategy.answered(c, resp) })
		return
	}
	c.accepted = true
	begun := Never // when the caller has seen the first byte
	serve(r.loop, r.provider, &c.req, r.sc.Service.draw(r.serviceRand), r.sc.Body.draw(r.serviceRand),
		func() {
			if r.sc.Policy.Headers {
				resp.Headers = r.provider.headers(r.now, &c.req)
			}
			begun = r.now + r.net.draw(r.netRand)
			r.at(begun, func() { r.strategy.answered(c, resp) })
		},
		func() {
			over := begun // a short answer comes in one piece
			if r.sc.Body.Median > 0 {
				over = max(begun, r.now+r.net.draw(r.netRand))
			}
			r.at(over, func() {
				r.strategy.ended(c)
				r.finish(c)
			})
		})
}

// retry lets again happen after d, unless one of the scenario's walls is in the way.
func (r *run) retry(c *call, d store.Time, again func()) {
	if r.sc.Attempts > 0 && c.sends >= r.sc.Attempts || r.now+d > c.job.deadline {
		r.giveUp(c)
		return
	}
	r.after(d, again)
}

func (r *run) finish(c *call) {
	r.tally.finished(r.now, c)
	r.release(c.agent)
}

// giveUp ends a call that was not accepted.
func (r *run) giveUp(c *call) {
	r.tally.gaveUp(r.now, c)
	r.release(c.agent)
}

// release frees a worker. Its next call begins in an event of its own: a strategy
// may be in the middle of a decision.
func (r *run) release(a *agent) {
	r.after(0, func() {
		a.busy--
		r.pump(a)
	})
}
