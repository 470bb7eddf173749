package sluice

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
)

// USD is the unit of money: millionths of a dollar. A request whose Cost states it is charged to its budgets, as an
// estimate. The amount passed to [Ticket.Close] replaces the estimate.
const USD = "usd"

// Who shares a budget.
const (
	BudgetFleet = "fleet" // all agents share one
	BudgetAgent = "agent" // each agent has its own
	BudgetUser  = "user"  // each user has its own; agents without a user share one
)

// When a budget starts again. A request belongs to the period in which it was granted.
const (
	BudgetDay   = "day"   // every day at 00:00 UTC
	BudgetMonth = "month" // on the first of every month at 00:00 UTC
	BudgetTotal = "total" // never
)

// What happens once a budget is used up. With all but deny and slow the request goes out and is counted.
const (
	OverDeny      = "deny"      // the request gets ErrBudget
	OverDowngrade = "downgrade" // it goes out in the lowest class
	OverReroute   = "reroute"   // the sender chooses a cheaper model; see BudgetState
	OverAlert     = "alert"     // it goes out, and an alert is sent
	// OverSlow spreads what is left until the reset, before the budget is used up: requests of lower classes wait. The
	// highest class is never slowed. It gets ErrBudget when nothing is left; lower classes wait for the reset.
	OverSlow = "slow"
)

// Budget bounds spending in dollars.
type Budget struct {
	// Name identifies the budget in messages and in the ledger: a budget with a new name starts at zero. If empty, the
	// name is made of Per and Period, such as user/day.
	Name string
	// Per says who shares the budget. Empty means the fleet.
	Per string
	// Agent limits the budget to one agent; Per must be "agent". "*" stands for all agents that the configuration does
	// not name.
	Agent string
	// Micros is the size in millionths of a dollar.
	Micros int64
	// Period is when the budget starts again. Empty means never.
	Period string
	// Over is what happens when the budget is used up. Empty means deny.
	Over string
}

var budgetLengths = map[string]ledger.Length{BudgetDay: ledger.Day, BudgetMonth: ledger.Month, BudgetTotal: ledger.Total}

// checkBudgets validates budgets and fills in their defaults.
func checkBudgets(list []Budget) ([]Budget, error) {
	var out []Budget
	seen := map[string]bool{}
	for i, b := range list {
		if b.Per == "" {
			b.Per = BudgetFleet
		}
		if b.Period == "" {
			b.Period = BudgetTotal
		}
		if b.Over == "" {
			b.Over = OverDeny
		}
		if b.Name == "" {
			b.Name = b.defaultName()
		}
		if err := b.check(); err != nil {
			return nil, err
		}
		if seen[b.Name] {
			return nil, invalid("budget %d: there is another one called %q: give it a name of its own", i, b.Name)
		}
		seen[b.Name] = true
		out = append(out, b)
	}
	return out, nil
}

func (b *Budget) check() error {
	_, known := budgetLengths[b.Period]
	switch {
	case len(b.Name) > maxBudgetName:
		return invalid("budget %.80q: its name has more than %d bytes", b.Name, maxBudgetName)
	case b.Name == endPot || b.Name == unitPot:
		return invalid("budget %q: this name is reserved", b.Name)
	case strings.HasSuffix(b.Name, unpriced):
		return invalid("budget %q: its name must not end with %q: the account beside a budget is called so", b.Name, unpriced)
	case b.Per != BudgetFleet && b.Per != BudgetAgent && b.Per != BudgetUser:
		return invalid("budget %q: it can be per fleet, agent or user, not %q", b.Name, b.Per)
	case b.Agent != "" && b.Per != BudgetAgent:
		return invalid("budget %q: a budget with an agent must be per agent, not %q", b.Name, b.Per)
	case !known:
		return invalid("budget %q: its period can be day, month or total, not %q", b.Name, b.Period)
	case b.Over != OverDeny && b.Over != OverDowngrade && b.Over != OverReroute && b.Over != OverAlert && b.Over != OverSlow:
		return invalid("budget %q: over can be deny, downgrade, reroute, slow or alert, not %q", b.Name, b.Over)
	case b.Over == OverSlow && b.Period == BudgetTotal:
		return invalid("budget %q: it never resets, so nothing can be spread until then: slow needs a size per day or month", b.Name)
	case b.Micros < 1 || b.Micros > ledger.MaxMicros:
		return invalid("budget %q: %d millionths of a dollar are out of range: 1 to %d", b.Name, b.Micros, int64(ledger.MaxMicros))
	}
	return nil
}

// unpriced is the suffix of the account next to each budget that counts spending at the default price.
const unpriced = " (unpriced)"

// maxBudgetName leaves room for the period in the name of a pool.
const maxBudgetName = 128

func (b *Budget) defaultName() string {
	if b.Agent != "" {
		return fmt.Sprintf("agent:%s/%s", b.Agent, b.Period)
	}
	return fmt.Sprintf("%s/%s", b.Per, b.Period)
}

// concerns reports whether requests of an agent count against the budget.
func (b *Budget) concerns(p *settings, agent string) bool {
	switch b.Agent {
	case "", agent:
		return true
	case "*":
		_, named := p.agents[agent]
		return !named
	}
	return false
}

// who returns the owner of the account that a request is charged to.
func (b *Budget) who(agent, user string) string {
	switch b.Per {
	case BudgetAgent:
		return agent
	case BudgetUser:
		return user
	}
	return ""
}

// pot returns the budget's pot at a moment.
func (b *Budget) pot(now time.Time) ledger.Pot {
	return ledger.Pot{Budget: b.Name, Size: b.Micros, Each: b.Per != BudgetFleet, Period: budgetLengths[b.Period].At(now)}
}

// dollars converts millionths to dollars.
func dollars(micros int64) float64 { return float64(micros) / 1e6 }

// usdText formats an amount in dollars with at least two decimals, and more if needed.
func usdText(micros int64) string {
	if micros%10_000 == 0 {
		return fmt.Sprintf("%.2f", dollars(micros))
	}
	if micros%100 == 0 || micros > 1_000_000 || micros < -1_000_000 {
		return fmt.Sprintf("%.4f", dollars(micros))
	}
	return fmt.Sprintf("%.6f", dollars(micros))
}
