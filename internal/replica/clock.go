package replica

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// clock is the pool's time. It never goes back. It follows the stamps of the log, which are the engine's word, as far as
// the monotonic clocks of the machines confirm that the time has passed: the engine's clock may be set at any moment.
//
// An entry has a reading of its machine's clock, taken before it was sent, and a stamp, given when it arrived. A delay
// between the two can only make the stamp later. So the least difference between pool time and reading that a machine's
// entries have had, its offset, is the least delay, and reading + offset is not later than the true arrival: it is a bound
// of the pool's time. What the stamp claims beyond it was a step of the engine's clock, or a delay of this entry. Of neither
// anything is believed. An entry that was late only counts as earlier, at most by its delay, and so its time is never before
// its reading: what happened before the process wrote it has not happened later in the pool's time.
//
// The offset is kept, and not taken anew at each entry, so that many small steps do not add up. The only machine of a pool is
// its time. The clocks of several differ a little. So an offset grows slowly while the line from stamps to pool time is not
// in doubt and others' entries come between. A machine that is behind the others nevertheless is given a larger one when that
// has shown for some seconds.
//
// A step back is plain to see, as stamps are given in the order of the log. What has passed since the entry before, the
// machine's clock tells. A step forth shows in all machines that were there before it. If they agree for some seconds, the
// line from stamps to pool time is drawn anew.
//
// A machine that is new in the log can bear no witness with its first entry. It confirms what the stamps say, except a gap
// so long that some other process should have shown itself within it. The rest is owed: an older machine confirms or denies
// it, or else none of them is alive.
//
// All times are microseconds. A clock is a pure function of what it was told.
type clock struct {
	now   int64 // the pool's time
	stamp int64 // the latest
	line  int64 // what to add to a stamp

	front   int64  // pool time as an entry of one machine tells it, carried on by what the stamps claim at least
	frontBy uint64 // the machine
	frontAt int64  // pool time at that entry

	disputed  int64 // entries in a row that denied the line
	disputeAt int64 // pool time of the first of them
	excess    int64 // by how much all of them denied it

	owed   int64
	owedAt int64 // pool time

	machines []machine // by id
}

// machine is what the clock knows of a machine.
type machine struct {
	id     uint64
	offset int64 // of pool time from its readings: the least
	at     int64 // its latest reading
	grown  int64 // reading up to which its offset has grown
	since  int64 // pool time of its first entry
	count  int64 // of its entries, up to agreeing
	seen   int64 // pool time of its latest entry

	behind behind
}

// behind is what others' entries in a row show of a machine that is behind the pool's time.
type behind struct {
	count int64 // of them
	from  int64 // the machine's reading at the first
	last  int64 // frontAt at the latest
	by    int64 // the least
}

const (
	// slack is how much stamps may claim for long beyond what the machines confirm before the line is drawn anew. Only a new
	// machine's first entry can believe it. Without it the line would follow the delays.
	slack = 5_000
	// agreeing is how many entries, within how long at least, show that the line or an offset is wrong.
	agreeing    = 8
	agreeWithin = 2_000_000
	// gainPart is the part of the time that the engine's clock may gain without being believed against a machine's.
	gainPart = 64
	// An offset grows by one part in slewPart of at most sessionLife at once: NTP slews clocks by 500 in a million at most,
	// and two can differ by twice that. Of a longer silence it grows by what oscillators differ, one part in driftPart.
	slewPart  = 1_000
	driftPart = 10_000
	// mostGap is the longest time between two entries that a new machine can confirm while others should be alive.
	mostGap = int64(store.BeatEvery/time.Microsecond) + 500_000
	// machineKept is how long a machine without entries is remembered, so that commands on it have a witness.
	machineKept = 600_000_000
	maxMachines = 2 * store.MaxMembers
	// latestTime bounds the pool's time. The pool's arithmetic needs that.
	latestTime = 1 << 52
)

// begun reports whether there was an entry.
func (c *clock) begun() bool { return c.now != 0 }

// advance returns the pool's time at an entry. machine is 0 if the entry does not say whose it is. reading is of its
// monotonic clock. watched reports whether there are other processes, which would have shown themselves if much time had passed.
func (c *clock) advance(stamp store.Time, machine uint64, reading int64, watched bool) store.Time {
	s := min(max(int64(stamp), 1), latestTime)
	if !c.begun() {
		c.now, c.stamp = s, s
		c.sample(machine, reading, 0, false)
		return store.Time(c.now)
	}
	if machine == 0 && watched { // it decides nothing
		return store.Time(c.now)
	}
	gap := s - c.stamp
	c.stamp = s
	if gap < 0 { // the engine's clock was set back
		c.line -= gap
	} else {
		c.front += gap - gap/gainPart
	}
	if c.owed > 0 && c.now >= c.owedAt+sessionLife {
		c.pay(c.owed)
	}
	i, known := c.search(machine)
	if known {
		c.witness(&c.machines[i], reading, gap)
	} else {
		c.believe(max(gap, 0), watched)
	}
	c.now = min(c.now, latestTime)
	c.sample(machine, reading, i, known)
	return store.Time(c.now)
}

// at returns the pool's time at which an entry with a reading of a known machine would be, if it arrived as fast as any.
func (c *clock) at(machine uint64, reading int64) (now int64, known bool) {
	i, known := c.search(machine)
	if !known {
		return 0, false
	}
	return max(c.now, min(reading+c.machines[i].offset, latestTime)), true
}

// witness moves the pool's time as far as a machine confirms what the stamps claim.
func (c *clock) witness(m *machine, reading, gap int64) {
	if c.frontBy != m.id && c.disputed == 0 {
		m.grow(reading)
	}
	c.catchUp(m, reading)
	bound := reading + m.offset
	if gap < 0 && m.count >= agreeing {
		c.line += min(max(bound-c.stamp-c.line, 0), mostGap)
	}
	if c.owed > 0 && m.since < c.owedAt {
		if confirmed := min(bound-c.stamp-c.line, c.owed); confirmed > 0 {
			c.pay(confirmed)
		}
		c.owed = 0
	}
	want := c.stamp + c.line
	excess := want - bound
	switch {
	case excess <= slack:
		c.disputed = 0
	case c.disputed == 0:
		c.disputed, c.disputeAt, c.excess = 1, c.now, excess
	default:
		c.disputed++
		c.excess = min(c.excess, excess)
	}
	c.now = max(c.now, min(want, bound))
	if c.disputed >= agreeing && c.now >= c.disputeAt+agreeWithin {
		c.line -= c.excess
		c.disputed = 0
	}
}

// grow lets the offset grow by the time that has passed since it last did.
func (m *machine) grow(reading int64) {
	if passed := reading - m.grown; passed >= slewPart {
		m.offset += min(passed, sessionLife)/slewPart + max(reading-m.at-sessionLife, 0)/driftPart
		m.grown = reading
	}
}

// catchUp gives a machine a larger offset if its clock is behind the pool's time for some seconds. Another machine's entry
// shows that, and what the stamps claim since then. Each such entry counts once, because there may have been a step since.
func (c *clock) catchUp(m *machine, reading int64) {
	by, counts := c.front-reading-m.offset, m.behind.last != c.frontAt
	if c.frontBy == m.id { // only if the machine's clock was set back, or two machines have the same id
		by, counts = c.now-reading-m.offset, true
	}
	b := &m.behind
	switch {
	case by <= 0:
		*b = behind{}
		return
	case b.count == 0:
		b.from, b.by, counts = reading, by, true
	default:
		b.by = min(b.by, by)
	}
	if counts {
		b.count++
		b.last = c.frontAt
	}
	if b.count >= agreeing && reading >= b.from+agreeWithin {
		m.offset += b.by
		*b = behind{}
	}
}

// believe moves the pool's time by what stamps claim since the latest entry, without a witness.
func (c *clock) believe(gap int64, watched bool) {
	if c.disputed > 0 && c.now >= c.disputeAt+sessionLife { // who disputed it is silent
		c.line = c.now - c.stamp + gap
		c.disputed = 0
	}
	want := c.stamp + c.line
	if gap <= mostGap || !watched {
		c.now = max(c.now, min(want, c.now+gap))
		return
	}
	c.now = max(c.now, min(want, c.now+mostGap))
	if more := want - c.now; more > 0 && c.disputed == 0 {
		c.line -= more
		c.owed += more
		c.owedAt = c.now
	}
}

// pay adds time that is owed to the line. Machines that came later have measured without it.
func (c *clock) pay(owed int64) {
	c.line += owed
	c.owed -= owed
	for i := range c.machines {
		if m := &c.machines[i]; m.since >= c.owedAt {
			m.offset += owed
		}
	}
}

// sample notes the difference between the pool's time and a reading. The machine is at i, or shall be.
func (c *clock) sample(id uint64, reading int64, i int, known bool) {
	if id == 0 {
		return
	}
	if c.now >= c.front || id == c.frontBy || c.now >= c.frontAt+sessionLife {
		c.front, c.frontBy, c.frontAt = c.now, id, c.now
	}
	if !known {
		c.forget()
		if len(c.machines) >= maxMachines {
			return
		}
		i, _ = c.search(id)
		c.machines = slices.Insert(c.machines, i, machine{id: id, offset: c.now - reading, at: reading, grown: reading, since: c.now})
	}
	m := &c.machines[i]
	m.offset = min(m.offset, c.now-reading)
	m.at = max(m.at, reading)
	m.count = min(m.count+1, agreeing)
	m.seen = c.now
}

// forget drops the machines that have had no entries for long.
func (c *clock) forget() {
	c.machines = slices.DeleteFunc(c.machines, func(m machine) bool { return c.now-m.seen >= machineKept })
}

// search returns where a machine is, or belongs.
func (c *clock) search(id uint64) (i int, known bool) {
	to := len(c.machines)
	for i < to {
		if mid := (i + to) / 2; c.machines[mid].id < id {
			i = mid + 1
		} else {
			to = mid
		}
	}
	return i, i < len(c.machines) && c.machines[i].id == id
}
