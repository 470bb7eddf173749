package outage

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// Restate lists what this process holds and what waits, for a store that has lost data: tickets in the order of their
// numbers, and that the process is a member. Its share is unknown until [Process.Restated] has the results.
func (p *Process) Restate(now store.Time) (ops []store.Op) {
	agents := map[uint64]agent{}
	for id, tk := range p.granted.open {
		if tk.due <= now {
			continue
		}
		ops = append(ops, p.forced(tk, now))
		agents[id.Session] = agent{tk.agent, tk.class}
	}
	for id, w := range p.stored {
		ops = append(ops, p.waitAgain(w.tk, w.deadline, now))
		agents[id.Session] = agent{w.tk.agent, w.tk.class}
	}
	slices.SortFunc(ops, byID)
	for _, s := range p.sessions {
		if s.agent.name != "" {
			agents[s.ID] = s.agent
		}
	}
	if p.highest > 0 && p.lost == nil { // in an outage, Return moves sessions past higher numbers
		for session, a := range agents {
			ops = append(ops, a.pass(store.ID{Session: session, N: p.highest + 1})...)
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
			p.Touched(op)
		case store.OpAcquire:
			if p.stored[op.ID] != nil && op.Result.State != store.Waiting {
				over = append(over, op.ID)
			}
		}
	}
	return over
}
