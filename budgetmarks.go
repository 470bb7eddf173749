package sluice

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// Two pots beside the budgets hold marks instead of money. A mark is an amount of 1, and lasts until the end of the
// month.
const (
	// endPot marks resources whose requests state dollars or tokens only when they end. A used-up budget refuses their
	// requests, although a single one looks free when it is acquired.
	endPot = "(charged at the end)"
	// unitPot marks resources and units of stated usage that no price covers.
	unitPot = "(units without a price)"
)

// otherUnit stands for units that no limit counts: callers choose their names.
const otherUnit = "other"

func marks(name string, now time.Time) ledger.Pot {
	return ledger.Pot{Budget: name, Size: 1, Each: true, Period: ledger.Month.At(now)}
}

// chargesAtTheEnd reports whether requests to a resource turned out to cost money, and whether a budget of this request
// would make use of that. It is false if that cannot be read.
func (b *budgets) chargesAtTheEnd(ctx context.Context, r *resource, x *bill) bool {
	if b.goesOn && r.outage() != nil {
		return false
	}
	pot := marks(endPot, x.now)
	if b.isMarked(pot, r.name) {
		return true
	}
	used, err := b.used(ctx, x, false)
	if err != nil {
		return false
	}
	matters := false
	for i, budget := range x.budgets {
		matters = matters || used[i] >= budget.Micros || budget.Over == OverSlow
	}
	if !matters {
		return false
	}
	mark := &bill{lines: []ledger.Account{{Pot: pot, Who: r.name}}}
	seen, err := b.used(ctx, mark, false)
	return err == nil && seen[0] > 0
}

// isMarked reports whether this process has set a mark.
func (b *budgets) isMarked(pot ledger.Pot, who string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.marked[pot.Budget+who] == pot.Period.Name
}

// mark sets a mark, once for each process and month. If that fails, the next ticket tries again.
func (b *budgets) mark(ctx context.Context, name, who string) {
	now, err := b.now(ctx)
	if err != nil {
		return
	}
	a := ledger.Account{Pot: marks(name, now), Who: who, Force: true}
	if b.isMarked(a.Pot, who) {
		return
	}
	taken, err := b.books.Take(ctx, ledger.Order{Lines: []ledger.Account{a}, Amount: 1, Now: now, TTL: time.Minute})
	if err != nil || b.books.Settle(ctx, taken.Receipt, -1, now) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marked[name+who] = a.Period.Name
}

// markEnd records what the end of a ticket says about its resource.
func (b *budgets) markEnd(r *resource, m *money, usage []Amount) {
	actual, stated := usdOf(usage)
	late := m.open && actual > 0 && !r.paid
	units := r.unpriced(usage)
	if !late && (stated || len(units) == 0) {
		return
	}
	ctx, cancel := r.inBackground(context.Background())
	defer cancel()
	if late {
		b.mark(ctx, endPot, r.name)
	}
	if !stated {
		for _, unit := range units {
			b.mark(ctx, unitPot, r.name+" "+unit)
		}
	}
}

// unpriced returns the units of usage that no price covers. Requests and work are free, and so is everything of a
// resource that costs no money.
func (r *resource) unpriced(usage []Amount) (units []string) {
	if r.free {
		return nil
	}
	for _, a := range usage {
		if a.N <= 0 || a.Unit == Requests || a.Unit == Work || a.Unit == USD || r.price != nil && slices.Contains(tokenUnits, a.Unit) {
			continue
		}
		unit := a.Unit
		if !slices.ContainsFunc(r.limits, func(l store.Limit) bool { return l.Unit == unit }) && !slices.Contains(tokenUnits, unit) {
			unit = otherUnit
		}
		if !slices.Contains(units, unit) {
			units = append(units, unit)
		}
	}
	return units
}

// uncounted returns the units that callers stated this month and that have no price, each behind its resource.
func uncounted(balances []ledger.Balance) []string {
	list := []string{}
	for _, balance := range balances {
		if balance.Budget == unitPot && strings.Contains(balance.Who, " ") {
			list = append(list, balance.Who)
		}
	}
	slices.Sort(list)
	return list
}
