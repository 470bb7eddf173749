package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/inspect"
)

// MaxScopes is how many meters of a resource's scoped limits are shown one by one, the most used first, and how many
// accounts of budgets in all. The others are summed.
const MaxScopes = 64

type describe func(name, help string, labels ...string) *prometheus.Desc

// limitDescs describes the metrics of limits.
type limitDescs struct {
	size, used, remaining, outside, withheld, light, breaker, reset *prometheus.Desc
}

func (d *limitDescs) init(desc describe) {
	labels := []string{"resource", "limit", "unit", "scope"}
	d.size = desc("limit_size", "The size of a limit; absent while unknown.", labels...)
	d.used = desc("limit_used", "The used amount of a limit.", labels...)
	d.remaining = desc("limit_remaining", "The remaining amount of a limit; absent while its size is unknown.", labels...)
	d.outside = desc("limit_outside", "The amount of a limit used by callers that do not go through the gate.", labels...)
	d.withheld = desc("limit_withheld", "The amount of a limit kept for processes that may be cut off from the store.", labels...)
	d.light = desc("limit_light", "The traffic light of a limit: 0 green, 1 amber, 2 red.", labels...)
	d.breaker = desc("limit_breaker", "The breaker of a limit: 0 closed, 1 gliding, 2 open.", labels...)
	d.reset = desc("limit_reset_timestamp_seconds", "When a limit resets; absent if it does not reset, or the time is unknown.", labels...)
}

// level is a limit with the values to report.
type level struct {
	name, unit, scope                        string
	size, used, remaining, outside, withheld int64
	light, breaker                           float64
	reset                                    *time.Time
	known                                    bool // the size is known
}

// tell reports the limits of a resource.
func (d *limitDescs) tell(out *teller, resource string, limits []inspect.LimitStatus) {
	for _, l := range levels(limits) {
		labels := []string{resource, l.name, l.unit, l.scope}
		if l.known {
			out.gauge(d.size, float64(l.size), labels...)
			out.gauge(d.remaining, float64(l.remaining), labels...)
		}
		out.gauge(d.used, float64(l.used), labels...)
		out.gauge(d.outside, float64(l.outside), labels...)
		out.gauge(d.withheld, float64(l.withheld), labels...)
		out.gauge(d.light, l.light, labels...)
		out.gauge(d.breaker, l.breaker, labels...)
		out.moment(d.reset, l.reset, labels...)
	}
}

// levels returns the limits to report: all without a scope, the most used of the others, and the sums of the rest.
func levels(limits []inspect.LimitStatus) []*level {
	var list, scoped []*level
	for i := range limits {
		l := newLevel(&limits[i])
		if l.scope == "" {
			list = append(list, l)
		} else {
			scoped = append(scoped, l)
		}
	}
	slices.SortStableFunc(scoped, func(a, b *level) int { return cmp.Or(cmp.Compare(b.part(), a.part()), cmp.Compare(b.used, a.used)) })
	for i, l := range scoped {
		if i >= MaxScopes {
			l.scope, l.reset = rest, nil
		}
	}
	return merge(append(list, scoped...))
}

// merge sums levels with the same labels: the rest, and names that became equal when they were cut.
func merge(list []*level) []*level {
	type key struct{ name, unit, scope string }
	at := map[key]*level{}
	var all []*level
	for _, l := range list {
		k := key{l.name, l.unit, l.scope}
		m := at[k]
		if m == nil {
			at[k] = l
			all = append(all, l)
			continue
		}
		m.size += l.size
		m.used += l.used
		m.remaining += l.remaining
		m.outside += l.outside
		m.withheld += l.withheld
		m.light, m.breaker, m.reset, m.known = max(m.light, l.light), max(m.breaker, l.breaker), nil, m.known || l.known
	}
	return all
}

func newLevel(l *inspect.LimitStatus) *level {
	v := &level{
		name: clean(l.Name), unit: clean(l.Unit), scope: clean(l.Scope), size: l.Limit, used: l.Used, remaining: l.Remaining, outside: l.Outside,
		withheld: l.Withheld, light: light(l.Light), reset: l.ResetAt, known: l.Limit > 0,
	}
	switch l.Breaker {
	case "gliding":
		v.breaker = 1
	case "open":
		v.breaker = 2
	}
	return v
}

// part returns the used fraction.
func (l *level) part() float64 {
	if l.size <= 0 {
		return 0
	}
	return float64(l.used) / float64(l.size)
}

// budgetDescs describes the metrics of budgets.
type budgetDescs struct{ size, used, reset *prometheus.Desc }

func (d *budgetDescs) init(desc describe) {
	labels := []string{"budget", "per", "period", "who"}
	d.size = desc("budget_size_dollars", "The size of an account of a budget.", labels...)
	d.used = desc("budget_used_dollars", "The amount spent from an account of a budget, including reservations of running requests.", labels...)
	d.reset = desc("budget_reset_timestamp_seconds", "When an account of a budget resets; absent if it never does.", labels...)
}

// tell reports the accounts with the largest spent part, and for each budget the sum of the others.
func (d *budgetDescs) tell(out *teller, accounts []inspect.BudgetStatus) {
	accounts = slices.Clone(accounts)
	part := func(b *inspect.BudgetStatus) float64 {
		if b.SizeUSD <= 0 {
			return b.UsedUSD
		}
		return b.UsedUSD / b.SizeUSD
	}
	slices.SortStableFunc(accounts, func(a, b inspect.BudgetStatus) int { return cmp.Compare(part(&b), part(&a)) })
	type key struct{ budget, per, period, who string }
	type account struct {
		key
		size, used float64
		reset      *time.Time
	}
	at := map[key]*account{}
	var all []*account
	for i := range accounts {
		b := &accounts[i]
		k := key{clean(b.Name), clean(b.Per), clean(b.Period), clean(b.Who)}
		if i >= MaxScopes {
			k.who = rest
		}
		a := at[k]
		if a == nil {
			a = &account{key: k, reset: b.ResetsAt}
			at[k] = a
			all = append(all, a)
		}
		a.size += b.SizeUSD
		a.used += b.UsedUSD
	}
	for _, a := range all {
		labels := []string{a.budget, a.per, a.period, a.who}
		out.gauge(d.size, a.size, labels...)
		out.gauge(d.used, a.used, labels...)
		out.moment(d.reset, a.reset, labels...)
	}
}
