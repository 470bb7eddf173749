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
// entries have had, its offset, gives a bound: at a new entry it is not later than reading + offset, and what the stamp
// claims beyond that was a step of the engine's clock, or a delay of this entry. In both cases the pool's time may wait for
// the next entry. The offset is kept, and not taken anew at each entry, so that many small steps do not add up. It may grow
// slowly, so that a machine whose clock is slow holds nobody up.
//
// A step back is plain to see, as stamps are given in the order of the log: no time passes at that entry. A step forth
// shows in all machines that were there before it. If they agree for some seconds, the line from stamps to pool time is
// drawn anew.
//
// A machine that is new in the log can bear no witness: it has no offset yet, or one from few entries, all of which may
// have been late. It confirms what the stamps say, except a gap so long that some other process should have shown itself
// within it. Of that it confirms what its own clock has seen. The rest is owed: an older machine confirms or denies it, or
// else none of them is alive.
//
// All times are microseconds. A clock is a pure function of what it was told.
type clock struct {
	now   int64 // the pool's time
	stamp int64 // the latest
	line  int64 // what to add to a stamp

	sure      int64 // pool time when a machine last confirmed the line
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
	at     int64 // reading up to which offset has grown
	since  int64 // pool time of its first entry
	count  int64 // of its entries, up to agreeing
	seen   int64 // pool time of its latest entry

	late     int64 // entries in a row whose bound was before the pool's time
	lateFrom int64 // reading of the first of them
	latest   int64 // their largest difference
}

const (
	// tolerance is how much a stamp may claim beyond what a machine confirms. Delays of entries below it have no effect.
	tolerance = 100_000
	// An offset grows by one part of this of the time that passes.
	driftPart = 128
	// agreeing is how many entries, within how long at least, show that the line or an offset is wrong.
	agreeing    = 8
	agreeWithin = 2_000_000
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
		c.now, c.stamp, c.sure = s, s, s
		c.sample(machine, reading, 0, false)
		return store.Time(c.now)
	}
	gap := s - c.stamp
	if gap < 0 { // the engine's clock was set back
		c.line -= gap
		gap = 0
	}
	c.stamp = s
	if c.owed > 0 && c.now >= c.owedAt+sessionLife {
		c.pay(c.owed)
	}
	i, known := c.search(machine)
	switch {
	case !known:
		c.believe(gap, watched, 0)
	case watched && c.machines[i].count < agreeing:
		m := &c.machines[i]
		m.grow(reading)
		c.believe(gap, watched, reading+m.offset+tolerance)
	default:
		c.witness(&c.machines[i], reading)
	}
	c.now = min(c.now, latestTime)
	c.sample(machine, reading, i, known)
	return store.Time(c.now)
}

// witness moves the pool's time as far as a machine confirms what the stamps claim.
func (c *clock) witness(m *machine, reading int64) {
	m.grow(reading)
	bound := reading + m.offset + tolerance
	if c.owed > 0 && m.since < c.owedAt {
		if confirmed := min(bound-c.stamp-c.line, c.owed); confirmed > 0 {
			c.pay(confirmed)
		}
		c.owed = 0
	}
	want := c.stamp + c.line
	excess := want - bound
	switch {
	case excess <= 0:
		c.disputed = 0
	case c.disputed == 0:
		c.disputed, c.disputeAt, c.excess = 1, c.now, excess
	default:
		c.disputed++
		c.excess = min(c.excess, excess)
	}
	m.lag(bound < c.now, reading, c.now)
	// A little time needs no witness, so that the late entries of one machine do not matter among those of others.
	c.now = max(c.now, min(want, max(bound, c.sure+tolerance)))
	if c.disputed == 0 {
		c.sure = want
	}
	if c.disputed >= agreeing && c.now >= c.disputeAt+agreeWithin {
		c.line -= c.excess
		c.disputed = 0
	}
}

// grow lets the offset grow by the time that has passed since it last did.
func (m *machine) grow(reading int64) {
	if grown := (reading - m.at) / driftPart; grown > 0 {
		m.offset += grown
		m.at += grown * driftPart
	}
}

// lag notes whether the machine is behind the pool's time, and gives it another offset if it always is.
func (m *machine) lag(behind bool, reading, now int64) {
	switch {
	case !behind:
		m.late = 0
		return
	case m.late == 0:
		m.late, m.lateFrom, m.latest = 1, reading, now-reading
	default:
		m.late++
		m.latest = max(m.latest, now-reading)
	}
	if m.late >= agreeing && reading >= m.lateFrom+agreeWithin {
		m.offset, m.at, m.late = m.latest, reading, 0
	}
}

// believe moves the pool's time by what stamps claim since the latest entry, without a witness. own is the pool's time by
// the clock of the machine, if it had entries before.
func (c *clock) believe(gap int64, watched bool, own int64) {
	if c.disputed > 0 && c.now >= c.disputeAt+sessionLife { // who disputed it is silent
		c.line = c.now - c.stamp + gap
		c.disputed = 0
	}
	want := c.stamp + c.line
	if gap <= mostGap || !watched {
		c.now = max(c.now, min(want, c.now+gap))
		return
	}
	c.now = max(c.now, min(want, max(c.now+mostGap, own)))
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
	if id == 0 || c.disputed > 0 && (!known || c.machines[i].count < agreeing) {
		return // the pool's time may be late
	}
	if !known {
		c.forget()
		if len(c.machines) >= maxMachines {
			return
		}
		i, _ = c.search(id)
		c.machines = slices.Insert(c.machines, i, machine{id: id, offset: c.now - reading, at: reading, since: c.now})
	}
	m := &c.machines[i]
	m.grow(reading)
	m.offset = min(m.offset, c.now-reading)
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
