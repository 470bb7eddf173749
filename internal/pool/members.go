package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// member is a process that keeps in touch. When it is silent it may be cut off, and then lets
// requests go on its own, up to its share of every limit. So its share is withheld from the others
// until its lease is over and what it may have sent has come back.
type member struct {
	session    int32 // record
	silent     bool
	touched    int64
	expires    int64
	share      int64 // the largest that it may believe to have: one part in so many; 0: none
	told       int64 // what it was told last
	prev, next int32 // among those that are heard of, by time, or those that are silent
}

const (
	silentAfter = 3_000_000 // a member that was not heard of for so long is silent
	// Moments at which what is withheld changes are rounded, to the safe side, so that a fleet that
	// goes down at once makes a few of them.
	hushStep = 250_000
	freeStep = 1_000_000
	// shareWithin is the longest window of which members have shares. On longer ones a lease is
	// over before anything has come back: a member that is cut off has nothing to use there, and one
	// that was killed must not take its share of a day with it.
	shareWithin = 600_000_000
	// whole is all of a limit, in the unit that promises are added up in: so many that with
	// the most members the sum is off by less than one of the largest limit, and exact.
	whole = 1 << 52
	// finest is the smallest share, one part in so many.
	finest = 1 << 20
)

// silentFrom returns when a member is silent if it is not heard of before.
func (m *member) silentFrom() int64 { return (m.touched + silentAfter) / hushStep * hushStep }

// roundFree rounds the moment up at which something is no longer withheld.
func roundFree(t int64) int64 { return (t + freeStep - 1) / freeStep * freeStep }

// partOf is a share as a part of the whole.
func partOf(share int64) int64 {
	if share == 0 {
		return 0
	}
	return whole / share
}

// setSpan works out how long a charge stands on a limit at the most: a bucket that is full needs
// as many windows as its burst is times its size.
func (p *Pool) setSpan(limit int) {
	d, l := &p.defs[limit], &p.spec.Limits[limit]
	p.span[limit] = d.Window
	if d.Kind == meter.Bucket && l.Size > 0 && l.Burst > l.Size {
		p.span[limit] = min((l.Burst+l.Size-1)/l.Size, meter.MaxAmount/d.Window+1) * d.Window
	}
}

// lingers returns how long after its lease what a member may have sent can stand on a limit, -1 if
// members have no share of it. A place is free by then: who is cut off takes none for longer.
func (p *Pool) lingers(limit int) int64 {
	switch {
	case p.shared&(1<<limit) == 0 || p.span[limit] > shareWithin:
		return -1
	case p.defs[limit].Kind == meter.Concurrency:
		return 0
	}
	return p.span[limit] + p.defs[limit].Most
}

// touched notes that a session is a member and alive, and tells it its share.
func (p *Pool) touched(op *store.Op) {
	if op.Share < 0 || op.TTL < 0 || op.TTL > store.MaxTTL || op.Until < 0 {
		refuse(op, store.CodeInvalid, -1, 0)
		return
	}
	if op.Spent {
		p.leaves(op)
		return
	}
	if op.Until != 0 && p.now > int64(op.Until) {
		refuse(op, store.CodeDeadline, -1, 0)
		return
	}
	at := p.findSession(op.ID.Session)
	if (at == 0 || p.sessions.At(at).member == 0) && p.members.Len() >= store.MaxMembers {
		refuse(op, store.CodeFull, -1, 0)
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
	back := m.silent
	m.silent, m.touched = false, p.now
	m.expires = p.now + op.TTL.Microseconds()
	if op.TTL == 0 {
		m.expires = p.now + p.lease
		if p.lease == 0 {
			m.expires = p.now + store.DefaultLease.Microseconds()
		}
	}
	p.link(i)
	if back {
		p.weigh(p.now)
	} else {
		p.scheduleWithheld()
	}
	p.promise(m, op.Share)
	op.Result.State, op.Result.Share = store.Granted, m.told
}

// leaves gives a member's share back.
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

// died ends the membership of a process that is known to be gone. It reports whether what is withheld changes.
//
// A member that is not silent has nothing outside the pool: nobody lets requests go alone before silentAfter has passed since
// the pool heard of it. So its share is free at once. One that is silent may have used its share alone until it
// died. What it sent stands as after a lease that ends now, once the provider has noticed.
func (p *Pool) died(i int32) bool {
	m := p.members.At(i)
	if !m.silent {
		p.dropMember(i)
		return false
	}
	m.expires = min(m.expires, p.now+mostLinger)
	return true
}

// promise tells a member its share. Whatever any member may believe at any time, all that they
// believe together is never more than the whole: so a share that shrinks is counted as what it was
// until the member has said that it knows, and one that grows takes only what is free. Shares
// are equal among those that are heard of, of what the silent leave, and one more than there
// are members: so there is always something for those who come, also after others were killed.
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
		m.told = m.share // what it has it keeps
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

// link puts a member that was heard of just now behind all others.
func (p *Pool) link(i int32) {
	m := p.members.At(i)
	m.prev, m.next = p.lastMember, 0
	if p.lastMember != 0 {
		p.members.At(p.lastMember).next = i
	} else {
		p.firstMember = i
	}
	p.lastMember = i
	p.heardOf++
}

// unlink takes a member out of the list that it is in.
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

// scheduleWithheld works out when what is withheld may change next.
func (p *Pool) scheduleWithheld() {
	p.nextHush = p.nextFree
	if p.firstMember != 0 {
		if at := p.members.At(p.firstMember).silentFrom(); p.nextHush == 0 || at < p.nextHush {
			p.nextHush = at
		}
	}
}

// hush brings what is withheld to now, each change at its own time though nobody may have looked
// since.
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

// weigh adds up what is withheld of each limit at a moment, which is not before anything was
// charged. Members that have no share of anything any more are forgotten.
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

// freeAt reports whether a moment is past one at which something is free again, and else notes that
// as the next.
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

// withhold sets what is withheld of a limit from a moment on. Buckets drain slower or faster from then
// on: those that are not empty are brought there first.
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

// takeParts takes in what other processes have found to be withheld.
func (p *Pool) takeParts() {
	for i := range p.parts {
		p.defs[i].Part = p.parts[i]
	}
	p.knownParts = p.partsRev
}

// respan is called when limits have changed: others may be withheld now, or for longer.
func (p *Pool) respan() {
	for i := range p.spec.Limits {
		p.setSpan(i)
	}
	if p.members.Len() > 0 {
		p.nextHush = p.now
	}
}
