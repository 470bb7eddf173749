package outage

import (
	"time"

	"github.com/sluicehq/sluice/internal/limitmap"
	"github.com/sluicehq/sluice/store"
)

// ticket is one that was granted, or waits.
type ticket struct {
	id                            store.ID
	agent, user, model, tool, key string
	class                         uint8
	tie                           store.Tie
	retry, emergency, once        bool                   // once: it is spent with its grant
	amounts                       [store.MaxLimits]int64 // by the pool's limits
	ttl                           time.Duration
	since, granted, answered, due store.Time // since: it was asked for
	number                        int        // on the island; -1: it is not there
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

// again returns the acquire that says a ticket once more.
func (tk *ticket) again() store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: tk.id, Agent: tk.agent, User: tk.user, Model: tk.model, Tool: tk.tool, Key: tk.key,
		Class: tk.class, Tie: tk.tie, Retry: tk.retry, Emergency: tk.emergency, Amounts: tk.amounts, TTL: tk.ttl,
	}
}

// forced is again for a ticket that is held, with the time that it has left.
func (tk *ticket) forced(now store.Time) store.Op {
	op := tk.again()
	op.Force, op.TTL = true, min(max(tk.due.Sub(now), time.Millisecond), store.MaxTTL)
	return op
}

// rank orders the line of callers that wait here.
func (tk *ticket) rank() int {
	if tk.emergency {
		return -1
	}
	return int(tk.class)
}
