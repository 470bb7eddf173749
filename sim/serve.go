package sim

import (
	"math/rand/v2"

	"github.com/sluicehq/sluice/store"
)

// serve carries out a request that the provider accepted at this moment: headers,
// if there is one, is called when the answer begins, done when it is over. Output is counted in
// quarters while the body is produced.
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

// produce counts the output of a request while its body is produced.
func produce(l *loop, p *Provider, req *Request, service, body store.Time) {
	const parts = 4
	for k := int64(1); k <= parts && req.Output > 0; k++ {
		tokens := req.Output*k/parts - req.Output*(k-1)/parts
		l.after(service+body*store.Time(k)/parts, func() { p.Produce(l.now, req, tokens) })
	}
}

// outside lets others use the provider for as long as there is work: a Poisson
// stream of requests that changes something, each over when the usual service
// time has passed. The stream depends on the seed alone. Where others come first
// their requests count even if there is no room: a clairvoyant would else take
// every bit of quota the moment it is there and leave them nothing.
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

// outsider returns a request like those of the fleet, from somebody else.
func outsider(sc *Scenario, r *rand.Rand) *Request {
	req := sc.Fleet[r.IntN(len(sc.Fleet))].Request
	req.Agent = "(outside)"
	return &req
}
