package sluicehttp

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// unknownCost is the cost of a running call on a subscription's window, in millionths, while the usual cost is unknown.
// When the call is over it counts as almost nothing: the next response states the usage.
const unknownCost = 1000

// soonBack is the longest time until the reset of a used-up window for which a request waits. Otherwise the client gets
// the provider's own response with the details.
const soonBack = time.Minute

// isWindow reports whether a limit is a window of a subscription.
func (t *Transport) isWindow(name string) bool {
	for i := range t.windows {
		if t.windows[i].Name == name {
			return true
		}
	}
	return false
}

// windowOf returns the name in the book of a window of the request's account.
func (f *flight) windowOf(l *sluice.Limit) string {
	name := l.Name + "\x00" + f.ask.Key
	for _, per := range l.Per {
		if per == sluice.PerModel {
			name += "\x00" + f.ask.Model
		}
	}
	return name
}

// reckonPlan adds the estimated cost of the request on the windows that responses have stated.
func (f *flight) reckonPlan(list []sluice.Amount) []sluice.Amount {
	tokens := weight(&f.told.Estimated)
	for i := range f.t.windows {
		l := &f.t.windows[i]
		name := f.windowOf(l)
		used, paid, ok := f.t.plan.Stated(name)
		if !ok {
			continue
		}
		cost, known := f.t.plan.Cost(name, f.asked.Model, tokens)
		switch {
		case !f.asked.Tokens, f.t.Overage && paid && used >= provider.PlanSize:
			cost = 0
		case !known:
			cost = unknownCost
		}
		list = set(list, l.Unit, cost)
	}
	return list
}

// spentPlan adds the actual cost of usage on the windows.
func (f *flight) spentPlan(list []sluice.Amount, u *provider.Usage) []sluice.Amount {
	tokens := weight(u)
	for i := range f.t.windows {
		l := &f.t.windows[i]
		name := f.windowOf(l)
		if _, _, ok := f.t.plan.Stated(name); !ok {
			continue
		}
		cost := int64(0)
		if tokens > 0 {
			cost, _ = f.t.plan.Cost(name, f.asked.Model, tokens)
			cost = max(cost, 1) // at least 1, to show who uses the window
			f.t.plan.Use(name, f.asked.Model, tokens)
		}
		list = set(list, l.Unit, cost)
	}
	return list
}

// learnPlan records what a response states about windows.
func (f *flight) learnPlan(o *provider.Observation, a *sluice.Answer) {
	for _, s := range a.Limits {
		for i := range f.t.windows {
			if l := &f.t.windows[i]; l.Name == s.Limit && s.Size > 0 && s.Remaining >= 0 {
				f.t.plan.State(f.windowOf(l), s.Size-s.Remaining, o.Overage)
			}
		}
	}
}

// windowGone reports whether a response says that a window is used up for longer than a request should wait.
func (f *flight) windowGone(a *sluice.Answer) bool {
	if a.Verdict != store.VerdictExhausted || a.RetryAfter <= soonBack {
		return false
	}
	for _, s := range a.Limits {
		if s.Remaining == 0 && f.t.isWindow(s.Limit) {
			return true
		}
	}
	return false
}

// weight converts usage to input tokens, in proportion to usual prices. How subscriptions count is not published.
func weight(u *provider.Usage) int64 {
	return u.Input + u.CacheRead/10 + u.CacheWrite*5/4 + u.CacheLong*2 + u.Output*5
}
