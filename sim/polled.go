package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// pollJitter is how far apart pollers spread their next try.
const pollJitter = time.Second

// polled is one bucket for everybody, kept in a shared place. A caller that finds
// it empty is told when there will be a token if nobody else comes, sleeps that
// long and a little longer, and tries again. Nobody has a place in a queue.
type polled struct {
	*desk
	quota *Provider
	again func(*call) // want, bound once
}

func newPolled(r *desk) strategy {
	p := &polled{desk: r, quota: NewProvider(asBuckets(r.sc.Limits), Policy{})}
	p.again = p.want
	return p
}

func (p *polled) want(c *call) {
	if p.late(c) {
		p.giveUp(c)
		return
	}
	at, limit := p.quota.EarliestAccept(p.now, c.asks)
	if limit < 0 {
		p.quota.Arrive(p.now, c.asks)
		p.send(c)
		return
	}
	if at == Never { // all places are taken, for nobody knows how long
		at = p.now
	}
	at += store.Time(p.jitter.Int64N(pollJitter.Microseconds())) + 1
	p.with(c, at, p.again)
}

func (p *polled) answered(c *call, resp Response) {
	if resp.Accepted {
		return
	}
	p.quota.Done(p.now, c.asks)
	p.retry(c, hintOrJitter(p.desk, c, resp), p.again)
}

func (p *polled) ended(c *call, used usage) { settle(p.quota, p.now, c, used) }

func (*polled) blind() bool { return true }
