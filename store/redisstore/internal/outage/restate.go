package outage

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Restate lists what this process holds and what waits, for a store that has lost data: tickets in the order of their
// numbers, and that the process is a member. Its share is unknown until [Process.Restated] has the results.
func (p *Process) Restate(now store.Time) (ops []store.Op) {
	users := map[uint64]who{}
	for id, tk := range p.granted.open {
		if tk.due <= now {
			continue
		}
		ops = append(ops, tk.forced(now))
		users[id.Session] = who{tk.agent, tk.class}
	}
	for id, w := range p.queue {
		op := w.tk.again()
		op.Wait, op.Alive, op.Spent = -1, WaitersLive, w.tk.once
		if w.deadline != 0 {
			op.Wait = max(w.deadline.Sub(now), time.Microsecond)
		}
		ops = append(ops, op)
		users[id.Session] = who{w.tk.agent, w.tk.class}
	}
	slices.SortFunc(ops, byID)
	for _, s := range p.sessions {
		if s.user.agent != "" {
			users[s.ID] = s.user
		}
	}
	if p.highest > 0 && p.lost == nil { // in an outage, Return moves sessions past higher numbers
		for session, u := range users {
			ops = append(ops, u.pass(store.ID{Session: session, N: p.highest + 1})...)
		}
		p.highest++
	}
	for id, tk := range p.granted.open {
		if tk.answered != 0 && tk.due > now {
			ops = append(ops, store.Op{Kind: store.OpAnswer, ID: id})
		}
	}
	p.member.share, p.member.heard = 0, 0
	if p.lost == nil {
		if op, member := p.Touch(now); member {
			ops = append(ops, op)
		}
	}
	return ops
}

// Restated records the results. It returns the tickets that no longer wait.
func (p *Process) Restated(ops []store.Op) (over []store.ID) {
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case store.OpTouch:
			p.Touched(&op.Result)
		case store.OpAcquire:
			if p.queue[op.ID] != nil && op.Result.State != store.Waiting {
				over = append(over, op.ID)
			}
		}
	}
	return over
}
