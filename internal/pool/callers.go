package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// callers counts what each agent sends, and the whole pool.
type callers struct {
	recs flat.Slab[caller]
	*sum
}

type sum struct {
	total caller
	hand  int32
}

func (c *callers) open(space *flat.Space) {
	c.recs.Open(space)
	c.sum = flat.Single[sum](space)
}

// caller is one cache line: it is written at every grant.
type caller struct {
	name               int32
	asked              uint32 // when it asked last, in ages
	lease              int32
	inSecond, peak     uint32 // sent in the second of the last, and the most in any
	retried, throttled uint32
	note               uint16 // its latest period in the history
	class              uint8  // that it asked for last; left: it has taken its leave
	sent, waited       int64
	first, last        int64
}

// What the tags of an agent's name lead to.
const (
	callerTag = iota // its caller record
	ownTag           // the first of the meters that are scoped to it alone
)

// callerMemory is how long an agent that is not heard of is kept apart. Its counts stay
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

// count counts n grants at now, in a second that began at second.
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

// uncount takes a grant back. The record may be newer than the grant.
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

// sweep forgets agents that were not heard of for long. When there are many, one that is not alive is
// forgotten although the history tells of it.
func (c *callers) sweep(names *flat.Names, n int, now, lease int64) {
	crowded := 2*c.recs.Len() > maxCallers
	memory := int64(callerMemory)
	if crowded {
		memory = max(lease, 6*minute) // what it has sent may be entered minutes later, see tell
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

// lastSeen returns when the agent last asked, to the second, or was granted anything.
func (c *caller) lastSeen() int64 { return max(c.last, int64(c.asked)<<ageBits) }

func (c *caller) counters() store.Counters {
	return store.Counters{
		Sent: c.sent, Retried: int64(c.retried), Throttled: int64(c.throttled),
		Waited: store.Time(c.waited).Sub(0), Peak: int64(c.peak),
		First: store.Time(c.first), Last: store.Time(c.last),
	}
}
