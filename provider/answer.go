package provider

import (
	"time"

	"github.com/sluicehq/sluice"
)

// Answer turns the observation into what a ticket is told, given the limits of the
// resource. A stated limit belongs to the one of the same name; else to the only one of
// the same unit and window, or of the same unit if no window is stated. What belongs to none,
// or might belong to several, is left out.
//
// A wait that the provider did not state itself is left out as well: the resource's own backoff
// begins at as much by default and, unlike a hint, grows with every refusal.
func (o *Observation) Answer(limits []sluice.Limit) sluice.Answer {
	a := sluice.Answer{Verdict: o.Verdict, Scope: o.Scope, Cause: o.Cause, Usage: o.Usage}
	if o.Hinted {
		a.RetryAfter = o.RetryAfter
		if a.RetryAfter <= 0 {
			a.RetryAfter = leastHint // 0 would mean that there was no hint
		}
	}
	for _, i := range assign(o.Limits, limits) {
		l := &o.Limits[i.stated]
		a.Limits = append(a.Limits, sluice.ObservedLimit{
			Limit: limits[i.configured].Name, Size: l.Size, Remaining: l.Remaining, ResetIn: l.ResetIn,
		})
	}
	return a
}

// pair tells which configured limit a stated one is about.
type pair struct{ stated, configured int }

// assign pairs stated limits with configured ones, each of which at most once: by name
// first, so that a guess never takes the place of what is certain.
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

// byUnit finds the only configured limit that counts the same thing, -1 if there is none
// or more than one.
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

// same reports whether a configured limit can be the one that is stated.
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

// closeTo forgives a window that was rounded.
func closeTo(a, b time.Duration) bool { return (a - b).Abs() < time.Second }

// theirs reports a limit that the provider can know of: those per agent, user or tool and
// those on work are our own.
func theirs(l *sluice.Limit) bool {
	for _, scope := range l.Per {
		if scope != sluice.PerModel && scope != sluice.PerKey {
			return false
		}
	}
	return l.Unit != sluice.Work
}
