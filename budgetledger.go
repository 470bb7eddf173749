package sluice

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// budgets holds the budgets of a gate.
type budgets struct {
	gate   *Gate
	list   []Budget
	books  ledger.Ledger
	alert  func(inspect.Alert)
	events func(inspect.Event)
	// goesOn is set if requests continue while the ledger cannot be reached. They are entered later.
	goesOn bool

	mu     sync.Mutex
	seen   map[string]glance    // by budget
	short  map[string]shortfall // by budget
	marked map[string]string    // the month, by mark
	late   []lateEntry
	ends   []*time.Timer // timers for the resets of used-up budgets
	shut   bool
	slow   pacers
}

// glance is the spending of a budget, read a moment ago.
type glance struct {
	at     time.Time
	period string
	used   map[string]int64 // by owner of the account
}

// shortfall is the last request that a budget had too little left for.
type shortfall struct {
	who    string // the owner of the account
	micros int64
	at     time.Time
}

// glanceFor is how long a glance is valid.
const glanceFor = time.Second

// newBudgets opens the ledger. It is kept in the store, except next to a store of files: those files are only a cache.
func newBudgets(g *Gate, c Config) (*budgets, error) {
	list, err := checkBudgets(c.Budgets)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	b := &budgets{gate: g, list: list, alert: c.Alert, events: c.Events, seen: map[string]glance{}, short: map[string]shortfall{}, marked: map[string]string{}, books: ledger.Beside(g.store, g.settings.readOnly)}
	if b.books == nil {
		b.books = ledger.NewInStore(g.store, g.settings.readOnly, b.pots)
		b.goesOn = !g.settings.passing && g.settings.onFailure != store.FailClosed
	}
	return b, nil
}

// now returns the current time on the store's clock. It uses the fleet's pool, so that the time is the same for all
// resources.
func (b *budgets) now(ctx context.Context) (time.Time, error) {
	pool, err := b.gate.fleetPool(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return pool.Now().Std(), nil
}

// pots returns all pots that a charge made now or in the previous period can belong to.
func (b *budgets) pots(now time.Time) []ledger.Pot {
	var list []ledger.Pot
	for i := range b.list {
		pot := b.list[i].pot(now)
		list = append(list, pot, beside(pot))
		if before := pot.Period.Before(); before != pot.Period {
			pot.Period = before
			list = append(list, pot, beside(pot))
		}
	}
	return append(list, marks(endPot, now), marks(unitPot, now))
}

// beside returns the account that counts a budget's spending at the default price, for models without a price.
func beside(pot ledger.Pot) ledger.Pot {
	pot.Budget += unpriced
	return pot
}

// flagged returns the accounts for unpriced spending beside the lines of a request. These accounts never refuse.
func flagged(lines []ledger.Account) (out []ledger.Account) {
	for _, l := range lines {
		out = append(out, ledger.Account{Pot: beside(l.Pot), Who: l.Who, Force: true})
	}
	return out
}

// bill lists the budgets that a request is charged to.
type bill struct {
	budgets []*Budget
	lines   []ledger.Account // one per budget
	now     time.Time
	// foreseen is set if the request is not made: then nothing is announced.
	foreseen bool
}

// billOf returns the budgets of an agent and a user; nil if there are none.
func (b *budgets) billOf(ctx context.Context, agent, user string) (*bill, error) {
	var of []*Budget
	for i := range b.list {
		if b.list[i].concerns(b.gate.settings, agent) {
			of = append(of, &b.list[i])
		}
	}
	if len(of) == 0 {
		return nil, nil
	}
	now, err := b.now(ctx)
	if err != nil {
		return nil, err
	}
	if user == "" {
		user = b.gate.settings.agent(agent).user
	}
	x := &bill{budgets: of, now: now}
	for _, budget := range of {
		x.lines = append(x.lines, ledger.Account{Pot: budget.pot(now), Who: budget.who(agent, user), Force: budget.Over != OverDeny && budget.Over != OverSlow})
	}
	return x, nil
}

// used returns the spending of each line: from a recent glance, or read now if fresh is set.
func (b *budgets) used(ctx context.Context, x *bill, fresh bool) ([]int64, error) {
	var ask []ledger.Pot
	b.mu.Lock()
	for i := range x.lines {
		l := &x.lines[i]
		if g, ok := b.seen[l.Budget]; fresh || !ok || g.period != l.Period.Name || time.Since(g.at) > glanceFor {
			ask = append(ask, l.Pot)
		}
	}
	b.mu.Unlock()
	if len(ask) > 0 {
		begun := time.Now()
		balances, err := b.books.Read(ctx, ask)
		if err != nil {
			return nil, b.gate.storeError(err)
		}
		b.see(begun, ask, balances)
	}
	out := make([]int64, len(x.lines))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range x.lines {
		out[i] = b.seen[x.lines[i].Budget].used[x.lines[i].Who]
	}
	return out, nil
}

func (b *budgets) see(at time.Time, pots []ledger.Pot, balances []ledger.Balance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pot := range pots {
		b.seen[pot.Budget] = glance{at, pot.Period.Name, map[string]int64{}}
	}
	for _, balance := range balances {
		b.seen[balance.Budget].used[balance.Who] = balance.Used
	}
}

var hardness = map[string]int{OverDeny: 5, OverSlow: 4, OverReroute: 3, OverDowngrade: 2, OverAlert: 1}

// BudgetState reports whether a budget of an agent is used up and what its policy is. A sender can then choose a
// cheaper model if the policy asks for that. The figures are at most about a second old. An empty user means the
// configured one.
func (g inside) BudgetState(ctx context.Context, agent, user string) (inspect.BudgetState, error) {
	s := inspect.BudgetState{Policies: []string{}}
	b := g.budgets
	if b == nil {
		return s, nil
	}
	x, err := b.billOf(ctx, agent, user)
	if x == nil || err != nil {
		return s, err
	}
	used, err := b.used(ctx, x, false)
	if err != nil {
		return s, err
	}
	for i, budget := range x.budgets {
		if used[i] < budget.Micros {
			continue
		}
		s.Policies = append(s.Policies, budget.Over)
		if hardness[budget.Over] > hardness[s.Policy] {
			s.Over, s.Policy, s.Budget = true, budget.Over, budget.Name
			s.UsedUSD, s.SizeUSD, s.ResetsAt = dollars(used[i]), dollars(budget.Micros), b.resetsAt(&x.lines[i])
		}
	}
	return s, nil
}

// resetsAt returns when an account starts again, by our own clock; nil for never.
func (b *budgets) resetsAt(l *ledger.Account) *time.Time {
	if l.Period.End.IsZero() {
		return nil
	}
	at := l.Period.End
	if pool, err := b.gate.fleetPool(context.Background()); err == nil {
		at = clockAt(pool.Now()).time(store.Time(at.UnixMicro())).UTC()
	}
	return &at
}

// Budgets returns the spending of each budget in its current period. For budgets per agent or user it lists the
// accounts with any spending.
func (g *Gate) Budgets(ctx context.Context) ([]inspect.BudgetStatus, error) {
	out := []inspect.BudgetStatus{}
	b := g.budgets
	if b == nil {
		return out, nil
	}
	now, err := b.now(ctx)
	if err != nil {
		return out, err
	}
	var pots []ledger.Pot
	for i := range b.list {
		pot := b.list[i].pot(now)
		pots = append(pots, pot, beside(pot))
	}
	pots = append(pots, marks(unitPot, now))
	balances, err := b.books.Read(ctx, pots)
	if err != nil {
		return out, b.gate.storeError(err)
	}
	queues := b.slowQueues(ctx)
	type account struct{ budget, who string }
	guessed := map[account]int64{}
	unpriceable := uncounted(balances)
	for _, balance := range balances {
		guessed[account{balance.Budget, balance.Who}] = balance.Used
	}
	for i := range b.list {
		budget := &b.list[i]
		row := inspect.BudgetStatus{
			Name: budget.Name, Per: budget.Per, SizeUSD: dollars(budget.Micros), RemainingUSD: dollars(budget.Micros), Period: budget.Period,
			Over: budget.Over, ResetsAt: b.resetsAt(&ledger.Account{Pot: pots[2*i]}), Waiting: map[string]int{}, Uncounted: unpriceable,
		}
		if budget.Agent != "*" {
			row.Who = budget.Agent
		}
		any := false
		for _, balance := range balances {
			if balance.Budget == budget.Name && (balance.Used > 0 || budget.Per == BudgetFleet) {
				row.Who, row.UsedUSD, row.RemainingUSD = balance.Who, dollars(balance.Used), dollars(budget.Micros-balance.Used)
				row.UnpricedUSD = dollars(guessed[account{budget.Name + unpriced, balance.Who}])
				row.Slowing, row.Waiting = b.slowing(queues, budget, balance.Who)
				out, any = append(out, row), true
			}
		}
		if !any {
			out = append(out, row)
		}
	}
	return out, nil
}

// budgetsWithin is Budgets with a bound on the time. It returns none if they cannot be read.
func (g *Gate) budgetsWithin(ctx context.Context, d time.Duration) []inspect.BudgetStatus {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	list, _ := g.Budgets(ctx)
	return list
}

// littleLeft is the part of a budget that counts as too little for most requests.
const littleLeft = 0.02

// little reports whether an account has too little left for the last request that it refused in this process, or for most
// requests. refused is set if that request came in the last minute.
func (b *budgets) little(s *inspect.BudgetStatus) (little, refused bool) {
	b.mu.Lock()
	last := b.short[s.Name]
	b.mu.Unlock()
	if last.who == s.Who && micros(s.RemainingUSD) < last.micros {
		return true, time.Since(last.at) < idleAfter
	}
	return s.RemainingUSD <= s.SizeUSD*littleLeft, false
}

// close makes the late entries, if that is possible now, and closes the ledger.
func (b *budgets) close() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	b.shut = true
	for _, t := range b.ends {
		t.Stop()
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	b.enterLate(ctx)
	return errors.Join(b.slow.close(), b.books.Close())
}

// maxEnds bounds the used-up budgets whose reset is reported.
const maxEnds = 1024

// tellEnd reports the reset of a used-up budget when it comes.
func (b *budgets) tellEnd(r *resource, e inspect.Event, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shut || len(b.ends) >= maxEnds {
		return
	}
	began := time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(at), func() {
		b.mu.Lock()
		b.ends = slices.DeleteFunc(b.ends, func(t *time.Timer) bool { return t == timer })
		shut := b.shut
		b.mu.Unlock()
		if shut {
			return
		}
		r.emit(inspect.Event{Kind: inspect.EventBudgetBack, Limit: e.Limit, Size: e.Size, Scope: e.Scope, ForMS: time.Since(began).Milliseconds()})
	})
	b.ends = append(b.ends, timer)
}

// lowest returns the class of requests that a used-up budget downgrades.
func (p *settings) lowest() string { return cmp.Or(p.classes[len(p.classes)-1].Name, P2) }
