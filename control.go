package sluice

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// maxPause is the longest pause by hand.
const maxPause = 31 * 24 * time.Hour

// Pause holds all requests to a resource for d. It never shortens a pause. The reason is for people to read. In mode
// observe there is nothing to hold, and the error is [ErrInvalid].
func (g *Gate) Pause(ctx context.Context, resource string, d time.Duration, reason string) error {
	r, err := g.resource(resource)
	if err != nil {
		return err
	}
	if d <= 0 || d > maxPause {
		e := invalid("%s: a pause of %v is out of range: more than 0, at most %d days", r.name, d, maxPause/(24*time.Hour))
		e.Resource, e.Hint = r.name, "use a shorter time, such as 12h"
		return e
	}
	if r.observe {
		e := invalid("%s: mode observe holds no request, so it cannot be paused", r.name)
		e.Resource, e.Hint = r.name, "set mode: gate for the resource first"
		return e
	}
	op := store.Op{Kind: store.OpPause, RetryAfter: d, Cause: reason}
	if err := r.order(ctx, &op); err != nil {
		return err
	}
	if r.events != nil {
		r.tellPauses(ctx, op.Result.Now, inspect.Event{})
	}
	return nil
}

// Resume ends every pause of a resource, including those of a model or key. Waiting requests follow as after any pause,
// a few at first.
func (g *Gate) Resume(ctx context.Context, resource string) error {
	r, err := g.resource(resource)
	if err != nil {
		return err
	}
	op := store.Op{Kind: store.OpResume}
	if err := r.order(ctx, &op); err != nil {
		return err
	}
	if r.events != nil {
		r.emit(inspect.Event{Kind: inspect.EventResume})
	}
	return nil
}

// Observe reports a response without a ticket: the request was sent without asking the gate. Observe uses the request's
// resource and, where limits or refusals are about them, its model and key. The agent is for the record.
func (g *Gate) Observe(ctx context.Context, req Request, a Answer) error {
	r, err := g.resource(req.Resource)
	if err != nil {
		return err
	}
	if err := r.checkNames(&req); err != nil {
		return err
	}
	return r.observeAnswer(ctx, &req, "", a)
}

// observeAnswer records a response to a request that the store does not know.
func (r *resource) observeAnswer(ctx context.Context, req *Request, ticket string, a Answer) error {
	var op store.Op
	r.fillAnswer(&op, store.OpObserve, req, &a)
	op.Agent, op.User, op.Model, op.Key = req.Agent, req.User, req.Model, r.keyOf(req)
	r.noteAnswer(req, "", &a) // even if the store cannot be reached
	if err := r.order(ctx, &op); err != nil && (!r.harmless(err) || !errors.Is(err, ErrStore)) {
		return err
	}
	if r.events != nil {
		r.tellAnswer(ctx, req, ticket, a, op.Result.Now, true)
	}
	return nil
}

// states reports whether a response states any limit of the resource.
func (r *resource) states(stated []ObservedLimit) bool {
	for i := range stated {
		if r.limit(stated[i].Limit) != nil {
			return true
		}
	}
	return false
}

// fillAnswer writes a response into a store operation.
func (r *resource) fillAnswer(op *store.Op, kind store.OpKind, req *Request, a *Answer) {
	*op = store.Op{Amounts: op.Amounts[:0]}
	op.Kind, op.Verdict, op.RetryAfter, op.Scope, op.Cause, op.Force = kind, a.Verdict, a.RetryAfter, r.narrow(a), a.Cause, r.observe
	switch a.Verdict {
	case store.VerdictError:
		op.Cause = "" // a cause would mark it as the provider's failure
		if a.Status >= 500 {
			op.Cause = statusWords(a.Status)
		}
	case store.VerdictBilling:
		op.Cause = r.unpaidCause(req, a)
	case store.VerdictUnreachable:
		op.Cause = a.failure()
		if r.failures.isOld(a) {
			op.Verdict = store.VerdictNone
		}
	}
	if a.rejects() {
		op.Rejected, op.Cause = a.Status, r.rejection(req, a)
	}
	for _, s := range a.Limits {
		if l := r.limit(s.Limit); l != nil {
			op.Observed = append(op.Observed, r.observed(l, s))
		}
	}
	if r.windows.note(op.Observed) && a.Verdict == store.VerdictExhausted {
		op.Force = true
	}
}

// order applies one operation that concerns no ticket.
func (r *resource) order(ctx context.Context, op *store.Op) error {
	ops := []store.Op{*op}
	if err := r.apply(ctx, ops); err != nil {
		return r.storeError(err)
	}
	*op = ops[0]
	if op.Result.State == store.Refused {
		e := invalid("%s: the store refused it as invalid", r.name)
		e.Resource, e.Reason = r.name, op.Result.Reason.Code.String()
		return e
	}
	return nil
}
