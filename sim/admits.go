package sim

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// admits counts what the provider's rule would have let in while work was
// waiting: a second provider of the same kind is offered an endless backlog,
// without delay, in exactly those spans, and what others use of it is
// gone. The backlog repeats the fleet's own calls, each model's apart from
// those of the others. Counting stops at a hundred times the fleet's calls, or
// at twenty million: a quota that large is not used at all.
func admits(sc *Scenario, lanes []*modelTally, seed uint64, tick func() bool) *backlog {
	o := &backlog{loop: newLoop(), sc: sc, provider: NewProvider(sc.Limits, sc.Policy), sizes: sizes{sc: sc, seed: seed}, stocks: stocks(sc, lanes)}
	o.tick = tick
	o.most = 100 * sc.calls()
	if most := max(20_000_000, 4*sc.calls()); o.most > most {
		o.most = most
	}
	o.ends = sc.endsMatter()
	last := Epoch
	for _, l := range lanes {
		e := newEndless(sc, l.model)
		o.lanes = append(o.lanes, e)
		for _, s := range l.spans {
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
	lanes    []*endless
	stocks   []*stock
	timer    *event
	admitted int
	most     int
	ends     bool // a call that is over can make room for the next
}

// endsMatter reports whether what becomes of a request after its arrival says anything about when the next is
// admitted, or could move those that come in the same moment.
func (s *Scenario) endsMatter() bool {
	return s.Outside.N > 0 || slices.ContainsFunc(s.Limits, func(l Limit) bool { return l.Kind == store.Concurrency || l.late() })
}

// endless is one model's backlog: its calls, over and over.
type endless struct {
	agents []*agent // whose calls they are, one agent after the other
	agent  int
	call   call
	logged []*call // or those of a log
	next   int
	open   store.Time // end of the span it is in
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

// withNext is a call and all that follow it.
func withNext(c *call) []*call {
	all := []*call{c}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].next...)
	}
	return all
}

// first is the call whose turn it is.
func (e *endless) first() *call {
	if e.logged != nil {
		return e.logged[e.next]
	}
	return &e.call
}

// step is the end of that turn.
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
	for _, e := range o.lanes {
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

// let lets the first call of e in.
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
