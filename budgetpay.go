package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// usdOf returns the amount of money in a list, if there is one.
func usdOf(list []Amount) (micros int64, stated bool) {
	for _, a := range list {
		if a.Unit == USD {
			return a.N, true
		}
	}
	return 0, false
}

// claim is what a request asks of its budgets.
type claim struct {
	micros int64 // the estimate
	// costs is set if the request is known to cost money, so a budget may refuse it. Other requests go, and are charged
	// what is stated when they end.
	costs bool
	// open is set if the caller stated neither tokens nor dollars. Without usage at the end the request costs nothing.
	open bool
	// guess is set if tokens of this request count at the default price.
	guess bool
	// reckoned is set if the estimate is the gate's own.
	reckoned bool
}

// claimOf returns what a request asks of its budgets, and the request with its estimate.
func (r *resource) claimOf(asked *Request) (*Request, claim) {
	if micros, stated := usdOf(asked.Cost); stated {
		return asked, claim{micros: micros, costs: true, guess: asked.Unpriced}
	}
	c := claim{open: !hasTokens(asked.Cost), reckoned: true}
	priced := *asked
	if c.micros, c.costs = r.reckon(&priced); c.costs {
		c.guess = priced.Unpriced
		return &priced, c
	}
	c.guess = r.price != nil
	return asked, c
}

// acquirePaid is acquire for requests that budgets pay for. It reports false if there are none for this request.
//
// Budgets other than slow ones never make a request wait. They are charged once, all or none, after the resource has
// granted the request. They are also checked before: a request that will be refused need not wait first, and a
// downgraded request has to queue in its new class.
//
// A request that states nothing gets a reservation too: its end may state dollars or tokens, in any process.
func (r *resource) acquirePaid(ctx context.Context, asked *Request, wait time.Duration, t *Ticket) (paid bool, err error) {
	asked, c := r.claimOf(asked)
	if asked.Unpaid && !c.costs {
		return false, nil
	}
	until := time.Now().Add(wait)
	for {
		paid, err = r.tryPaid(ctx, asked, c, wait, t)
		if !errors.Is(err, errNewPeriod) {
			return paid, err
		}
		if wait > 0 {
			wait = max(time.Until(until), 1)
		}
	}
}

// tryPaid is acquirePaid within the current periods of the budgets.
func (r *resource) tryPaid(ctx context.Context, asked *Request, c claim, wait time.Duration, t *Ticket) (paid bool, err error) {
	b := r.budgets
	x, err := b.billOf(ctx, asked.Agent, asked.User)
	switch {
	case err != nil && (b.goesOn || r.observe || !c.costs) && errors.Is(err, ErrStore):
		return false, nil // even the current period is unknown
	case err != nil:
		return true, err
	case x == nil:
		return false, nil
	}
	if !c.costs && !r.observe {
		c.costs = b.chargesAtTheEnd(ctx, r, x)
	}
	if !c.costs && asked.Spent {
		return false, nil // nothing can be stated any more
	}
	if c.costs {
		r.charged.Store(true)
	}
	req := *asked
	req.Spent = false // it may have to be given back until it is paid for
	began := time.Now()
	passes, err := b.awaitPaid(ctx, r, x, &req, c, wait, t)
	if err == nil && !r.observe {
		err = b.pay(ctx, r, x, &req, c, t)
	}
	if err != nil {
		giveBackAll(passes)
	} else if len(passes) > 0 {
		t.money.passes = passes
		t.slowed(passes)
	}
	if !r.plain {
		err = r.admitted(ctx, &req, t, waitedSince(began, err)) // mode observe grants what was refused
	}
	if err == nil && r.observe {
		err = b.pay(ctx, r, x, &req, c, t)
	}
	if err == nil && t.money != nil {
		t.money.model, t.money.open = asked.priceModel(), c.open
	}
	if err == nil && asked.Spent {
		err = t.CloseUnanswered()
	}
	return true, err
}

// awaitPaid waits for the budgets, and then for the resource. It returns what it has taken from budgets that slow
// down, also with an error.
func (b *budgets) awaitPaid(ctx context.Context, r *resource, x *bill, req *Request, c claim, wait time.Duration, t *Ticket) (passes []Ticket, err error) {
	if r.observe || !c.costs {
		x.force()
	} else {
		if err := b.beforehand(ctx, r, x, req, c.micros); err != nil {
			return nil, err
		}
		began := time.Now()
		if passes, err = b.slowDown(ctx, r, x, req, c.micros, wait); err != nil {
			return nil, err
		}
		if wait > 0 {
			wait = max(wait-time.Since(began), 1)
		}
	}
	return passes, r.await(ctx, req, wait, t)
}

// force makes all lines count without refusing.
func (x *bill) force() {
	for i := range x.lines {
		x.lines[i].Force = true
	}
}

// beforehand checks the budgets before the resource is asked.
func (b *budgets) beforehand(ctx context.Context, r *resource, x *bill, req *Request, estimate int64) error {
	if b.goesOn && r.outage() != nil {
		return nil
	}
	used, err := b.used(ctx, x, false)
	if err != nil {
		return nil // pay tries the ledger anyway
	}
	lowered := false
	for i, budget := range x.budgets {
		if used[i] < budget.Micros {
			continue
		}
		switch budget.Over {
		case OverDowngrade:
			lowered = true
		case OverDeny, OverSlow:
			now, err := b.used(ctx, x, true)
			if err == nil && now[i] >= budget.Micros {
				b.announce(ctx, r, x, i, req, now[i])
				if budget.Over == OverSlow && !r.settings.isHighest(req) {
					continue // it waits for the reset
				}
				return b.refusal(r, x, i, req, now[i], estimate)
			}
		}
	}
	if lowered {
		req.Class, req.Emergency = b.gate.settings.lowest(), false
	}
	return nil
}

// pay charges the estimated cost of a granted request. If a budget refuses, the ticket is given back unsent.
func (b *budgets) pay(ctx context.Context, r *resource, x *bill, req *Request, c claim, t *Ticket) error {
	o := ledger.Order{Lines: x.lines, Amount: charge(c.micros), Now: x.now, TTL: store.MaxTTL}
	m := &money{budgets: b, guesses: req.Unpriced && !c.reckoned}
	if b.goesOn && r.outage() != nil { // the ledger is on the same unreachable store
		m.order, t.money = &o, m
		return nil
	}
	taken, err := b.books.Take(ctx, o)
	switch {
	case err != nil && (r.observe || (b.goesOn || !c.costs) && ctx.Err() == nil):
		m.order, t.money = &o, m
		return nil
	case err != nil:
		t.giveBack()
		if ctx.Err() != nil {
			return r.cancelled(req, ctx.Err())
		}
		return r.storeError(err)
	case taken.Full >= 0:
		t.giveBack()
		used := b.usedNow(ctx, x, taken.Full)
		b.mu.Lock()
		b.short[x.lines[taken.Full].Budget] = shortfall{x.lines[taken.Full].Who, o.Amount, time.Now()}
		b.mu.Unlock()
		b.announce(ctx, r, x, taken.Full, req, used)
		return b.refusal(r, x, taken.Full, req, used, c.micros)
	}
	m.receipt, t.money = taken.Receipt, m
	if c.guess {
		o.Lines = flagged(x.lines)
		if guess, err := b.books.Take(ctx, o); err == nil { // if it fails, only the flag is lost
			m.guess = guess.Receipt
		}
	}
	for _, i := range taken.Over {
		if !c.costs {
			break // it may be free
		}
		used := b.usedNow(ctx, x, i)
		b.announce(ctx, r, x, i, req, used)
		if r.observe && x.budgets[i].Over == OverDeny && r.events != nil {
			r.tellRefusal(ctx, inspect.EventWouldWait, req, b.refusal(r, x, i, req, used, c.micros), t.name())
		}
	}
	if b.hasLate() {
		late, cancel := r.inBackground(ctx)
		b.enterLate(late)
		cancel()
	}
	return nil
}

// charge returns what a ledger reserves for an estimate. A request with an estimate of 0 still needs an entry to settle.
func charge(estimate int64) int64 { return min(max(estimate, 1), ledger.MaxMicros) }

// usedNow returns the spending of a line, for messages.
func (b *budgets) usedNow(ctx context.Context, x *bill, i int) int64 {
	used, err := b.used(ctx, x, true)
	if err != nil {
		return x.budgets[i].Micros
	}
	return used[i]
}

// refusal returns the error for a budget that has no room.
func (b *budgets) refusal(r *resource, x *bill, i int, req *Request, used, estimate int64) *Error {
	budget, l := x.budgets[i], &x.lines[i]
	e := &Error{
		Err: ErrBudget, Resource: r.name, Agent: req.Agent, Limit: budget.Name, Reason: "budget", used: used, size: budget.Micros,
		Hint: "raise the budget, or set its over: to something other than deny",
	}
	until := ""
	if charge(estimate) > budget.Micros { // no reset makes room for it
		e.Hint = "ask for less, " + e.Hint
	} else if at := b.resetsAt(l); at != nil {
		e.RetryAt = *at
		until = ", until " + at.Format(time.RFC3339)
		e.Hint = "try again then, raise the budget, or set its over: to something other than deny"
	}
	e.why = fmt.Sprintf("budget %q", budget.Name)
	e.Message = fmt.Sprintf("%s: budget %q%s is used up: %s of %s usd spent%s", r.name, budget.Name, whose(budget, l.Who), usdText(used), usdText(budget.Micros), until)
	if used < budget.Micros {
		e.Message = fmt.Sprintf("%s: budget %q%s has no room for %s usd: %s of %s usd spent%s", r.name, budget.Name, whose(budget, l.Who), usdText(estimate),
			usdText(used), usdText(budget.Micros), until)
	}
	return e
}

func whose(b *Budget, who string) string {
	switch {
	case b.Per == BudgetFleet:
		return ""
	case who == "":
		return fmt.Sprintf(" of agents without %s", map[string]string{BudgetUser: "a user", BudgetAgent: "a name"}[b.Per])
	}
	return fmt.Sprintf(" of %s %.80q", b.Per, who)
}

// announce reports once per period that a budget is used up. A request that is too expensive for the rest of a budget
// does not use it up.
func (b *budgets) announce(ctx context.Context, r *resource, x *bill, i int, req *Request, used int64) {
	budget, l := x.budgets[i], x.lines[i]
	if x.foreseen || used < budget.Micros || b.alert == nil && b.events == nil {
		return
	}
	told, cancel := r.inBackground(ctx)
	first, err := b.books.Tell(told, l, x.now)
	cancel()
	if err != nil || !first {
		return
	}
	a := inspect.Alert{
		Time: time.Now().UTC(), Budget: budget.Name, Per: budget.Per, Who: l.Who, Over: budget.Over, SizeUSD: dollars(budget.Micros), UsedUSD: dollars(used),
		Period: budget.Period, ResetsAt: b.resetsAt(&l), Resource: r.name, Agent: req.Agent, User: req.User,
	}
	a.Text = fmt.Sprintf("budget %q%s is used up: %s of %s usd spent (%s)", budget.Name, whose(budget, l.Who), usdText(used), usdText(budget.Micros), budget.Over)
	if r.events != nil {
		e := r.about(inspect.EventBudget, req)
		e.Limit, e.Used, e.Size, e.Reason, e.Until, e.Scope = budget.Name, used, budget.Micros, budget.Over, a.ResetsAt, l.Who
		r.emit(e)
		if a.ResetsAt != nil {
			b.tellEnd(r, e, *a.ResetsAt)
		}
	}
	if b.alert != nil {
		b.alert(a)
	}
}
