package provider

import (
	"time"

	"github.com/sluicehq/sluice"
)

// Answer converts the observation for a ticket, given the limits of the resource. A stated limit is matched with the
// configured limit of the same name. Otherwise it is matched with the only one of the same unit and window, or of
// the same unit if it states no window. Stated limits without a match, or with several, are left out.
//
// A wait that the provider did not state is left out too. The resource's own backoff starts at the same value by
// default and, unlike a hint, grows with every refusal.
func (o *Observation) Answer(limits []sluice.Limit) sluice.Answer {
	a := sluice.Answer{Verdict: o.Verdict, Scope: o.Scope, Cause: o.Cause, Usage: o.Usage}
	if o.Hinted {
		a.RetryAfter = o.RetryAfter
		if a.RetryAfter <= 0 {
			a.RetryAfter = leastHint // 0 would mean no hint
		}
	}
	for _, i := range assign(o.Limits, limits) {
		l := &o.Limits[i.stated]
		a.Limits = append(a.Limits, sluice.ObservedLimit{
			Limit: limits[i.configured].Name, Size: l.Size, Remaining: l.Remaining, ResetIn: l.ResetIn, Slop: l.Slop,
		})
	}
	return a
}

// pair matches a stated limit with a configured one.
type pair struct{ stated, configured int }

// assign matches stated limits with configured ones, each at most once. It matches by name first, so that a guess
// never replaces a certain match.
func assign(stated []Limit, limits []sluice.Limit) []pair {
	var pairs []pair
	taken := make([]bool, len(limits))
	found := make([]bool, len(stated))
	for _, find := range [...]func(*Limit, []sluice.Limit) int{byName, byUnit} {
		for i := range stated {
			if found[i] {
				continue
			}
			if k := find(&stated[i], limits); k >= 0 && !taken[k] {
				found[i], taken[k] = true, true
				pairs = append(pairs, pair{i, k})
			}
		}
	}
	return pairs
}

func byName(l *Limit, limits []sluice.Limit) int {
	for k := range limits {
		if l.Name != "" && limits[k].Name == l.Name && theirs(&limits[k]) {
			return k
		}
	}
	return -1
}

// byUnit finds the only configured limit that counts the same thing. It returns -1 if there is none or more than
// one.
func byUnit(l *Limit, limits []sluice.Limit) int {
	only := -1
	for k := range limits {
		if !theirs(&limits[k]) || !same(l, &limits[k]) {
			continue
		}
		if only >= 0 {
			return -1
		}
		only = k
	}
	return only
}

// same reports whether c can be the stated limit l.
func same(l *Limit, c *sluice.Limit) bool {
	unit := c.Unit
	if unit == "" {
		unit = sluice.Requests
	}
	if unit != l.Unit || (c.Kind == sluice.Concurrency) != (l.Kind == sluice.Concurrency) {
		return false
	}
	return l.Window == 0 || c.Kind == sluice.Concurrency || closeTo(l.Window, c.Window)
}

// closeTo allows for rounded windows.
func closeTo(a, b time.Duration) bool { return (a - b).Abs() < time.Second }

// theirs reports whether the provider can know of a limit. Limits per agent, user or tool and limits on work are
// Sluice's own.
func theirs(l *sluice.Limit) bool {
	for _, scope := range l.Per {
		if scope != sluice.PerModel && scope != sluice.PerKey {
			return false
		}
	}
	return l.Unit != sluice.Work
}
