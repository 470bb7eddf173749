package sim

import (
	"github.com/sluicehq/sluice/store"
)

// ideal computes the makespan that runs are compared with. It knows the state of the provider without delay. It lets
// each call arrive at the very time at which the rules admit it, in weighted fair order. The fleet has the same workers
// and arrivals as in a real run. Messages take the mean delay and responses the mean service time, so the result
// depends only on the rules and one round trip.
//
// A real run can be slightly shorter, if its last calls get quick responses or if it serves them in another order.
type ideal struct {
	*loop
	sc       *Scenario
	net      store.Time
	provider *Provider
	sizes    sizes
	ready    fairQueue // calls that have arrived and wait for room
	timer    *event
	left     int
	span     span
	classes  []span

	onEnter, onDone, onFinish func(*call) // method values, bound once to save memory
}

func newIdeal(sc *Scenario, net Delay, seed uint64, tick func() bool) *ideal {
	o := &ideal{
		loop: newLoop(), sc: sc, net: net.Mean(), left: sc.calls(),
		provider: NewProvider(sc.Limits, sc.Policy), sizes: sizes{sc: sc, seed: seed}, classes: make([]span, len(sc.classes())),
		ready: fairQueue{classes: sc.classes()},
	}
	o.onEnter, o.onDone, o.onFinish = o.enter, o.done, o.finish
	_, o.jobs = demand(sc)
	o.come, o.tick = o.arrive, tick
	outside(o.loop, sc, o.provider, seed, true, func() bool { return o.left > 0 })
	o.loop.run(Epoch.Add(sc.Horizon), maxSteps)
	return &ideal{span: o.span, classes: o.classes} // drops the rest, so that it can be freed
}

func (o *ideal) arrive(a arrival) {
	o.span.begin(o.now)
	o.classes[a.agent.Class].begin(o.now)
	a.agent.pending = append(a.agent.pending, a)
	o.pump(a.agent)
}

func (o *ideal) pump(a *agent) {
	for a.busy < a.Workers && len(a.pending) > 0 {
		c := a.take()
		a.busy++
		o.with(c, o.now+o.net, o.onEnter)
	}
}

func (o *ideal) enter(c *call) {
	o.ready.add(c)
	o.soon()
}

// soon schedules advance after all other events of the current time.
func (o *ideal) soon() {
	if o.timer != nil && o.timer.at <= o.now {
		return
	}
	if o.timer != nil {
		o.cancel(o.timer)
	}
	o.timer = o.at(o.now, o.advance)
}

// advance accepts all calls that the rules admit now.
func (o *ideal) advance() {
	o.timer = nil
	next := Never
	o.ready.each(func(c *call) bool {
		w := &c.wire
		if w.req == nil {
			w.req = o.sizes.of(c)
		}
		at, limit := o.provider.EarliestAccept(o.now, w.req)
		if limit >= 0 {
			next = min(next, at)
			return false
		}
		o.provider.take(o.now, w.req, true)
		service, body := c.usually(o.sc)
		produce(o.loop, o.provider, w.req, service, body)
		o.with(c, o.now+service+body, o.onDone)
		return true
	})
	if next != Never {
		o.timer = o.at(next, o.advance)
	}
}

// done ends c at the provider.
func (o *ideal) done(c *call) {
	o.provider.Done(o.now, c.wire.req)
	o.with(c, o.now+o.net, o.onFinish)
	o.soon()
}

func (o *ideal) finish(c *call) {
	o.left--
	o.span.last = o.now
	o.classes[c.agent.Class].last = o.now
	c.agent.busy--
	o.pump(c.agent)
	c.follow(o.loop, o.arrive)
	c.agent.recycle(c)
}
