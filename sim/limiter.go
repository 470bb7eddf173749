package sim

import (
	"github.com/sluicehq/sluice/store"
)

// limiter holds calls back, in the order in which they came, until its own model of the quota admits them. It counts a
// call when it sends it, which is earlier than the provider does.
type limiter struct {
	*desk
	quota   *Provider
	waiting []*call
	timer   *event
}

func newLimiter(r *desk, limits []Limit) *limiter {
	return &limiter{desk: r, quota: NewProvider(limits, Policy{})}
}

func (l *limiter) want(c *call) {
	l.waiting = append(l.waiting, c)
	l.advance()
}

func (l *limiter) advance() {
	if l.timer != nil {
		l.cancel(l.timer)
		l.timer = nil
	}
	for len(l.waiting) > 0 {
		c := l.waiting[0]
		if l.late(c) {
			l.waiting = l.waiting[1:]
			l.giveUp(c)
			continue
		}
		at, limit := l.quota.EarliestAccept(l.now, c.asks)
		if limit >= 0 {
			if c.job.deadline != Never {
				at = min(at, c.job.deadline+1)
			}
			if at != Never {
				l.timer = l.at(at, l.advance)
			}
			return
		}
		l.quota.Arrive(l.now, c.asks)
		l.waiting = l.waiting[1:]
		l.send(c)
	}
}

func (l *limiter) answered(c *call, resp Response) {
	if resp.Accepted {
		return
	}
	l.quota.Done(l.now, c.asks)
	l.retry(c, hintOrJitter(l.desk, c, resp), l.want)
	l.advance()
}

func (l *limiter) ended(c *call, used usage) {
	settle(l.quota, l.now, c, used)
	l.advance()
}

func (*limiter) blind() bool { return true }

// settle replaces the usual size of a call in quota with the usage in its response.
func settle(quota *Provider, now store.Time, c *call, used usage) {
	req := *c.asks
	req.Estimate, req.Input = req.Input, used.input
	quota.Produce(now, &req, used.output)
	quota.Done(now, &req)
}

// perProcess gives every process its own limiter, which assumes that it has the whole quota.
type perProcess struct {
	*desk
	limits []Limit
	of     []*limiter // by agent; nil: it has sent nothing yet
}

func newPerProcess(r *desk) strategy {
	return &perProcess{desk: r, limits: asBuckets(r.sc.Limits), of: make([]*limiter, len(r.sc.Fleet))}
}

func (p *perProcess) want(c *call) {
	i := c.agent.index
	if p.of[i] == nil {
		p.of[i] = newLimiter(p.desk, p.limits)
	}
	p.of[i].want(c)
}

func (p *perProcess) answered(c *call, resp Response) { p.of[c.agent.index].answered(c, resp) }
func (p *perProcess) ended(c *call, used usage)       { p.of[c.agent.index].ended(c, used) }
func (*perProcess) blind() bool                       { return true }

// newSharedWindow is the common rule of thumb: one shared rolling window, set to 80% of the provider's limit.
func newSharedWindow(r *desk) strategy {
	limits := make([]Limit, len(r.sc.Limits))
	for i, l := range r.sc.Limits {
		if l.Kind != store.Concurrency {
			l.Kind = store.Rolling
		}
		l.Size = max(1, l.Size*8/10)
		limits[i] = l
	}
	return newLimiter(r, limits)
}

// asBuckets converts limits to what common limiter libraries support: a bucket that holds one window's worth.
func asBuckets(limits []Limit) []Limit {
	out := make([]Limit, len(limits))
	for i, l := range limits {
		if l.Kind == store.Rolling || l.Kind == store.Fixed {
			l.Kind, l.Burst = store.Bucket, l.Size
		}
		out[i] = l
	}
	return out
}
