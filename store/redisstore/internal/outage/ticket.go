package outage

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// ticket is a ticket that was granted, or waits.
type ticket struct {
	id                            store.ID
	agent, user, model, tool, key string
	class                         uint8
	tie                           store.Tie
	retry, emergency, once        bool                   // once: spent with its grant
	amounts                       [store.MaxLimits]int64 // in the order of the pool's limits
	ttl                           time.Duration
	since, granted, answered, due store.Time // since: when it was asked for
	number                        int        // in the [policy.Island]; -1: not in it
}

func (p *Process) newTicket(op *store.Op) *ticket {
	tk := &ticket{
		id: op.Result.ID, agent: op.Agent, user: op.User, model: op.Model, tool: op.Tool, key: op.Key,
		class: op.Class, tie: op.Tie, retry: op.Retry, emergency: op.Emergency, ttl: op.TTL,
		once: op.Spent, since: op.Result.Now,
	}
	for i := range p.spec.Limits {
		tk.amounts[i], _ = store.AmountOf(op.Amounts, &p.spec.Limits[i])
	}
	return tk
}

// again returns the acquire that asks for a ticket again.
func (p *Process) again(tk *ticket) store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: tk.id, Agent: tk.agent, User: tk.user, Model: tk.model, Tool: tk.tool, Key: tk.key,
		Class: tk.class, Tie: tk.tie, Retry: tk.retry, Emergency: tk.emergency, Amounts: p.named(&tk.amounts), TTL: tk.ttl,
	}
}

// named returns amounts by the names of limits.
func (p *Process) named(amounts *[store.MaxLimits]int64) (list []store.Amount) {
	for i := range p.spec.Limits {
		if l := &p.spec.Limits[i]; amounts[i] != 0 {
			list = append(list, store.Amount{Unit: l.Unit, Limit: l.Name, N: amounts[i]})
		}
	}
	return list
}

// forced is again for an open ticket, by force and with the time that it has left.
func (p *Process) forced(tk *ticket, now store.Time) store.Op {
	op := p.again(tk)
	op.Force, op.TTL = true, min(max(tk.due.Sub(now), time.Millisecond), store.MaxTTL)
	return op
}

// waitAgain is again for a ticket that waits until a deadline; 0: none.
func (p *Process) waitAgain(tk *ticket, deadline, now store.Time) store.Op {
	op := p.again(tk)
	op.Wait, op.Alive, op.Spent = -1, WaitersLive, tk.once
	if deadline != 0 {
		op.Wait = max(deadline.Sub(now), time.Microsecond)
	}
	return op
}

// rank orders the queue: emergencies first, then by class.
func (tk *ticket) rank() int {
	if tk.emergency {
		return -1
	}
	return int(tk.class)
}
