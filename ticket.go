package sluice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/store"
)

// Ticket is permission to send one request. It is a value: copies stand for the same ticket. It must be ended with
// Close, CloseUnanswered or Cancel; ending it twice does no harm. The zero Ticket has ended.
type Ticket struct {
	resource *resource
	id       store.ID
	granted  store.Time
	waited   time.Duration
	observed bool   // granted in mode observe
	tied     bool   // to the beats of this process
	own      bool   // this process sends the request and ends the ticket
	held     bool   // granted while a pause, a probe or a ramp held the resource
	note     *note  // nil if nothing is recorded
	money    *money // nil if nothing is paid
	key      string // the chosen key; empty: there was no choice
}

func (t *Ticket) set(r *resource, res *store.Result) {
	t.resource, t.id, t.granted, t.waited, t.observed = r, res.ID, res.GrantedAt, res.Waited, r.observe
	t.held = res.Held
}

// hold records that this process has the ticket of a request.
func (t *Ticket) hold(req *Request) {
	t.own = !req.Detached
	if r := t.resource; r.tie(req) == store.TieBeat {
		t.tied = true
		r.alive(t.id.Session)
	}
}

// ID returns the id of the ticket, for logs and other processes.
func (t Ticket) ID() string {
	if t.resource == nil {
		return ""
	}
	id := t.name()
	receipt, model := "", t.pricedAs()
	if t.money != nil {
		receipt = t.money.text()
	}
	if receipt != "" || model != "" {
		id += ticketid.ReceiptSep + joinReceipt(receipt, model)
	}
	return id
}

// Key returns the label of the key chosen from [Request.Keys]; empty if the request named none.
func (t Ticket) Key() string { return t.key }

// Waited returns how long the request was held.
func (t Ticket) Waited() time.Duration { return t.waited }

// GrantedAt returns when the store granted the ticket; zero if that is not known.
func (t Ticket) GrantedAt() time.Time {
	if t.resource == nil || t.granted == 0 {
		return time.Time{}
	}
	return t.resource.clock().time(t.granted)
}

// Stale reports whether the grant is so old that the request might arrive later than the gate assumes. Renew a stale
// ticket before you send anything.
func (t Ticket) Stale() bool {
	r := t.resource
	if r == nil || r.observe || r.slack == 0 && !t.tied {
		return false
	}
	age := r.pool.Now().Sub(t.granted)
	// The store may have taken a process for dead that was stopped or cut off.
	return r.slack > 0 && age > r.slack/2 || t.tied && age > store.SessionLife/2
}

// Renew exchanges an unsent ticket for a fresh one in one step. The ticket keeps its position; it may have to wait, as
// long as ctx allows. After an error other than ErrStore the ticket has been given back. After ErrStore it is
// unchanged: use it if it is not stale, or Cancel it.
func (t *Ticket) Renew(ctx context.Context) error {
	r, m := t.resource, t.money
	err := t.renew(ctx)
	if err != nil && t.resource == nil {
		err = errors.Join(err, m.cancel(r))
	}
	return err
}

func (t *Ticket) renew(ctx context.Context) error {
	r := t.resource
	if r == nil {
		return &Error{Err: ErrEnded}
	}
	if r.observe {
		return nil // mode observe holds no request
	}
	if t.isForeign() { // its charge is in the other pool, so a send would not be counted
		err := &Error{
			Err: ErrEnded, Resource: r.name, Message: "ticket " + t.name() + " has ended: it was granted in the mode observe", Hint: "ask for another",
		}
		*t = Ticket{}
		return err
	}
	x := requests.Get().(*request)
	defer requests.Put(x)
	op := &x.ops[0]
	*op = store.Op{Kind: store.OpRenew, ID: t.id, Wait: forever}
	if deadline, ok := ctx.Deadline(); ok {
		op.Wait = max(time.Until(deadline), 1)
	}
	wait, req := op.Wait, &Request{Resource: r.name}
	bells := r.waiters.bells.Load()
	if err := r.send(ctx, x.ops[:]); err != nil {
		if ctx.Err() != nil { // it may have been renewed, or be waiting
			r.giveBack(ctx, t.id)
			*t = Ticket{}
			return r.cancelled(req, ctx.Err())
		}
		return r.storeError(err)
	}
	switch op.Result.State {
	case store.Granted:
		t.set(r, &op.Result)
		return nil
	case store.Waiting:
		err := r.wait(ctx, req, t.id, bells, t)
		if errors.Is(err, errAgain) {
			err = r.ended(t.id)
		}
		if err != nil {
			*t = Ticket{} // it was given back
		}
		return err
	case store.Refused:
		*t = Ticket{}
		return r.refused(ctx, req, wait, op)
	default:
		err := r.gone(t.id, op.Result.State)
		*t = Ticket{}
		return err
	}
}

// Keep makes the ticket live for ttl from now on. It is for requests that take longer than expected, and whose
// concurrency should be free soon if their process dies.
func (t Ticket) Keep(ctx context.Context, ttl time.Duration) error {
	r := t.resource
	switch {
	case r == nil:
		return &Error{Err: ErrEnded}
	case t.isPlaceless():
		return nil
	case ttl <= 0 || ttl > store.MaxTTL:
		return &Error{Err: ErrInvalid, Resource: r.name, Message: fmt.Sprintf("a ticket lives for more than 0 and at most %v, not %v", store.MaxTTL, ttl)}
	}
	ops := [1]store.Op{{Kind: store.OpPoll, ID: t.id, TTL: ttl}}
	if err := r.apply(ctx, ops[:]); r.harmless(err) {
		return nil
	} else if err != nil {
		return r.storeError(err)
	}
	return r.gone(t.id, ops[0].Result.State)
}

// Answer reports that the provider's response has begun, and what it says. Call it as soon as the headers are there: it
// bounds when the request can have arrived, and all waiting requests depend on that. It reports whether the resource is
// held now, by a pause or the ramp after one. A retry should then ask again at once instead of sleeping, because the
// queue's order is better than any jitter.
//
// On a shared store Answer does not wait for the store if the response is ok and states no limits: the gate reports it
// with the resource's next call, or within a few milliseconds. Close and CloseUnanswered do the same. If that fails,
// the next call or [Gate.Close] returns an error; the report is sent again until the store has it.
func (t Ticket) Answer(a Answer) (held bool, err error) {
	r := t.resource
	if r == nil {
		return false, &Error{Err: ErrEnded}
	}
	ctx := context.Background()
	if t.isForeign() {
		return false, nil
	}
	if t.id.Session == passed {
		return false, r.observeAnswer(ctx, t.request(), t.name(), a)
	}
	name := ""
	if a.Verdict == store.VerdictUnreachable {
		name = t.name()
	}
	r.noteAnswer(t.request(), name, &a) // even if the store cannot be reached
	if a.Verdict == store.VerdictOK && t.isLate() && !r.states(a.Limits) && !a.rejects() {
		if done, err := r.answerLate(t.id); done {
			if err == nil && r.events != nil {
				r.tellAnswer(ctx, t.request(), t.name(), a, 0, false)
			}
			return false, err
		}
	}
	x := requests.Get().(*request)
	defer requests.Put(x)
	op := &x.ops[0]
	r.fillAnswer(op, store.OpAnswer, t.request(), &a)
	op.ID = t.id
	err = r.apply(ctx, x.ops[:])
	if err != nil && a.Verdict == store.VerdictOK { // a rejection that the store does not count does no harm
		r.again(report{id: t.id, answered: true}, err)
	}
	if err != nil && !r.harmless(err) {
		return false, r.storeError(err)
	} else if err == nil {
		if err := r.gone(t.id, op.Result.State); err != nil {
			return op.Result.Held, err
		}
	}
	held = op.Result.Held && !r.observe
	if r.events != nil {
		r.tellAnswer(ctx, t.request(), t.name(), a, op.Result.Now, false)
	}
	return held, nil
}

// request returns the request of the ticket, as far as it is remembered.
func (t Ticket) request() *Request {
	if t.note == nil {
		return &unknownRequest
	}
	return &t.note.req
}

// unknownRequest stands for the request of a ticket that only has an id. It is never written to.
var unknownRequest Request

// Close ends the ticket: the request is over. usage replaces the charges by the actual usage; units that it does not
// name keep their estimate.
//
// A request that was never answered counts as arrived by now. If it may still be on its way, use CloseUnanswered.
func (t Ticket) Close(usage ...Amount) error {
	if r := t.resource; len(usage) == 0 && r != nil && r.plain && r.quick != nil && t.money == nil && t.granted != 0 && !t.isPlaceless() {
		if err := r.quick.CloseTicket(t.id, false); err != nil { // the fast path: the same as close
			r.again(report{id: t.id, closed: true}, err)
			return r.storeError(err)
		}
		return nil
	}
	return t.close(false, usage)
}

// CloseUnanswered ends a ticket whose response will not be reported and whose request may still be on its way. The
// request counts as arriving within the slack or, with a strict guard, within the ticket's TTL. It proves nothing about
// the provider.
func (t Ticket) CloseUnanswered() error { return t.close(true, nil) }

func (t *Ticket) close(spent bool, usage []Amount) error { return t.closePaid(spent, usage) }

// end ends the ticket in the resource's pool.
func (t *Ticket) end(spent bool, usage []Amount) error {
	r := t.resource
	if r == nil {
		return nil
	}
	if t.isPlaceless() {
		t.tellUsage(usage)
		return nil
	}
	if err := t.endInStore(spent, usage); err != nil {
		return err
	}
	if r.events != nil {
		t.tellUsage(usage)
	}
	return nil
}

func (t *Ticket) endInStore(spent bool, usage []Amount) error {
	r := t.resource
	if r.quick != nil && len(usage) == 0 && t.granted != 0 {
		if err := r.quick.CloseTicket(t.id, spent); err != nil {
			r.again(report{id: t.id, closed: true, spent: spent}, err)
			return r.storeError(err)
		}
		return nil
	}
	if t.isLate() {
		if done, err := r.closeLate(t.id, spent, usage); done {
			return err
		}
	}
	return t.settle(spent, usage)
}

// settle closes the ticket with what is known of its usage. A ticket that has already ended is no error; an unknown
// ticket is.
func (t *Ticket) settle(spent bool, usage []Amount) error {
	r := t.resource
	x := requests.Get().(*request)
	defer requests.Put(x)
	op, u := &x.ops[0], r.usedOf(usage)
	*op = store.Op{Kind: store.OpClose, ID: t.id, Spent: spent, Amounts: u.appendTo(op.Amounts[:0], r.counts)}
	err := r.apply(context.Background(), x.ops[:])
	if err != nil {
		r.again(report{id: t.id, closed: true, spent: spent, used: u}, err)
	}
	if r.harmless(err) {
		return nil
	} else if err != nil {
		return r.storeError(err)
	}
	if op.Result.State == store.Unknown {
		return r.gone(t.id, store.Unknown)
	}
	return nil
}

// HasEnded reports whether a ticket has ended: it was closed, given back or spent, or its TTL is over. It is false if the
// store of a resource in mode observe does not answer.
func (g inside) HasEnded(ctx context.Context, t Ticket) (bool, error) {
	r := t.resource
	if r == nil || t.isPlaceless() {
		return r == nil, nil
	}
	ops := [1]store.Op{{Kind: store.OpPoll, ID: t.id}}
	if err := r.apply(ctx, ops[:]); err != nil && !r.harmless(err) {
		return false, r.storeError(err)
	}
	return ops[0].Result.State == store.Ended, nil
}

// Cancel gives an unsent ticket back, with a full refund. A ticket that has ended stays as it is. Cancel refunds the quota
// and the budgets separately: an error of one does not prevent the other. In mode observe the ticket goes back a moment
// later.
func (t Ticket) Cancel() error {
	if t.resource == nil {
		return nil
	}
	return errors.Join(t.cancel(), t.money.cancel(t.resource))
}

// cancel gives the ticket back to its resource.
func (t Ticket) cancel() error {
	r := t.resource
	if !t.isPlaceless() {
		if r.observe && t.isLate() { // no request may wait for the store
			if done, err := r.cancelLate(&t); done {
				return err
			}
		}
		ops := [2]store.Op{{Kind: store.OpPoll, ID: t.id}, {Kind: store.OpCancel, ID: t.id}}
		err := r.apply(context.Background(), ops[:])
		if err != nil {
			r.again(report{id: t.id, closed: true, unsent: true}, err)
		}
		if err != nil && !r.harmless(err) {
			return r.storeError(err)
		} else if err == nil && ops[1].Result.State == store.Unknown {
			return r.gone(t.id, store.Unknown)
		} else if err == nil && ops[0].Result.State == store.Ended {
			return nil // it was sent, or given back before
		}
	}
	if r.events != nil {
		r.emit(t.cancelled())
	}
	return nil
}

// cancelled returns the event of a ticket that is given back.
func (t *Ticket) cancelled() inspect.Event {
	e := t.resource.about(inspect.EventCancel, t.request())
	e.Ticket = t.name()
	return e
}

// limit returns a limit by its name, or nil if only other members have it.
func (r *resource) limit(name string) *store.Limit {
	if i := r.limitIndex(name); i >= 0 {
		return &r.limits[i]
	}
	return nil
}

func (r *resource) limitIndex(name string) int {
	return slices.IndexFunc(r.limits, func(l store.Limit) bool { return l.Name == name })
}

// leastSlack returns the smallest arrival slack of the guarded limits; 0 if there are none.
func leastSlack(limits []store.Limit) time.Duration {
	var least time.Duration
	for _, l := range limits {
		if l.Guard == store.GuardOff || l.Kind == Concurrency {
			continue
		}
		s := l.Slack
		if s == 0 {
			s = min(max(l.Window*15/1000, time.Second), 30*time.Second)
		}
		if least == 0 || s < least {
			least = s
		}
	}
	return least
}
