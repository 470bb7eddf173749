package sluice

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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

// acquirePaid is acquire for requests that cost money, if there are budgets. It reports false if either is not the
// case.
//
// Budgets other than slow ones never make a request wait. They are charged once, all or none, after the resource has
// granted the request. They are also checked before: a request that will be refused need not wait first, and a
// downgraded request has to queue in its new class.
func (r *resource) acquirePaid(ctx context.Context, asked *Request, wait time.Duration, t *Ticket) (paid bool, err error) {
	estimate, costs := usdOf(asked.Cost)
	priced := *asked
	if !costs {
		if estimate, costs = r.reckon(&priced); !costs {
			return false, nil
		}
		asked = &priced
	}
	until := time.Now().Add(wait)
	for {
		paid, err = r.tryPaid(ctx, asked, estimate, wait, t)
		if !errors.Is(err, errNewPeriod) {
			return paid, err
		}
		if wait > 0 {
			wait = max(time.Until(until), 1)
		}
	}
}

// tryPaid is acquirePaid within the current periods of the budgets.
func (r *resource) tryPaid(ctx context.Context, asked *Request, estimate int64, wait time.Duration, t *Ticket) (paid bool, err error) {
	b := r.budgets
	x, err := b.billOf(ctx, asked.Agent, asked.User)
	switch {
	case err != nil && (b.goesOn || r.observe) && errors.Is(err, ErrStore):
		return false, nil // even the current period is unknown
	case err != nil:
		return true, err
	case x == nil:
		return false, nil
	}
	r.charged.Store(true)
	req := *asked
	if err := b.beforehand(ctx, r, x, &req, estimate); err != nil {
		if r.events != nil {
			r.tellRefusal(ctx, inspect.EventRefused, &req, err, "")
		}
		return true, err
	}
	began := time.Now()
	passes, err := b.slowDownUnlessObserved(ctx, r, x, &req, estimate, wait)
	if err != nil {
		if r.events != nil && !errors.Is(err, errNewPeriod) {
			err = r.admitted(ctx, &req, t, err)
		}
		return true, err
	}
	slowed := time.Since(began)
	if wait > 0 {
		wait = max(wait-slowed, 1)
	}
	req.Spent = false // it may have to be given back until it is paid for
	err = r.await(ctx, &req, wait, t)
	if err != nil && r.observe {
		err = r.admitted(ctx, &req, t, err) // mode observe holds no request
		if err != nil {
			return true, err
		}
		return true, b.pay(ctx, r, x, &req, estimate, t)
	}
	if err == nil {
		err = b.pay(ctx, r, x, &req, estimate, t)
	}
	if err != nil {
		giveBackAll(passes)
	} else if len(passes) > 0 {
		t.money.passes = passes
		t.slowed(passes)
	}
	if !r.plain {
		err = r.admitted(ctx, &req, t, err)
	}
	if err == nil && asked.Spent {
		err = t.CloseUnanswered()
	}
	if err == nil && t.money != nil {
		t.money.model = asked.priceModel()
	}
	return true, err
}

// beforehand checks the budgets before the resource is asked.
func (b *budgets) beforehand(ctx context.Context, r *resource, x *bill, req *Request, estimate int64) *Error {
	if r.observe {
		for i := range x.lines {
			x.lines[i].Force = true
		}
		return nil
	}
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
func (b *budgets) pay(ctx context.Context, r *resource, x *bill, req *Request, estimate int64, t *Ticket) error {
	// A request with an estimate of 0 still needs an entry to settle, so charge at least 1.
	o := ledger.Order{Lines: x.lines, Amount: min(max(estimate, 1), ledger.MaxMicros), Now: x.now, TTL: store.MaxTTL}
	if req.Unpriced {
		o.Lines = flagged(x.lines)
	}
	if b.goesOn && r.outage() != nil { // the ledger is on the same unreachable store
		t.money = &money{budgets: b, order: &o}
		return nil
	}
	taken, err := b.books.Take(ctx, o)
	switch {
	case err != nil && (r.observe || b.goesOn && ctx.Err() == nil):
		t.money = &money{budgets: b, order: &o}
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
		return b.refusal(r, x, taken.Full, req, used, estimate)
	}
	t.money = &money{budgets: b, receipt: taken.Receipt}
	for _, i := range taken.Over {
		if i >= len(x.lines) {
			break // the accounts for unpriced spending
		}
		used := b.usedNow(ctx, x, i)
		b.announce(ctx, r, x, i, req, used)
		if r.observe && x.budgets[i].Over == OverDeny && r.events != nil {
			r.tellRefusal(ctx, inspect.EventWouldWait, req, b.refusal(r, x, i, req, used, estimate), t.name())
		}
	}
	if b.hasLate() {
		late, cancel := r.inBackground(ctx)
		b.enterLate(late)
		cancel()
	}
	return nil
}

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
	if at := b.resetsAt(l); at != nil {
		e.RetryAt = *at
		until = ", until " + at.Format(time.RFC3339)
		e.Hint = "try again then, raise the budget, or set its over: to something other than deny"
	}
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
	if used < budget.Micros || b.alert == nil && b.events == nil {
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

// money is what a ticket has reserved from budgets.
type money struct {
	budgets *budgets
	model   string // whose price applies to the usage
	receipt string
	order   *ledger.Order // could not be entered yet; it will be
	ended   atomic.Bool   // guards an order, which the ledger does not know yet
	passes  []Ticket      // what it has taken from budgets that slow down
}

// settle enters the actual cost of a request. A negative amount means that it is unknown.
func (m *money) settle(r *resource, actual int64) error {
	return m.finish(r, lateEntry{actual: min(actual, ledger.MaxMicros)})
}

// cancel gives the reservation back.
func (m *money) cancel(r *resource) error { return m.finish(r, lateEntry{cancel: true}) }

func (m *money) finish(r *resource, e lateEntry) error {
	if m == nil || m.order != nil && !m.ended.CompareAndSwap(false, true) {
		return nil
	}
	b := m.budgets
	settlePasses(m.passes, &e)
	e.receipt, e.order = m.receipt, m.order
	if e.order != nil {
		if !e.cancel {
			b.addLate(e)
		}
		return nil
	}
	err := errAway
	if !r.observe || !r.isAway() {
		ctx, cancel := r.inBackground(context.Background())
		err = e.enter(ctx, b)
		cancel()
	}
	if err != nil && (b.goesOn || r.observe) {
		b.addLate(e)
		return nil
	}
	if err != nil {
		return b.gate.storeError(err)
	}
	return nil
}

// giveBack gives an unsent ticket back without emitting events: its grant was never reported.
func (t *Ticket) giveBack() {
	r := t.resource
	if r != nil && !t.isPlaceless() {
		ops := [1]store.Op{{Kind: store.OpCancel, ID: t.id}}
		_ = r.apply(context.Background(), ops[:]) // if this fails, the ticket expires by itself
	}
	*t = Ticket{}
}

// lateEntry is an entry that could not be made in the ledger when it happened.
type lateEntry struct {
	receipt string
	order   *ledger.Order
	actual  int64
	cancel  bool
}

// maxLate bounds the late entries. Beyond it, charges keep their estimate or are lost.
const maxLate = 10_000

func (e *lateEntry) enter(ctx context.Context, b *budgets) error {
	now := time.Time{}
	if t, err := b.now(ctx); err == nil {
		now = t
	}
	if e.order != nil {
		o := *e.order
		o.Lines = append([]ledger.Account{}, o.Lines...)
		for i := range o.Lines {
			o.Lines[i].Force = true // the money is already spent
		}
		taken, err := b.books.Take(ctx, o)
		if err != nil {
			return err
		}
		e.order, e.receipt = nil, taken.Receipt
	}
	if e.cancel {
		return b.books.Cancel(ctx, e.receipt, now)
	}
	return b.books.Settle(ctx, e.receipt, e.actual, now)
}

func (b *budgets) hasLate() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.late) > 0
}

func (b *budgets) addLate(e lateEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.late) < maxLate {
		b.late = append(b.late, e)
	}
}

// enterLate makes the late entries, as long as the ledger can be reached.
func (b *budgets) enterLate(ctx context.Context) {
	b.mu.Lock()
	list := b.late
	b.late = nil
	b.mu.Unlock()
	for i := range list {
		if list[i].enter(ctx, b) != nil {
			b.mu.Lock()
			b.late = append(list[i:], b.late...)
			b.late = b.late[:min(len(b.late), maxLate)]
			b.mu.Unlock()
			return
		}
	}
}
