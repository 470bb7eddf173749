package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// callers counts what each agent sends, and the whole pool.
type callers struct {
	recs  flat.Slab[caller]
	total caller
	hand  int32
}

type caller struct {
	name                             int32
	sent, retried, throttled, waited int64
	first, last, last429             int64
	peak, second, inSecond           int64
}

// callerMemory is how long an agent that sends nothing is kept apart. Its counts stay
// in the pool's.
const callerMemory = 3600 * 1_000_000

// of returns the record of an agent.
func (c *callers) of(names *flat.Names, agent int32) int32 {
	i := names.Tag(agent)
	if i == 0 {
		i = c.recs.New()
		c.recs.At(i).name = names.Keep(agent)
		names.SetTag(agent, i)
	}
	return i
}

func (c *callers) sent(i int32, now, waited int64, retry bool) {
	c.recs.At(i).count(now, waited, retry)
	c.total.count(now, waited, retry)
}

func (c *caller) count(now, waited int64, retry bool) {
	c.sent++
	c.waited += waited
	if retry {
		c.retried++
	}
	if c.first == 0 {
		c.first = now
	}
	c.last = now
	if s := now / 1_000_000; s != c.second {
		c.second, c.inSecond = s, 0
	}
	c.inSecond++
	c.peak = max(c.peak, c.inSecond)
}

// unsent takes a grant back that was not used. The peak stays: it was allowed.
func (c *callers) unsent(i int32, retry bool) {
	for _, r := range [...]*caller{c.recs.At(i), &c.total} {
		r.sent--
		if retry {
			r.retried--
		}
	}
}

func (c *callers) throttled(i int32, now int64) {
	for _, r := range [...]*caller{c.recs.At(i), &c.total} {
		r.throttled++
		r.last429 = now
	}
}

func (c *callers) sweep(names *flat.Names, n int, now int64) {
	for range n {
		if c.hand++; c.hand >= c.recs.End() {
			c.hand = 0
			return
		}
		r := c.recs.At(c.hand)
		if r.name == 0 || now-r.last < callerMemory || !names.Sole(r.name) {
			continue
		}
		names.Drop(r.name)
		c.recs.Free(c.hand)
	}
}

func (c *caller) counters() store.Counters {
	return store.Counters{
		Sent: c.sent, Retried: c.retried, Throttled: c.throttled, Waited: store.Time(c.waited).Sub(0), Peak: c.peak,
		First: store.Time(c.first), Last: store.Time(c.last), Last429: store.Time(c.last429),
	}
}
