package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// pollJitter is the range over which pollers spread their next attempts.
const pollJitter = time.Second

// polled is one shared bucket without a queue. A caller that finds it empty learns when it will have a token if no
// other caller comes. The caller sleeps that long and a little longer, and tries again.
type polled struct {
	*desk
	quota *Provider
	again func(*call) // the method value of want, bound once
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
	if at == Never { // all places are taken, for an unknown time
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
