package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// maxSteps bounds a run, so that no scenario can keep the simulator busy forever.
const maxSteps = 400_000_000

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

// blind is a strategy that may not read what answers state of limits.
type blind interface{ blind() bool }

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
	// retry lets again happen to c after d, unless one of the scenario's walls is in the way.
	retry(c *call, d store.Time, again func(*call))
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
	headers              bool // the strategy reads what answers state of limits

	// Its methods, bound once: binding one costs memory.
	onReach, onBegin, onAnswer, onDone, onOver, onFree func(*call)
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
	r.onReach, r.onBegin, r.onAnswer, r.onDone, r.onOver, r.onFree = r.reach, r.begin, r.answer, r.done, r.over, r.free
	var agents []*agent
	agents, r.jobs = demand(sc)
	r.come = r.arrive
	outside(r.loop, sc, r.provider, seed, false, func() bool { return r.tally.left > 0 })
	r.watch()
	r.strategy = make(&desk{loop: r.loop, sc: sc, jitter: stream(seed, drawJitter), agents: agents, callers: r})
	b, ok := r.strategy.(blind)
	r.headers = sc.Policy.Headers && !(ok && b.blind())
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
	r.tally.demanded(r.now, &a)
	a.agent.pending = append(a.agent.pending, a)
	r.pump(a.agent)
}

// pump puts idle workers to work.
func (r *run) pump(a *agent) {
	for a.busy < a.Workers && len(a.pending) > 0 {
		c := a.take()
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
	r.with(c, r.now+r.net.draw(r.netRand), r.onReach)
}

// reach is c's arrival at the provider.
func (r *run) reach(c *call) {
	w := &c.wire
	if w.req == nil || r.sizes.alter != nil {
		w.req = r.sizes.of(c)
	}
	w.resp = r.provider.decide(r.now, w.req)
	c.accepted = w.resp.Accepted
	r.tally.reached(r.now, c, w.resp)
	if !w.resp.Accepted {
		r.state(c)
		r.with(c, r.now+r.net.draw(r.netRand), r.onAnswer)
		return
	}
	var service store.Time
	service, w.body = c.takes(r.sc, r.serviceRand)
	w.begun = Never
	r.with(c, r.now+service, r.onBegin)
	produce(r.loop, r.provider, w.req, service, w.body)
	r.with(c, r.now+service+w.body, r.onDone)
}

// state lets the answer state the limits.
func (r *run) state(c *call) {
	if r.headers {
		c.wire.resp.Headers = r.provider.headers(r.now, c.wire.req)
	}
}

// begin is the first byte of the answer leaving the provider.
func (r *run) begin(c *call) {
	r.state(c)
	c.wire.begun = r.now + r.net.draw(r.netRand)
	r.with(c, c.wire.begun, r.onAnswer)
}

// answer is that byte reaching the caller.
func (r *run) answer(c *call) { r.strategy.answered(c, c.wire.resp) }

// done is the last byte leaving the provider.
func (r *run) done(c *call) {
	r.provider.Done(r.now, c.wire.req)
	over := c.wire.begun // a short answer comes in one piece
	if c.wire.body > 0 {
		over = max(over, r.now+r.net.draw(r.netRand))
	}
	r.with(c, over, r.onOver)
}

// over is that byte reaching the caller.
func (r *run) over(c *call) {
	r.strategy.ended(c, usage{c.wire.req.Input, c.wire.req.Output})
	r.finish(c)
}

func (r *run) retry(c *call, d store.Time, again func(*call)) {
	if r.sc.Attempts > 0 && c.sends >= r.sc.Attempts || r.now+d > c.job.deadline {
		r.giveUp(c)
		return
	}
	r.with(c, r.now+d, again)
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
	c.agent.left--
	r.with(c, r.now, r.onFree)
}

func (r *run) free(c *call) {
	a := c.agent
	a.busy--
	r.pump(a)
	c.follow(r.loop, r.arrive)
	a.recycle(c)
	if l, ok := r.strategy.(leaver); ok && a.left == 0 && a.busy == 0 {
		l.left(a)
	}
}
