package sim

import (
	"github.com/sluicehq/sluice/store"
)

// ideal is the makespan to be measured by: a clairvoyant knows the state of the
// provider without delay and lets each call arrive in the very moment the rule
// admits it, in weighted fair order. A run can end a little sooner whose last calls
// happen to have quick answers, or that serves them in another order. The fleet works as it does in the real run
// (its workers, its arrivals), messages take the mean delay and answers the
// mean service time, so what is left is the rule itself and one round trip.
type ideal struct {
	*loop
	sc       *Scenario
	net      store.Time
	provider *Provider
	sizes    sizes
	ready    fairQueue // at the provider's door
	timer    *event
	left     int
	span     span
	classes  []span
}

func newIdeal(sc *Scenario, net Delay, seed uint64) *ideal {
	o := &ideal{
		loop: newLoop(), sc: sc, net: net.Mean(), left: sc.calls(),
		provider: NewProvider(sc.Limits, sc.Policy), sizes: sizes{sc: sc, seed: seed}, classes: make([]span, len(sc.classes())),
		ready: fairQueue{classes: sc.classes()},
	}
	_, arrivals := demand(sc)
	for _, a := range arrivals {
		o.at(a.at, func() { o.arrive(a) })
	}
	outside(o.loop, sc, o.provider, seed, true, func() bool { return o.left > 0 })
	o.loop.run(Epoch.Add(sc.Horizon), maxSteps)
	return o
}

func (o *ideal) arrive(a arrival) {
	o.span.begin(o.now)
	o.classes[a.agent.Class].begin(o.now)
	a.agent.pending = append(a.agent.pending, a.calls...)
	o.pump(a.agent)
}

func (o *ideal) pump(a *agent) {
	for a.busy < a.Workers && len(a.pending) > 0 {
		c := a.pending[0]
		a.pending = a.pending[1:]
		a.busy++
		o.after(o.net, func() {
			o.ready.add(c)
			o.soon()
		})
	}
}

// soon decides once all that comes in this moment is there.
func (o *ideal) soon() {
	if o.timer != nil && o.timer.at <= o.now {
		return
	}
	if o.timer != nil {
		o.cancel(o.timer)
	}
	o.timer = o.at(o.now, o.advance)
}

// advance lets in whatever the rule admits now.
func (o *ideal) advance() {
	o.timer = nil
	next := Never
	o.ready.each(func(c *call) bool {
		req := o.sizes.of(c)
		at, limit := o.provider.EarliestAccept(o.now, &req)
		if limit >= 0 {
			next = min(next, at)
			return false
		}
		o.provider.Arrive(o.now, &req)
		service, body := c.usually(o.sc)
		serve(o.loop, o.provider, &req, service, body, func() {}, func() {
			o.after(o.net, func() { o.finish(c) })
			o.soon()
		})
		return true
	})
	if next != Never {
		o.timer = o.at(next, o.advance)
	}
}

func (o *ideal) finish(c *call) {
	o.left--
	o.span.last = o.now
	o.classes[c.agent.Class].last = o.now
	c.agent.busy--
	o.pump(c.agent)
	c.follow(o.loop, o.arrive)
}
