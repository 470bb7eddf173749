package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// callers counts the requests of each agent and of the whole pool.
type callers struct {
	recs flat.Slab[caller]
	*sum
}

type sum struct {
	total caller
	hand  int32 // the record that sweep checked last
}

func (c *callers) open(space *flat.Space) {
	c.recs.Open(space)
	c.sum = flat.Single[sum](space)
}

// caller counts the requests of an agent. It fits one cache line, because every grant writes it.
type caller struct {
	name               int32
	asked              uint32 // time of the last acquire, in ages
	lease              int32
	inSecond, peak     uint32 // requests in the second of the last one, and the most in any second
	retried, throttled uint32
	note               uint16 // its latest period in the history
	class              uint8  // of the last acquire; left: the agent has left
	sent, waited       int64
	first, last        int64
}

// The tags of a name.
const (
	callerTag = iota // the caller record of the agent with this name
	ownTag           // the first meter that is scoped to this name alone
)

// callerMemory is how long the record of an inactive agent is kept, in microseconds. The pool's totals keep its counts.
const callerMemory = 3600 * 1_000_000

// of returns the record of an agent, and creates it if needed.
func (c *callers) of(names *flat.Names, agent int32) int32 {
	tag := &names.Tags(agent)[callerTag]
	if *tag == 0 {
		*tag = c.recs.New()
		c.recs.At(*tag).name = names.Keep(agent)
	}
	return *tag
}

// count adds n grants at time now. second is when the current second began.
func (c *caller) count(now, second, n int64, retried uint32) {
	c.sent += n
	c.retried += retried
	if c.first == 0 {
		c.first = now
	}
	if c.last < second {
		c.inSecond = 0
	}
	c.last = now
	c.inSecond += uint32(n)
	c.peak = max(c.peak, c.inSecond)
}

// uncount subtracts a grant that was not used. The record may be newer than the grant.
func (c *caller) uncount(waited int64, retry bool) {
	if c.sent == 0 {
		return
	}
	c.sent--
	c.waited = max(c.waited-waited, 0)
	if retry && c.retried > 0 {
		c.retried--
	}
}

// sweep checks n records and drops those of inactive agents. It keeps agents that appear in the history, unless half of
// maxCallers are in use.
func (c *callers) sweep(names *flat.Names, n int, now, lease int64) {
	crowded := 2*c.recs.Len() > maxCallers
	memory := int64(callerMemory)
	if crowded {
		memory = lease
	}
	for range n {
		if c.hand++; c.hand >= c.recs.End() {
			c.hand = 0
			return
		}
		r := c.recs.At(c.hand)
		if r.name == 0 || r.lease != 0 || now-r.lastSeen() < memory || !crowded && !names.Sole(r.name) {
			continue
		}
		names.Tags(r.name)[callerTag] = 0
		names.Drop(r.name)
		c.recs.Free(c.hand)
	}
}

// lastSeen returns the time of the agent's last acquire or grant, to about a second.
func (c *caller) lastSeen() int64 { return max(c.last, int64(c.asked)<<ageBits) }

func (c *caller) counters() store.Counters {
	return store.Counters{
		Sent: c.sent, Retried: int64(c.retried), Throttled: int64(c.throttled),
		Waited: store.Time(c.waited).Sub(0), Peak: int64(c.peak),
		First: store.Time(c.first), Last: store.Time(c.last),
	}
}
