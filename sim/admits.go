package sim

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// admits counts the requests that the provider's rules would have accepted while work was waiting. In exactly those
// spans it offers an endless backlog, without delay, to a second provider with the same limits. Requests from outside
// the fleet use that provider too. The backlog repeats the fleet's own calls, separately for each model.
//
// Counting stops at a hundred times the fleet's calls, because a quota that large does not bind. It also stops at twenty
// million, or at four times the fleet's calls if that is more.
func admits(sc *Scenario, models []*modelTally, seed uint64, tick func() bool) *backlog {
	o := &backlog{loop: newLoop(), sc: sc, provider: NewProvider(sc.Limits, sc.Policy), sizes: sizes{sc: sc, seed: seed}, stocks: stocks(sc, models)}
	o.tick = tick
	o.most = 100 * sc.calls()
	if most := max(20_000_000, 4*sc.calls()); o.most > most {
		o.most = most
	}
	o.ends = sc.endsMatter()
	last := Epoch
	for _, m := range models {
		e := newEndless(sc, m.model)
		o.models = append(o.models, e)
		for _, s := range m.spans {
			last = max(last, s.last)
			o.at(s.first, func() { e.open = s.last; o.advance() })
		}
	}
	outside(o.loop, sc, o.provider, seed, true, func() bool { return o.now <= last })
	o.loop.run(last, maxSteps)
	return o
}

type backlog struct {
	*loop
	sc       *Scenario
	provider *Provider
	sizes    sizes
	models   []*endless
	stocks   []*stock
	timer    *event
	admitted int
	most     int
	ends     bool // the end of a call can make room for the next
}

// endsMatter reports whether events after a request's arrival can affect later ones. They do if a place becomes free,
// or if output counts while it is produced. With requests from outside, they could also change the order of events at
// the same time.
func (s *Scenario) endsMatter() bool {
	return s.Outside.N > 0 || slices.ContainsFunc(s.Limits, func(l Limit) bool { return l.Kind == store.Concurrency || l.late() })
}

// endless is the backlog of one model: its calls, over and over.
type endless struct {
	agents []*agent // agents that use the model; their calls come one agent after the other
	agent  int
	call   call
	logged []*call // calls of a log instead
	next   int
	open   store.Time // end of the current span
}

func newEndless(sc *Scenario, model string) *endless {
	e := &endless{}
	agents, coming := demand(sc)
	for _, a := range coming.logged {
		for _, c := range withNext(a.call) {
			if c.asks.Model == model {
				e.logged = append(e.logged, c)
			}
		}
	}
	if e.logged == nil {
		e.agents = slices.DeleteFunc(agents, func(a *agent) bool { return a.asks.Model != model || a.left == 0 })
		e.call.agent, e.call.asks, e.call.number = e.agents[0], &e.agents[0].asks, e.agents[0].first
	}
	return e
}

// withNext returns a call and all calls that follow it.
func withNext(c *call) []*call {
	all := []*call{c}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].next...)
	}
	return all
}

// first returns the next call of the backlog.
func (e *endless) first() *call {
	if e.logged != nil {
		return e.logged[e.next]
	}
	return &e.call
}

// step moves on to the next call.
func (e *endless) step() {
	if e.logged != nil {
		e.next = (e.next + 1) % len(e.logged)
		return
	}
	c := &e.call
	if c.number++; c.number == c.agent.first+c.agent.left {
		e.agent = (e.agent + 1) % len(e.agents)
		c.agent = e.agents[e.agent]
		c.asks, c.number = &c.agent.asks, c.agent.first
	}
}

func (o *backlog) advance() {
	if o.timer != nil {
		o.cancel(o.timer)
		o.timer = nil
	}
	next := Never
	for _, e := range o.models {
		for e.open >= o.now && o.admitted < o.most {
			req := o.sizes.of(e.first())
			at, limit := o.provider.EarliestAccept(o.now, req)
			if limit >= 0 {
				o.held(limit)
				if at <= e.open {
					next = min(next, at)
				}
				break
			}
			o.let(e, req)
		}
	}
	if next != Never {
		o.timer = o.at(next, o.advance)
	}
}

// let accepts the first call of e.
func (o *backlog) let(e *endless, req *Request) {
	o.provider.take(o.now, req, true)
	o.admitted++
	for _, s := range o.stocks {
		s.note(o.now)
	}
	if o.ends {
		service, body := e.first().usually(o.sc)
		serve(o.loop, o.provider, req, service, body, nil, o.advance)
	}
	e.step()
}
