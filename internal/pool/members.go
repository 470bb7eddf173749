package pool

import (
	"cmp"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// member is a process that is heard of every few seconds. A silent member may be cut off from the log, and then grants
// requests on its own, up to its share of every limit, see Share. So the pool withholds its share from the others until its lease
// is over and the requests that it may have sent no longer count.
type member struct {
	session    int32 // record
	silent     bool
	touched    int64 // time of its latest report
	expires    int64 // end of its lease
	share      int64 // the largest share that it may believe it has, as 1/share of every limit; 0: none
	told       int64 // the share that it was told last
	prev, next int32 // in the list of members that report, by time, or of silent members
}

const (
	silentAfter = 5_000_000 // a member is silent this long after its latest report: one each store.BeatEvery may be late by two seconds
	// Times at which the withheld parts change are rounded, to the safe side. So a fleet that goes down at once causes
	// only a few changes.
	hushStep = 250_000
	freeStep = 1_000_000
	// shareWithin is the longest window of which members have shares. On a longer window, a lease is over before any
	// use has come back. A member that is cut off could not use a share there, and a killed member must not block its
	// share for a day.
	shareWithin = 600_000_000
	// whole is all of a limit, in the unit in which promises are added up. It is exact, and large enough that with
	// store.MaxMembers the sum is off by less than one unit of the largest limit.
	whole = 1 << 52
	// finest is the denominator of the smallest share.
	finest = 1 << 20
)

// silentFrom returns when a member becomes silent without a further report.
func (m *member) silentFrom() int64 { return (m.touched + silentAfter) / hushStep * hushStep }

// roundFree rounds up the time at which a withheld part comes back.
func roundFree(t int64) int64 { return (t + freeStep - 1) / freeStep * freeStep }

// partOf returns a share in units of 1/whole.
func partOf(share int64) int64 {
	if share == 0 {
		return 0
	}
	return whole / share
}

// setSpan computes the longest time that a charge stands on a limit. A full bucket needs burst/size windows to drain.
func (p *Pool) setSpan(limit int) {
	d, l := &p.defs[limit], &p.spec.Limits[limit]
	p.span[limit] = d.Window
	if d.Kind == meter.Bucket && l.Size > 0 && l.Burst > l.Size {
		p.span[limit] = min((l.Burst+l.Size-1)/l.Size, meter.MaxAmount/d.Window+1) * d.Window
	}
}

// lingers returns how long after the end of a member's lease its requests can count in a limit. It returns -1 if members
// have no share of the limit. Concurrency is free at the end of the lease: a member that is cut off holds none for longer.
func (p *Pool) lingers(limit int) int64 {
	switch {
	case p.shared&(1<<limit) == 0 || p.span[limit] > shareWithin:
		return -1
	case p.defs[limit].Kind == meter.Concurrency:
		return 0
	}
	return p.span[limit] + p.defs[limit].Most
}

// touched handles the report of a member: it renews its lease and tells it its share. The first report of a session makes
// it a member.
func (p *Pool) touched(op *store.Op) {
	if op.Share < 0 || op.TTL < 0 || op.TTL > store.MaxTTL || op.Until < 0 {
		refuse(op, store.CodeInvalid, 0)
		return
	}
	if op.Spent {
		p.leaves(op)
		return
	}
	if op.Until != 0 && p.now > int64(op.Until) {
		refuse(op, store.CodeDeadline, 0)
		return
	}
	at := p.findSession(op.ID.Session)
	if (at == 0 || p.sessions.At(at).member == 0) && p.members.Len() >= store.MaxMembers {
		refuse(op, store.CodeFull, 0)
		return
	}
	s := p.sessionOf(op.ID.Session)
	i := s.member
	if i == 0 {
		i = p.members.New()
		s.member = i
		p.members.At(i).session = p.lastSess
	} else {
		p.unlink(i)
	}
	m := p.members.At(i)
	p.hear(i, p.now, cmp.Or(op.TTL.Microseconds(), p.lease, store.DefaultLease.Microseconds()))
	p.promise(m, op.Share)
	op.Result.State, op.Result.Share = store.Granted, m.told
}

// hear notes a report of a member that is in no list.
func (p *Pool) hear(i int32, at, lease int64) {
	m := p.members.At(i)
	back := m.silent
	m.silent, m.touched, m.expires = false, at, at+lease
	p.link(i)
	if back {
		p.weigh(p.now)
	} else {
		p.scheduleWithheld()
	}
}

// HearOf notes a sign of life of a member, which was given by at and knows the share that the member was told last. It does
// nothing if the session is not a member.
func (p *Pool) HearOf(now store.Time, session uint64, at store.Time) {
	s := p.findSession(session)
	if s == 0 || p.sessions.At(s).member == 0 {
		return
	}
	p.now = max(p.now, int64(now))
	if p.nextHush != 0 && p.now >= p.nextHush {
		p.hush()
	}
	i := p.sessions.At(s).member
	if i == 0 {
		return // its lease was over
	}
	p.unlink(i)
	p.hear(i, min(int64(at), p.now), cmp.Or(p.lease, store.DefaultLease.Microseconds()))
	m := p.members.At(i)
	p.promise(m, m.told)
}

// Membership is what a member knows of itself. It has 1/Share of every limit, or nothing if that is 0.
type Membership struct {
	Share            int64
	Settled          bool       // the share is what it shall be, as far as is known
	Touched, Expires store.Time // its latest sign of life, and the end of its lease
}

// Membership returns what a session knows as a member. ok is false if it is none.
func (p *Pool) Membership(session uint64) (m Membership, ok bool) {
	s := p.findSession(session)
	if s == 0 || p.sessions.At(s).member == 0 {
		return m, false
	}
	r := p.members.At(p.sessions.At(s).member)
	return Membership{r.told, r.told != 0 && r.told == r.share, store.Time(r.touched), store.Time(r.expires)}, true
}

// leaves ends a membership at the member's request, and frees its share.
func (p *Pool) leaves(op *store.Op) {
	op.Result.State = store.Ended
	at := p.findSession(op.ID.Session)
	if at == 0 || p.sessions.At(at).member == 0 {
		return
	}
	silent := p.members.At(p.sessions.At(at).member).silent
	p.dropMember(p.sessions.At(at).member)
	if silent {
		p.weigh(p.now)
	} else {
		p.scheduleWithheld()
	}
}

// died ends the membership of a process that is known to be gone. It reports whether the withheld parts change.
//
// A member that is not silent has sent nothing outside the pool, because members grant on their own only after
// silentAfter without contact. So its share is free at once. A silent member may have used its share on its own until it
// died. Its lease ends after mostLinger, when the provider has noticed that it is gone.
func (p *Pool) died(i int32) bool {
	m := p.members.At(i)
	if !m.silent {
		p.dropMember(i)
		return false
	}
	m.expires = min(m.expires, p.now+mostLinger)
	return true
}

// promise sets the share that a member is told. known is the share that the member says it has.
//
// The shares that members may believe they have never add up to more than the whole. So a share that shrinks counts in
// full until the member confirms the new one, and a share that grows takes only what is free.
//
// Members that report get equal shares of what silent members leave. It is divided by one more than their number, so
// that a new member always finds a share, also after others were killed.
func (p *Pool) promise(m *member, known int64) {
	if known != 0 && known == m.told {
		p.setShare(m, known)
	}
	free := (whole - p.hushed) / meter.Parts
	want := int64(0)
	if free > 0 {
		want = (int64(p.heardOf+1)*(whole/meter.Parts) + free - 1) / free
	}
	if room := whole - p.promised + partOf(m.share); room <= 0 {
		want = 0
	} else if want > 0 && partOf(want) > room {
		want = (whole + room - 1) / room
	}
	if want == 0 || want > finest {
		m.told = m.share // it keeps its current share
		return
	}
	m.told = want
	if m.share == 0 || want < m.share {
		p.setShare(m, want)
	}
}

func (p *Pool) setShare(m *member, share int64) {
	p.promised += partOf(share) - partOf(m.share)
	m.share = share
}

// link adds a member that has just reported to the list of those that report, by time.
func (p *Pool) link(i int32) {
	m := p.members.At(i)
	m.prev, m.next = p.lastMember, 0
	for m.prev != 0 && p.members.At(m.prev).touched > m.touched {
		m.prev, m.next = p.members.At(m.prev).prev, m.prev
	}
	if m.prev != 0 {
		p.members.At(m.prev).next = i
	} else {
		p.firstMember = i
	}
	if m.next != 0 {
		p.members.At(m.next).prev = i
	} else {
		p.lastMember = i
	}
	p.heardOf++
}

// unlink removes a member from its list.
func (p *Pool) unlink(i int32) {
	m := p.members.At(i)
	switch {
	case m.prev != 0:
		p.members.At(m.prev).next = m.next
	case m.silent:
		p.firstSilent = m.next
	default:
		p.firstMember = m.next
	}
	if m.next != 0 {
		p.members.At(m.next).prev = m.prev
	} else if !m.silent {
		p.lastMember = m.prev
	}
	if !m.silent {
		p.heardOf--
	}
	m.prev, m.next = 0, 0
}

func (p *Pool) dropMember(i int32) {
	p.unlink(i)
	m := p.members.At(i)
	p.setShare(m, 0)
	p.sessions.At(m.session).member = 0
	p.members.Free(i)
}

// scheduleWithheld sets when the withheld parts may change next.
func (p *Pool) scheduleWithheld() {
	p.nextHush = p.nextFree
	if p.firstMember != 0 {
		if at := p.members.At(p.firstMember).silentFrom(); p.nextHush == 0 || at < p.nextHush {
			p.nextHush = at
		}
	}
}

// hush brings the withheld parts up to now. It applies each change at its own time, even if no step ran then.
func (p *Pool) hush() {
	for p.nextHush != 0 && p.nextHush <= p.now {
		at := p.nextHush
		for p.firstMember != 0 && p.members.At(p.firstMember).silentFrom() <= at {
			i := p.firstMember
			p.unlink(i)
			m := p.members.At(i)
			m.silent, m.next = true, p.firstSilent
			if p.firstSilent != 0 {
				p.members.At(p.firstSilent).prev = i
			}
			p.firstSilent = i
		}
		p.weigh(at)
	}
}

// weigh computes the withheld part of each limit at time at, which is not before any charge. It drops silent members
// whose share has come back on every limit.
func (p *Pool) weigh(at int64) {
	var sums [store.MaxLimits]int64
	p.nextFree, p.hushed = 0, 0
	for i := p.firstSilent; i != 0; {
		m := p.members.At(i)
		next := m.next
		over := p.freeAt(at, m.expires)
		for k := range p.spec.Limits {
			if after := p.lingers(k); after >= 0 && !p.freeAt(at, m.expires+after) {
				over = false
				if m.share > 0 {
					sums[k] += (whole + m.share - 1) / m.share
				}
			}
		}
		if over {
			p.dropMember(i)
		} else {
			p.hushed += partOf(m.share)
		}
		i = next
	}
	for k := range p.spec.Limits {
		part := min((sums[k]+whole/meter.Parts-1)/(whole/meter.Parts), meter.Parts)
		if part != p.parts[k] {
			p.withhold(k, at, part)
		}
	}
	p.scheduleWithheld()
}

// freeAt reports whether a withheld part that comes back at free has done so by at. If not, nextFree is set to free at
// the latest.
func (p *Pool) freeAt(at, free int64) bool {
	free = roundFree(free)
	if at >= free {
		return true
	}
	if p.nextFree == 0 || free < p.nextFree {
		p.nextFree = free
	}
	return false
}

// withhold sets the withheld part of a limit from time at on. It changes the rate at which buckets drain, so they are
// advanced to at first.
func (p *Pool) withhold(limit int, at, part int64) {
	d := &p.defs[limit]
	if d.Kind != meter.Bucket {
		p.setPart(limit, part)
		return
	}
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit {
			in.Advance(p.defOf(in), p.ring(in), at)
		}
	}
	p.setPart(limit, part)
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit {
			in.Rerate(p.defOf(in))
		}
	}
}

func (p *Pool) setPart(limit int, part int64) {
	p.parts[limit], p.defs[limit].Part = part, part
	p.partsRev++
	p.knownParts = p.partsRev
	p.stirred = true
}

// takeParts copies the withheld parts, which other processes may have changed, into defs.
func (p *Pool) takeParts() {
	for i := range p.parts {
		p.defs[i].Part = p.parts[i]
	}
	p.knownParts = p.partsRev
}

// respan is called after limits have changed: then the withheld parts can differ.
func (p *Pool) respan() {
	for i := range p.spec.Limits {
		p.setSpan(i)
	}
	if p.members.Len() > 0 {
		p.nextHush = p.now
	}
}
