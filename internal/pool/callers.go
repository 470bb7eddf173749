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

// caller is one cache line: it is written at every grant.
type caller struct {
	name               int32
	second             uint32 // in which inSecond were sent
	inSecond, peak     uint32
	retried, throttled uint32
	sent, waited       int64
	first, last        int64
	last429            int64
}

// What the tags of an agent's name lead to.
const (
	callerTag = iota // its caller record
	ownTag           // the first of its own meters
)

// callerMemory is how long an agent that sends nothing is kept apart. Its counts stay
// in the pool's.
const callerMemory = 3600 * 1_000_000

// of returns the record of an agent.
func (c *callers) of(names *flat.Names, agent int32) int32 {
	tag := &names.Tags(agent)[callerTag]
	if *tag == 0 {
		*tag = c.recs.New()
		c.recs.At(*tag).name = names.Keep(agent)
	}
	return *tag
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
	if s := uint32(now / 1_000_000); s != c.second {
		c.second, c.inSecond = s, 0
	}
	c.inSecond++
	c.peak = max(c.peak, c.inSecond)
}

// unsent takes a grant back that was not used. The peak stays: it was allowed.
func (c *callers) unsent(i int32, waited int64, retry bool) {
	for _, r := range [...]*caller{c.recs.At(i), &c.total} {
		r.sent--
		r.waited -= waited
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
		names.Tags(r.name)[callerTag] = 0
		names.Drop(r.name)
		c.recs.Free(c.hand)
	}
}

func (c *caller) counters() store.Counters {
	return store.Counters{
		Sent: c.sent, Retried: int64(c.retried), Throttled: int64(c.throttled),
		Waited: store.Time(c.waited).Sub(0), Peak: int64(c.peak),
		First: store.Time(c.first), Last: store.Time(c.last), Last429: store.Time(c.last429),
	}
}
