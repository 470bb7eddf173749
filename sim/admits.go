package sim

import (
	"github.com/sluicehq/sluice/store"
)

// admits counts what the provider's rule would have let in while work was
// waiting: a second provider of the same kind is offered an endless backlog,
// without delay, in exactly those spans, and what others use of it is
// gone. The backlog repeats the fleet's own calls, each model's apart from
// those of the others. Counting stops at a hundred times the fleet's calls: a
// quota that large is not used at all.
func admits(sc *Scenario, lanes []*modelTally, seed uint64) *backlog {
	o := &backlog{loop: newLoop(), sc: sc, provider: NewProvider(sc.Limits, sc.Policy), stocks: stocks(sc, lanes)}
	_, arrivals := demand(sc)
	sizes := sizes{sc: sc, seed: seed}
	o.most = 100 * sc.calls()
	last := Epoch
	for _, l := range lanes {
		e := &endless{}
		for _, a := range arrivals {
			for _, c := range withNext(a.calls) {
				if c.asks.Model == l.model {
					e.calls = append(e.calls, sizes.of(c))
					service, body := c.usually(sc)
					e.times = append(e.times, [2]store.Time{service, body})
				}
			}
		}
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
	lanes    []*endless
	stocks   []*stock
	timer    *event
	admitted int
	most     int
}

// endless is one model's backlog.
type endless struct {
	calls []Request
	times [][2]store.Time // to the first byte of the answer to each, and from there to its end
	next  int
	open  store.Time // end of the span it is in
}

func (o *backlog) advance() {
	if o.timer != nil {
		o.cancel(o.timer)
		o.timer = nil
	}
	next := Never
	for _, e := range o.lanes {
		for e.open >= o.now && o.admitted < o.most {
			req, times := e.calls[e.next%len(e.calls)], e.times[e.next%len(e.calls)]
			at, limit := o.provider.EarliestAccept(o.now, &req)
			if limit >= 0 {
				o.held(limit)
				if at <= e.open {
					next = min(next, at)
				}
				break
			}
			o.provider.Arrive(o.now, &req)
			o.admitted++
			for _, s := range o.stocks {
				s.note(o.now)
			}
			e.next++
			serve(o.loop, o.provider, &req, times[0], times[1], func() {}, o.advance)
		}
	}
	if next != Never {
		o.timer = o.at(next, o.advance)
	}
}
