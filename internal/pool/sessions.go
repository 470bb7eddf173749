package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// session remembers how far the ids of one caller of the pool have come, so that a
// ticket that has ended is known as such without being kept.
type session struct {
	id, high uint64
	last     int64
	kept     int64 // when those of its tickets that wait die if nothing is heard of them
	open     int32 // tickets that have not ended
	waiting  int32 // of them
	watched  int32 // of them: tied, and bounded only when the session is said to be gone
	member   int32 // its record, if it keeps in touch
	_        int32 // a free record's link
}

// sessionMemory is how long a session that is not used is remembered.
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

// keep lets all tickets of a session that wait outlive this: they are not touched, and found alive when
// their time comes.
func (p *Pool) keep(op *store.Op) {
	op.Result.State = store.Unknown
	if i := p.findSession(op.ID.Session); i != 0 && op.Alive <= store.MaxTTL {
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
	// mostSilence is how long nobody may say anything before that proves nothing about anybody: the store may not have
	// been reachable. It is less than what a session has left when it misses a beat.
	mostSilence = 6_000_000
)

// heardSomething notes that the pool can be reached. When that was not so for a while, all sessions have their time anew.
func (p *Pool) heardSomething() {
	if p.now-p.contact > mostSilence {
		p.awake = p.now
	}
	p.contact = p.now
}

// aliveUntil returns until when the session of a ticket counts as alive, as far as is known now.
func (p *Pool) aliveUntil(tk *ticket) int64 {
	until := max(p.sessions.At(tk.session).kept, p.awake+sessionLife)
	if p.now-p.contact > mostSilence {
		until = max(until, p.now+mostSilence)
	}
	return until
}

// gone bounds the tied tickets of sessions whose process is known to be gone, and ends their membership. With a number, these
// are so many sessions in a row: those that the ids of one process can have.
func (p *Pool) gone(op *store.Op) {
	op.Result.State = store.Ended
	from := op.ID.Session
	to := from + max(op.ID.N, 1)
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state != stateHeld || tk.lost || tk.tie == uint8(store.TieNone) {
			continue
		}
		if id := p.sessions.At(tk.session).id; id >= from && id < to {
			p.orphan(i, tk, true)
		}
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

// Places of a session that is gone come back when its provider has had the time to notice: the usual time to an answer,
// within these bounds.
const (
	leastLinger = 1_000_000
	mostLinger  = 3_000_000
)

// orphan bounds a ticket whose session is gone. Proven tells that its process is, and not only silent: then not even a charge
// that insists on an answer has to wait for the end of the ticket's time to live, because nothing more can be sent.
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

// dropLost gives back the places of a ticket that was lost. Charges that insist on an answer stay.
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

// EachWatched calls f for every session that has tickets which are bounded only when it is said to be gone, until f reports false.
func (p *Pool) EachWatched(f func(session uint64) bool) {
	for i := int32(1); i < p.sessions.End(); i++ {
		if s := p.sessions.At(i); s.watched > 0 && !f(s.id) {
			return
		}
	}
}

// past reports that a session counts as forgotten, whether or not anybody has come by to do so.
func (p *Pool) past(s *session) bool {
	return s.open == 0 && s.member == 0 && p.now-s.last >= sessionMemory
}

// sweepSessions forgets sessions that have not been used for long and have no tickets. An id that comes
// back after that is taken for a new one, so the memory outlasts any resend.
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
	if s.last == 0 || !p.past(s) { // or it is free
		return
	}
	p.forgotten = max(p.forgotten, s.high) // no number that was given out comes again
	p.sessIx.Remove(sessionHash(s.id), p.sweepSess)
	p.sessions.Free(p.sweepSess)
	p.lastSess = 0
}
