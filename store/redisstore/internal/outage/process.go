package outage

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Process is what one process knows of one pool. It is not safe for concurrent use.
type Process struct {
	number   uint64 // of the process, part of its session ids
	spec     store.Spec
	limits   [store.MaxLimits]limit
	sessions map[uint64]*Session
	granted  granted
	stored   map[store.ID]*storeWaiter // tickets that wait in the store
	member   membership
	arrivals int64   // counts tickets that began to wait
	highest  uint64  // ticket number seen
	spans    []span  // of ticket numbers given out without the store
	lost     *outage // nil while the store is in reach
}

// Session is one session of the process on the pool.
type Session struct {
	ID      uint64
	Spec    store.Spec
	Member  bool  // the session makes its process a member, with a share
	agent   agent // of the last acquire
	touched bool  // the session itself is a member
}

// agent is the agent in whose name a session's own operations go out.
type agent struct {
	name  string
	class uint8
}

// New returns a process that knows nothing yet. Its number distinguishes its sessions from those of other processes.
func New(number uint64) *Process {
	return &Process{number: number, sessions: map[uint64]*Session{}, stored: map[store.ID]*storeWaiter{}, granted: newGranted()}
}

// Of returns the process that a session belongs to.
func Of(session uint64) uint64 { return session >> 16 }

// memberID returns the session of the process as a member. Sessions of callers begin at 1.
func (p *Process) memberID() store.ID { return store.ID{Session: p.number << 16} }

// Spec returns the spec of the pool, for reading.
func (p *Process) Spec() *store.Spec { return &p.spec }

// Learn records the spec of the pool. Records kept by limit move with their limits.
func (p *Process) Learn(spec store.Spec) {
	to := make([]int, len(p.spec.Limits))
	moved := false
	for i := range p.spec.Limits {
		l := &p.spec.Limits[i]
		same := func(n store.Limit) bool {
			return n.Name == l.Name && n.Kind == l.Kind && n.Window == l.Window && n.Per == l.Per
		}
		if to[i] = i; i >= len(spec.Limits) || !same(spec.Limits[i]) {
			to[i] = slices.IndexFunc(spec.Limits, same)
			moved = true
		}
	}
	p.spec, p.limits = spec, compile(spec.Limits)
	if !moved {
		return
	}
	p.each(func(tk *ticket) {
		was := tk.amounts
		tk.amounts = [store.MaxLimits]int64{}
		for i, at := range to {
			if at >= 0 {
				tk.amounts[at] = was[i]
			}
		}
	})
	p.granted.remap(to)
}

// each calls f for every ticket.
func (p *Process) each(f func(*ticket)) {
	for _, tk := range p.granted.open {
		f(tk)
	}
	for _, w := range p.stored {
		f(w.tk)
	}
	if p.lost != nil {
		for _, tk := range p.lost.held {
			f(tk)
		}
		for _, w := range p.lost.queue {
			if !w.stored {
				f(w.tk)
			}
		}
	}
}

// Join adds a session.
func (p *Process) Join(s *Session) {
	p.sessions[s.ID] = s
	if s.Member {
		p.member.sessions++
	}
}

// Leave removes a session. It returns the operations to send: cancels of waiting tickets, and with the last session of
// the member that the member leaves.
func (p *Process) Leave(s *Session) (ops []store.Op) {
	delete(p.sessions, s.ID)
	for id := range p.stored {
		if id.Session == s.ID {
			ops = append(ops, store.Op{Kind: store.OpCancel, ID: id})
			if p.unstore(id); p.lost != nil {
				p.withdraw(id)
			}
		}
	}
	if p.lost != nil {
		p.lost.queue = slices.DeleteFunc(p.lost.queue, func(w *localWaiter) bool { return w.tk.id.Session == s.ID })
		for id, m := range p.lost.early {
			if id.Session == s.ID && !m.collected {
				p.takeBack(m)
				p.withdraw(id)
			}
		}
	}
	if s.touched {
		ops = append(ops, store.Op{Kind: store.OpTouch, ID: store.ID{Session: s.ID}, Spent: true})
	}
	if s.Member {
		if p.member.sessions--; p.member.sessions == 0 {
			p.member = membership{}
			ops = append(ops, store.Op{Kind: store.OpTouch, ID: p.memberID(), Spent: true})
		}
	}
	return ops
}

// Waiting returns the tickets that wait, in the store or here, of sessions that f accepts; nil accepts all.
func (p *Process) Waiting(f func(*Session) bool) (ids []store.ID) {
	add := func(id store.ID) {
		if s := p.sessions[id.Session]; s != nil && (f == nil || f(s)) {
			ids = append(ids, id)
		}
	}
	for id := range p.stored {
		add(id)
	}
	if p.lost != nil {
		for _, w := range p.lost.queue {
			if !w.stored {
				add(w.tk.id)
			}
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// Notes returns how many tickets are recorded as open, and how many as waiting in the store.
func (p *Process) Notes() (open, waiting int) { return len(p.granted.open), len(p.stored) }

func compareIDs(a, b store.ID) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.N, b.N))
}

func byID(a, b store.Op) int { return compareIDs(a.ID, b.ID) }
