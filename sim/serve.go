package sim

import (
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// serve schedules the rest of a request that the provider has just accepted. It calls headers, if not nil, when the
// response begins, and done when it ends. Output counts in four parts while the body is produced.
func serve(l *loop, p *Provider, req *Request, service, body store.Time, headers, done func()) {
	if headers != nil {
		l.after(service, headers)
	}
	produce(l, p, req, service, body)
	l.after(service+body, func() {
		p.Done(l.now, req)
		done()
	})
}

// produce schedules the counting of a request's output while its body is produced.
func produce(l *loop, p *Provider, req *Request, service, body store.Time) {
	const parts = 4
	for k := int64(1); k <= parts && req.Output > 0; k++ {
		tokens := req.Output*k/parts - req.Output*(k-1)/parts
		l.after(service+body*store.Time(k)/parts, func() { p.Produce(l.now, req, tokens) })
	}
}

// outside lets other users send requests while more returns true: a Poisson stream of requests like the fleet's, each
// of which takes the mean service time. The stream depends only on the seed. If first is set, the requests count even
// if there is no room. Otherwise an oracle, which takes all quota at once, would leave nothing for them.
func outside(l *loop, sc *Scenario, p *Provider, seed uint64, first bool, more func() bool) {
	if sc.Outside.N == 0 {
		return
	}
	r := stream(seed, drawOutside)
	mean := float64(sc.Outside.Window.Microseconds()) / float64(sc.Outside.N)
	var next func()
	next = func() {
		if !more() {
			return
		}
		req := outsider(sc, r)
		if first {
			p.take(l.now, req, true)
		}
		if first || p.Arrive(l.now, req).Accepted {
			serve(l, p, req, sc.Service.Mean(), sc.Body.Mean(), nil, func() {})
		}
		l.after(store.Time(mean*r.ExpFloat64())+1, next)
	}
	l.after(store.Time(mean*r.ExpFloat64())+1, next)
}

// outsider returns a request like the fleet's, from another user.
func outsider(sc *Scenario, r *rand.Rand) *Request {
	req := sc.Fleet[r.IntN(len(sc.Fleet))].Request
	req.Agent = "(outside)"
	return &req
}
