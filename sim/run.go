package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// maxSteps bounds a run, so that no scenario runs forever.
const maxSteps = 400_000_000

// strategy decides when a call is sent, and what happens when it is refused. It must send or give up every call that it
// gets.
type strategy interface {
	// want hands over a call to be done.
	want(c *call)
	// answered is called when the first byte of a response has reached the caller.
	answered(c *call, resp Response)
	// ended is called when an accepted call is over, with its usage.
	ended(c *call, used usage)
	// blind reports whether the strategy may not use the limits that responses state. Responses then omit them.
	blind() bool
}

// leaver is a strategy that is told when an agent has no work left.
type leaver interface{ left(a *agent) }

// usage is the usage that a response states, in tokens.
type usage struct{ input, output int64 }

// desk is everything that a strategy may use: time, random numbers, the published limits, and its callers. It has no
// access to the provider or the real cost of calls.
type desk struct {
	*loop
	sc     *Scenario
	jitter *rand.Rand
	agents []*agent
	callers
}

// callers carries out what a strategy decides.
type callers interface {
	// send sends c to the provider.
	send(c *call)
	// retry calls again with c after d. It gives c up instead if that exceeds the scenario's attempts or deadline.
	retry(c *call, d store.Time, again func(*call))
	// giveUp ends a call that was not accepted.
	giveUp(c *call)
	// late reports whether c has missed its job's deadline.
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
	headers              bool // responses state limits, and the strategy reads them

	// Method values, bound once to save memory.
	onReach, onBegin, onAnswer, onDone, onOver, onFree func(*call)
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
	r.headers = sc.Policy.Headers && !r.strategy.blind()
	return r
}

// finishAll runs until all work is done or the horizon is reached.
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

// pump gives calls to idle workers.
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

// reach handles the arrival of c at the provider.
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

// state adds the limits to the response of c.
func (r *run) state(c *call) {
	if r.headers {
		c.wire.resp.Headers = r.provider.headers(r.now, c.wire.req)
	}
}

// begin sends the first byte of the response.
func (r *run) begin(c *call) {
	r.state(c)
	c.wire.begun = r.now + r.net.draw(r.netRand)
	r.with(c, c.wire.begun, r.onAnswer)
}

// answer handles the arrival of the first byte at the caller.
func (r *run) answer(c *call) { r.strategy.answered(c, c.wire.resp) }

// done sends the last byte of the response.
func (r *run) done(c *call) {
	r.provider.Done(r.now, c.wire.req)
	over := c.wire.begun // a response without a body arrives in one piece
	if c.wire.body > 0 {
		over = max(over, r.now+r.net.draw(r.netRand))
	}
	r.with(c, over, r.onOver)
}

// over handles the arrival of the last byte at the caller.
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

// release frees a worker. Its next call begins in a separate event, because a strategy may be in the middle of a
// decision.
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
