package replica

import (
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// maxSessions bounds the open sessions of one process.
const maxSessions = 1 << 16

// session is an open session of a process.
type session struct {
	number uint32
	base   uint64     // the number of its latest ticket: entries count from it
	states *statement // the limits that it states; nil if it states none, or no longer
}

// statement is what sessions state of limits. The least size that one of them states holds.
type statement struct {
	code string     // encoded
	spec store.Spec // only its name, member and limits
}

// sizesOf returns what a spec states.
func sizesOf(spec *store.Spec) *statement {
	sizes := store.Spec{Name: spec.Name, Member: spec.Member, Limits: slices.Clone(spec.Limits)}
	return &statement{code: string(oplog.AppendSpec(nil, &sizes)), spec: sizes}
}

// living returns what all open sessions state, and with more what another session of p does.
func (r *Replica) living(p *process, more *store.Spec) (specs []store.Spec) {
	for _, q := range r.processes {
		if q != p || more == nil || !more.Restate {
			var last *statement // most sessions of a process state the same
			for _, s := range q.sessions {
				if s.states != nil && s.states != last {
					last = s.states
					specs = append(specs, last.spec)
				}
			}
		}
		if q == p && more != nil {
			specs = append(specs, *more)
		}
	}
	return specs
}

// isAlone reports whether a session that p opens may replace the limits of the pool: no session of another process is open
// or has tickets, and none of the process itself unless it restates.
func (r *Replica) isAlone(p *process, restates bool) bool {
	if len(p.sessions) > 0 && !restates {
		return false
	}
	for _, q := range r.processes {
		if q == p {
			continue
		}
		if slices.ContainsFunc(q.sessions, func(s *session) bool { return s.states != nil }) {
			return false
		}
	}
	return !r.pool.Used(r.Now(), func(session uint64) bool { return ProcessOf(session) != p.id })
}

// open opens a session. An open one of that number is closed before, but for its tickets.
func (r *Replica) open(p *process, number uint32, spec *store.Spec) (err error) {
	now := r.Now()
	s := p.byNumber[number]
	if s == nil && len(p.sessions) >= maxSessions {
		return fmt.Errorf("the process has %d sessions open: at most %d", len(p.sessions), maxSessions)
	}
	if s != nil {
		before := s.states
		s.states = nil
		defer func() {
			if err != nil {
				s.states = before
			}
		}()
	}
	if r.pool == nil {
		made, err := pool.New(clone(spec), now)
		if err != nil {
			return err
		}
		if err := made.SetRules(r.rules); err != nil {
			return err
		}
		made.HashDecisions()
		r.pool = made
		r.step(now, nil)
		if r.forgot != 0 && now-r.forgot < forgetWithin {
			r.forget()
		}
		r.forgot = 0
	} else {
		r.step(now, nil) // what time has brought comes under the limits that there were
		if !spec.ReadOnly {
			alone := r.isAlone(p, spec.Restate)
			if err := r.pool.Reform(clone(spec), alone); err != nil {
				return err
			}
			stated := sizesOf(spec).spec
			stated.Restate = spec.Restate
			if err := r.pool.Settle(r.living(p, &stated)); err != nil {
				return err
			}
		}
	}
	if spec.Restate && !spec.ReadOnly {
		for _, other := range p.sessions {
			other.states = nil
		}
	}
	if s != nil {
		p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == s })
	} else {
		s = &session{number: number}
		p.byNumber[number] = s
	}
	if !spec.ReadOnly {
		s.states = r.intern(sizesOf(spec))
	}
	p.sessions = append(p.sessions, s)
	r.step(now, nil) // new limits may admit or refuse waiting requests
	return nil
}

// forgetWithin is how long a loss matters to a pool that is opened after it: as long as any window that counts as spent then.
const forgetWithin = store.Time(600_000_000)

// forget has the pool count windows as spent of which nobody knows what was sent in them.
func (r *Replica) forget() {
	if r.pool == nil {
		r.forgot = r.Now()
		return
	}
	r.step(r.Now(), []store.Op{{Kind: store.OpForget}})
}

// intern returns an equal statement of another session, so that equal ones are kept once.
func (r *Replica) intern(s *statement) *statement {
	for _, p := range r.processes {
		if n := len(p.sessions); n > 0 {
			if other := p.sessions[n-1].states; other != nil && other.code == s.code {
				return other
			}
		}
	}
	return s
}

// clone returns a copy of a spec, since a pool may change the one that it is given.
func clone(spec *store.Spec) store.Spec {
	c := *spec
	c.Limits, c.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
	return c
}

// close closes a session.
func (r *Replica) close(p *process, number uint32) error {
	s := p.byNumber[number]
	if s == nil || r.pool == nil {
		return nil
	}
	now := r.Now()
	r.step(now, nil)
	if p.shares == number {
		p.shares = 0
	}
	delete(p.byNumber, number)
	p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == s })
	var err error
	if s.states != nil { // it may be the one that made a limit small
		err = r.pool.Settle(r.living(nil, nil))
	}
	r.end(p.id | uint64(number))
	return err
}

// end cancels the waiting requests of a session, and its membership.
func (r *Replica) end(session uint64) {
	ops := r.cancels(nil, session)
	if r.pool.IsMember(session) {
		ops = append(ops, store.Op{Kind: store.OpTouch, ID: store.ID{Session: session}, Spent: true})
	}
	if len(ops) > 0 || r.pool.Stirred() {
		r.step(r.Now(), ops)
	}
}

func (r *Replica) cancels(ops []store.Op, session uint64) []store.Op {
	for _, id := range r.pool.WaitingOf(session) {
		ops = append(ops, store.Op{Kind: store.OpCancel, ID: id})
	}
	return ops
}

// leave ends a process at its own request.
func (r *Replica) leave(p *process) error {
	for len(p.sessions) > 0 {
		if err := r.close(p, p.sessions[0].number); err != nil {
			return err
		}
	}
	if r.pool != nil {
		r.end(p.id)
	}
	r.drop(p)
	return nil
}

// settle gives limits the sizes that the open sessions state.
func (r *Replica) settle(at store.Time) {
	if err := r.pool.Settle(r.living(nil, nil)); err != nil {
		r.chain(1) // they stay as they are, in all replicas
	}
	if r.pool.Stirred() {
		r.step(at, nil)
	}
}
