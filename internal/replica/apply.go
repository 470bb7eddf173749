package replica

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Apply carries out the next entry of the log, after what time has brought before it. All replicas do the same.
func (r *Replica) Apply(e sharedlog.Entry) (done Applied) {
	if r.broken != nil {
		return Applied{Err: r.broken}
	}
	defer func() {
		if v := recover(); v != nil {
			r.broken = fmt.Errorf("%w: %v", ErrPoisoned, v)
			done = Applied{Err: r.broken, Process: r.writerOf(e.Body)}
		}
	}()
	r.errs, r.decided = r.errs[:0], r.decided[:0]
	done = r.apply(e)
	done.Errs, done.Decided = r.errs, r.decided
	r.conclude(e.At.Offset, &done)
	return done
}

func (r *Replica) apply(e sharedlog.Entry) (done Applied) {
	in := reader{b: e.Body}
	h := in.head()
	if in.bad {
		done.Err = ErrUndecodable
	}
	p, machine, reading := r.sender(&h, &done)
	before, stamp := r.Now(), r.clock.stamp
	now := r.clock.advance(e.Stamp, machine, reading, r.others(p))
	if made := now.Sub(before) - time.Duration(max(r.clock.stamp-stamp, 0))*time.Microsecond; made > mostMade && before != 0 && r.pool != nil {
		r.pool.Recollect(now)
	}
	r.pass(before, now, p)
	if done.Err != nil {
		return done
	}
	joins := p == nil
	if joins {
		if done.Err = r.mayJoin(&h); done.Err != nil {
			return done
		}
		p = newProcess(&h)
	}
	if !r.decode.requestsOf(&in, p) {
		done.Err = ErrUndecodable
		return done
	}
	if joins {
		r.join(p)
	}
	if h.flags&lives != 0 && p.shares != 0 && r.pool != nil {
		r.pool.HearOf(now, p.id|uint64(p.shares), p.madeBy(reading))
	}
	p.seq, p.reading, p.heard = h.seq, reading, now
	if h.flags&checks != 0 {
		c := r.slot(h.check.at)
		done.Diverged = c.at == h.check.at && c.hash != h.check.hash && c.hash != 0
	}
	r.carryOut(p)
	done.Ops = r.decode.ops
	return done
}

// writerOf returns the process that made an entry; 0: it is not known.
func (r *Replica) writerOf(body []byte) uint64 {
	in := reader{b: body}
	h := in.head()
	if h.flags&joins != 0 {
		return h.member.process
	}
	if p := r.of(h.number); p != nil && !in.bad {
		return p.id
	}
	return 0
}

// sender finds the member that made an entry, nil if it joins, and the reading of its machine's clock. It sets the error of
// an entry that is not the next of its process.
func (r *Replica) sender(h *head, done *Applied) (p *process, machine uint64, reading int64) {
	if done.Err != nil {
		return nil, 0, 0
	}
	done.Sequence = h.seq
	if h.flags&joins != 0 {
		done.Process = h.member.process
		if done.Err = r.mayJoin(h); done.Err != nil {
			return nil, 0, 0
		}
		return nil, h.member.machine, h.reading
	}
	p = r.of(h.number)
	if p == nil {
		done.Err = ErrNotMember
		return nil, 0, 0
	}
	done.Process = p.id
	if h.seq != p.seq+1 {
		done.Err = ErrDuplicate
		return nil, 0, 0
	}
	if reading = p.reading + h.reading; reading > maxMonotonic {
		done.Err = ErrUndecodable
		return nil, 0, 0
	}
	return p, p.machine, reading
}

// others reports whether there are members besides p.
func (r *Replica) others(p *process) bool {
	n := len(r.processes)
	return n > 1 || n == 1 && r.processes[0] != p
}

// carryOut carries out the decoded requests of a process.
func (r *Replica) carryOut(p *process) {
	d := &r.decode
	for i := range d.requests {
		q := &d.requests[i]
		switch q.kind {
		case Open:
			r.outcome(r.open(p, q.session, q.spec))
		case Close:
			r.outcome(r.close(p, q.session))
		case Leave:
			r.outcome(r.leave(p))
		case Forget:
			r.forget()
			r.outcome(nil)
		case Ops:
			r.operate(p, d.ops[q.from:q.to])
		}
	}
	if len(d.requests) == 0 && r.pool != nil {
		r.step(r.Now(), nil)
	}
}

func (r *Replica) outcome(err error) {
	if err != nil {
		r.chain(1) // not its text, which another release may word otherwise
	}
	r.errs = append(r.errs, err)
}

// operate carries out operations of a process in one step.
func (r *Replica) operate(p *process, ops []store.Op) {
	if r.pool == nil { // its sessions could not be opened
		return
	}
	r.step(r.Now(), ops)
	var s *session
	for i := range ops {
		id := ops[i].Result.ID
		if ProcessOf(id.Session) != p.id {
			continue
		}
		if ops[i].Kind == store.OpTouch && ops[i].Result.State == store.Granted {
			p.shares = uint32(id.Session & MaxSession)
		}
		if ops[i].Kind != store.OpAcquire {
			continue
		}
		number := uint32(id.Session & MaxSession)
		if s == nil || s.number != number {
			if s = p.byNumber[number]; s == nil {
				continue
			}
		}
		s.base = id.N
	}
}

// step steps the pool, and notes the requests that were decided without being asked about.
func (r *Replica) step(at store.Time, ops []store.Op) {
	r.pool.Apply(at, ops)
	if decided := r.pool.Decided(); len(decided) > 0 {
		r.decided = append(r.decided, decided...)
	}
}

// pass lets happen what time alone brings between two entries, each at its own moment. but is the process that made the
// second, and so is alive.
func (r *Replica) pass(before, now store.Time, but *process) {
	if now-before > mostSilence {
		r.awake = now
	}
	for range mostSteps {
		wake, _ := r.Wake()
		if now >= r.goneDue {
			p, at, due := r.firstGone(but, now)
			if p != nil && at <= now && (wake == 0 || at <= wake) {
				r.declareGone(p, max(at, now-mostBack))
				continue
			}
			r.goneDue = due
		}
		if wake == 0 || wake >= now {
			return
		}
		r.step(max(wake, now-mostBack), nil)
	}
}

// conclude notes the hash at the position after an entry.
func (r *Replica) conclude(offset int64, done *Applied) {
	r.chain(uint64(r.clock.now))
	if done.Err != nil {
		r.chain(done.Process + 1)
	}
	r.latest = check{uint32(offset & checkMask), uint32(r.Hash()&checkMask | 1<<checkBits)}
	*r.slot(r.latest.at) = r.latest
}

func (r *Replica) slot(at uint32) *check { return &r.checks[at*2654435761>>22] }

// Skip passes over the next entry of the log, at which Apply broke the replica that this one was restored instead of. Only
// the position and the time move.
func (r *Replica) Skip(e sharedlog.Entry) {
	r.errs, r.decided = r.errs[:0], r.decided[:0]
	r.clock.advance(e.Stamp, 0, 0, r.others(nil))
	r.conclude(e.At.Offset, &Applied{Err: ErrPoisoned})
}
