package pool

import (
	"github.com/sluicehq/sluice/internal/flat"
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
