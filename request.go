package sluice

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Request asks for permission to send one request to a provider.
type Request struct {
	Resource string
	// Agent is the name of the agent that asks. Agents of a class take turns.
	Agent string
	// Class is the agent's priority. Empty means the configured class, otherwise the lowest.
	Class string
	User  string
	// Model is the model, method or other part of the API that the request is for, where the provider limits them
	// separately.
	Model string
	// Priced is the model name that the caller uses, which determines the price. Empty means Model.
	Priced string
	Tool   string
	// Key identifies the API key where limits are per key: a label from [Gate.KeyLabel], never the key itself. Empty
	// means no key.
	Key string
	// Keys lists the labels of several keys that the request may use, in the order to try them. The gate takes the
	// first that is available, and [Ticket.Key] returns it. Keys replaces Key.
	Keys []string
	// Cost is the cost in units other than requests and work, or replaces their defaults. Units that no limit counts
	// are ignored.
	Cost []Amount
	// Unpriced is set if the model's price is unknown, so that the dollars in Cost are a guess. It appears in events.
	Unpriced bool
	// Unpaid is set if this request is free although others to its resource cost money, such as a list of models.
	Unpaid bool
	// Retry is set if an earlier send of the same request failed.
	Retry bool
	// Emergency lets a request of the highest class go first and use what others must leave.
	Emergency bool
	// Spent is set if no response will be reported. The ticket ends with its grant, like [Ticket.CloseUnanswered] in
	// the same step.
	Spent bool
	// Holds says whether the request takes from concurrency limits. The zero value takes from all limits.
	Holds Holds
	// TTL is how long the ticket lives if it is never closed. 0 means the resource's.
	TTL time.Duration
	// Detached lets the ticket outlive this process. Set it if another process gets the ticket's id, because it sends
	// the request or closes the ticket. Otherwise the ticket ends within 15 s of the death of its process, even if its
	// TTL is longer.
	Detached bool
}

// Holds distinguishes a connection that carries many requests from the requests on it.
type Holds uint8

const (
	// HoldsAll takes from every limit. It is for ordinary requests.
	HoldsAll Holds = iota
	// HoldsPlace takes only from concurrency limits. It is for an open connection.
	HoldsPlace
	// HoldsNoPlace takes from all but concurrency limits. It is for a request over a connection that has its own
	// ticket.
	HoldsNoPlace
)

// Amount is an amount of some unit.
type Amount struct {
	Unit string
	N    int64
}

// fill writes the request into a store operation.
func (r *resource) fill(op *store.Op, req *Request) error {
	if req.Agent == "" {
		return r.invalid(req, "the request names no agent")
	}
	if len(req.Agent)+len(req.User)+len(req.Model)+len(req.Tool)+len(req.Key) > store.MaxName {
		if err := r.checkNames(req); err != nil {
			return err
		}
	}
	who := r.settings.agent(req.Agent)
	op.Class = who.class
	if req.Class != "" {
		class, ok := r.settings.classIndex(req.Class)
		if !ok {
			e := invalid("unknown class %.80q", req.Class)
			e.Resource, e.Agent, e.Hint = r.name, req.Agent, r.settings.classesHint()
			return e
		}
		op.Class = class
	}
	if req.Priced != "" {
		r.written.note(req.Model, req.Priced)
	}
	op.Agent, op.User, op.Model, op.Tool, op.Key = req.Agent, req.User, req.Model, req.Tool, r.keyOf(req)
	if op.User == "" {
		op.User = who.user
	}
	op.Retry, op.TTL, op.Emergency, op.Spent = req.Retry, req.TTL, req.Emergency, req.Spent
	op.Tie = r.tie(req)
	if req.Emergency && op.Class != 0 {
		return &Error{
			Err: ErrClass, Resource: r.name, Agent: req.Agent, cause: ErrInvalid, Hint: "leave out the emergency flag, or ask as " + r.settings.classes[0].Name,
			Message: fmt.Sprintf("an emergency is for class %q alone, not for %q", r.settings.classes[0].Name, r.settings.classes[op.Class].Name),
		}
	}
	if op.TTL == 0 {
		op.TTL = r.ttl
	}
	if op.TTL < 0 || op.TTL > store.MaxTTL {
		return r.invalid(req, "a time to live of %v is out of range: at most %v", req.TTL, store.MaxTTL)
	}
	op.Amounts = append(op.Amounts[:0], store.Amount{Unit: Requests, N: 1})
	if r.work || len(req.Cost) > 0 {
		if err := r.fillCost(op, req); err != nil {
			return err
		}
	}
	if len(r.windows.limits) > 0 {
		r.fillWindows(op, req)
	}
	if req.Holds != HoldsAll {
		r.fillHolds(op, req.Holds)
	}
	return nil
}

// fillHolds leaves a connection only what it takes from concurrency limits, and a request over one all but that.
func (r *resource) fillHolds(op *store.Op, holds Holds) {
	all := len(op.Amounts)
	for i := range r.limits {
		l := &r.limits[i]
		if n, _ := store.AmountOf(op.Amounts[:all], l); l.Kind == Concurrency && n != 0 {
			if holds == HoldsNoPlace {
				n = 0
			}
			op.Amounts = append(op.Amounts, store.Amount{Unit: l.Unit, Limit: l.Name, N: n})
		}
	}
	if holds == HoldsPlace {
		op.Amounts = slices.Delete(op.Amounts, 0, all)
	}
}

// checkNames returns an error for a name that is too long.
func (r *resource) checkNames(req *Request) error {
	for _, f := range [...]struct{ what, name string }{
		{"agent", req.Agent}, {"user", req.User}, {"model", req.Model}, {"tool", req.Tool}, {"key", req.Key},
	} {
		if len(f.name) > store.MaxName {
			e := invalid("the name of the %s is %d bytes long, at most %d are allowed", f.what, len(f.name), store.MaxName)
			e.Resource, e.Agent, e.Hint = r.name, req.Agent, "use a shorter name"
			return e
		}
	}
	return nil
}

func (r *resource) fillCost(op *store.Op, req *Request) error {
	if r.work {
		r.setCost(op, Amount{Work, r.settings.toolCost(req.Tool)})
	}
	for _, a := range req.Cost {
		if a.Unit == "" {
			return r.invalid(req, "a cost of %d names no unit", a.N)
		}
		if a.N < 0 || a.N > store.MaxAmount {
			return r.invalid(req, "a cost of %d %s is out of range: 0 to %d", a.N, a.Unit, int64(store.MaxAmount))
		}
		r.setCost(op, a)
	}
	return nil
}

// setCost sets the cost in a unit. Units that no limit counts are left out.
func (r *resource) setCost(op *store.Op, a Amount) {
	for i := range op.Amounts {
		if op.Amounts[i].Unit == a.Unit {
			op.Amounts[i].N = a.N
			return
		}
	}
	if a.N != 0 && slices.Contains(r.counts, a.Unit) {
		op.Amounts = append(op.Amounts, store.Amount{Unit: a.Unit, N: a.N})
	}
}

// used is the usage of a request as far as it is known, by the units of its resource. Unlike a list of amounts, a report
// can keep it without allocating.
type used struct {
	known uint16 // set of units
	n     [store.MaxLimits]int64
}

func (r *resource) usedOf(usage []Amount) (u used) {
	for _, a := range usage {
		if i := slices.Index(r.counts, a.Unit); i >= 0 && a.N >= 0 {
			u.known, u.n[i] = u.known|1<<i, a.N
		}
	}
	return u
}

// appendTo appends the known amounts to a list.
func (u *used) appendTo(list []store.Amount, units []string) []store.Amount {
	for i, unit := range units {
		if u.known&(1<<i) != 0 {
			list = append(list, store.Amount{Unit: unit, N: u.n[i]})
		}
	}
	return list
}

func (r *resource) invalid(req *Request, format string, args ...any) error {
	e := invalid(format, args...)
	e.Resource, e.Agent = r.name, req.Agent
	return e
}
