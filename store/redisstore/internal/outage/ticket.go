package outage

import (
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
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

func newTicket(op *store.Op, places limitmap.Map) *ticket {
	tk := &ticket{
		id: op.Result.ID, agent: op.Agent, user: op.User, model: op.Model, tool: op.Tool, key: op.Key,
		class: op.Class, tie: op.Tie, retry: op.Retry, emergency: op.Emergency, amounts: op.Amounts, ttl: op.TTL,
		once: op.Spent, since: op.Result.Now,
	}
	if places != nil {
		there := store.Op{Kind: op.Kind, Amounts: op.Amounts}
		places.Op(&there)
		tk.amounts = there.Amounts
	}
	return tk
}

// again returns the acquire that asks for a ticket again.
func (tk *ticket) again() store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: tk.id, Agent: tk.agent, User: tk.user, Model: tk.model, Tool: tk.tool, Key: tk.key,
		Class: tk.class, Tie: tk.tie, Retry: tk.retry, Emergency: tk.emergency, Amounts: tk.amounts, TTL: tk.ttl,
	}
}

// forced is again for an open ticket, by force and with the time that it has left.
func (tk *ticket) forced(now store.Time) store.Op {
	op := tk.again()
	op.Force, op.TTL = true, min(max(tk.due.Sub(now), time.Millisecond), store.MaxTTL)
	return op
}

// waitAgain is again for a ticket that waits until a deadline; 0: none.
func (tk *ticket) waitAgain(deadline, now store.Time) store.Op {
	op := tk.again()
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
