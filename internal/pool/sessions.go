package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// session stores the highest ticket number of a session. So a ticket that has ended is recognized without its record.
type session struct {
	id, high uint64
	last     int64 // when it was last used
	kept     int64 // until when its heartbeat keeps its tickets alive
	open     int32 // number of tickets that have not ended
	waiting  int32 // of these, waiting
	watched  int32 // of these, tied with store.TieGone
	member   int32 // its record, if it is a member
	_        int32 // link of a free record
}

// sessionMemory is how long an unused session is remembered, in microseconds.
const sessionMemory = 10 * 60 * 1_000_000

func sessionHash(id uint64) uint32 { return uint32(flat.Mix(id)) }

func (p *Pool) findSession(id uint64) int32 {
	h := sessionHash(id)
	for i, n := p.sessIx.Seek(h, 0); i != 0; i, n = p.sessIx.Seek(h, n) {
		if p.sessions.At(i).id == id {
			return i
		}
	}
	return 0
}

// sessionOf returns the session with an id, and creates it if needed. It sets lastSess to it.
func (p *Pool) sessionOf(id uint64) *session {
	if p.lastSess != 0 {
		if s := p.sessions.At(p.lastSess); s.id == id && !p.past(s) {
			s.last = p.now
			return s
		}
	}
	i := p.findSession(id)
	if i == 0 {
		i = p.sessions.New()
		p.sessions.At(i).id = id
		p.sessIx.Add(sessionHash(id), i)
	}
	s := p.sessions.At(i)
	if p.past(s) {
		p.forgotten = max(p.forgotten, s.high)
		s.high = 0
	}
	p.lastSess, s.last = i, p.now
	return s
}

// keep handles the heartbeat of a session. It changes no ticket: expire sees that the session is alive when a ticket is
// due.
func (p *Pool) keep(op *store.Op) {
	op.Result.State = store.Unknown
	if i := p.findSession(op.ID.Session); i != 0 && !p.past(p.sessions.At(i)) && op.Alive <= store.MaxTTL {
		s := p.sessions.At(i)
		s.kept = max(s.kept, p.now+op.Alive.Microseconds())
		op.Result.State = store.Granted
		if s.open == 0 {
			op.Result.State = store.Ended
		}
	}
}

const (
	sessionLife = int64(store.SessionLife / 1000)
	// mostSilence is the longest time without any operation that proves something about a session. After a longer one
	// the store may have been unreachable, so no session counts as gone. It is less than the time that a session has
	// left when it misses a heartbeat.
	mostSilence = 6_000_000
)

// heardSomething notes an operation: the pool can be reached. After a long silence all sessions get their full time again.
func (p *Pool) heardSomething() {
	if p.now-p.contact > mostSilence {
		p.awake = p.now
	}
	p.contact = p.now
}

// aliveUntil returns until when the session of a ticket counts as alive, by what is known now.
func (p *Pool) aliveUntil(tk *ticket) int64 {
	until := max(p.sessions.At(tk.session).kept, p.awake+sessionLife)
	if p.now-p.contact > mostSilence {
		until = max(until, p.now+mostSilence)
	}
	return until
}

// gone handles the report that a process is gone: it bounds the tied tickets of its sessions and ends their membership.
// op.ID.N is the number of consecutive session ids that the process can have used; 0 means one. A process that is only
// silent may use its share, so it stays a member for as long as its lease lasts.
func (p *Pool) gone(op *store.Op) {
	op.Result.State = store.Ended
	proven := op.Tie != store.TieBeat
	from := op.ID.Session
	to := from + max(op.ID.N, 1)
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state != stateHeld || tk.lost || tk.tie == uint8(store.TieNone) {
			continue
		}
		if id := p.sessions.At(tk.session).id; id >= from && id < to {
			p.orphan(i, tk, proven)
		}
	}
	if !proven {
		return
	}
	weigh := false
	for i := int32(1); i < p.sessions.End(); i++ {
		s := p.sessions.At(i)
		if s.id >= from && s.id < to && s.member != 0 {
			weigh = p.died(s.member) || weigh
		}
	}
	if weigh {
		p.weigh(p.now)
	}
	p.scheduleWithheld()
}

// Concurrency of a session that is gone comes back when the provider has had time to notice: after the usual time to a
// response, within these bounds.
const (
	leastLinger = 1_000_000
	mostLinger  = 3_000_000
)

// orphan bounds the charges of a ticket whose session is gone. proven says that its process has ended and is not only
// silent. Then it can send nothing more, so charges with a strict guard need not wait for the end of the ticket's time to
// live.
func (p *Pool) orphan(t int32, tk *ticket, proven bool) {
	tk.lost = true
	if !tk.answered {
		p.pausesLost(t, tk, false)
	}
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, r := p.touchCharge(c)
		in.Orphan(d, r, p.now, &c.Charge, proven)
		p.changed(c)
	}
	p.stirred = true
	p.schedule(t, tk, min(tk.ends, p.now+min(max(p.header.median, leastLinger), mostLinger)))
}

// dropLost releases the concurrency of a lost ticket and ends it. Charges with a strict guard stay.
func (p *Pool) dropLost(t int32, tk *ticket) {
	held := false
	for k := range tk.n {
		c := &tk.charges[k]
		in, d, _ := p.touchCharge(c)
		in.Release(d, &c.Charge)
		p.changed(c)
		held = held || c.Mode == meter.Held
	}
	p.inFlight--
	if held {
		tk.state = stateSpent
		p.schedule(t, tk, tk.ends)
		return
	}
	p.end(t, tk)
}

// EachWatched calls f for every session that has tickets tied with [store.TieGone], until f returns false.
func (p *Pool) EachWatched(f func(session uint64) bool) {
	for i := int32(1); i < p.sessions.End(); i++ {
		if s := p.sessions.At(i); s.watched > 0 && !f(s.id) {
			return
		}
	}
}

// past reports whether a session counts as forgotten, even if no sweep has dropped its record yet.
func (p *Pool) past(s *session) bool {
	return s.open == 0 && s.member == 0 && p.now-s.last >= sessionMemory
}

// sweepSessions checks n sessions and drops those that have no tickets and were not used for sessionMemory. A ticket id
// that is sent again after that counts as new, so sessionMemory is longer than any resend takes.
func (p *Pool) sweepSessions(n int) {
	for range n {
		if p.sweepSess++; p.sweepSess >= p.sessions.End() {
			p.sweepSess = 0
			return
		}
		p.sweepSession()
	}
}

func (p *Pool) sweepSession() {
	s := p.sessions.At(p.sweepSess)
	if s.last == 0 || !p.past(s) { // last is 0 in a free record
		return
	}
	p.forgotten = max(p.forgotten, s.high) // no ticket number is used twice
	p.sessIx.Remove(sessionHash(s.id), p.sweepSess)
	p.sessions.Free(p.sweepSess)
	p.lastSess = 0
}
