package sluicehttp

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// unknownCost is what a call is taken to need of a subscription's window while it is under way and nobody knows what calls take,
// in millionths. When it is over, it is taken to have used next to nothing: the next answer states what is used.
const unknownCost = 1000

// soonBack is how long a used-up window may take to come back for a request to wait for it. Else the client gets the provider's
// own answer, which says what there is to know.
const soonBack = time.Minute

// isWindow reports a limit that is a window of a subscription.
func (t *Transport) isWindow(name string) bool {
	for i := range t.windows {
		if t.windows[i].Name == name {
			return true
		}
	}
	return false
}

// windowOf is what a window of the request's account is called in the book.
func (f *flight) windowOf(l *sluice.Limit) string {
	name := l.Name + "\x00" + f.ask.Key
	for _, per := range l.Per {
		if per == sluice.PerModel {
			name += "\x00" + f.ask.Model
		}
	}
	return name
}

// reckonPlan adds what the request takes of the windows that answers have stated.
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

// spentPlan adds what usage has taken of the windows.
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
			cost = max(cost, 1) // it shows who uses the window
			f.t.plan.Use(name, f.asked.Model, tokens)
		}
		list = set(list, l.Unit, cost)
	}
	return list
}

// learnPlan takes in what an answer states of windows.
func (f *flight) learnPlan(o *provider.Observation, a *sluice.Answer) {
	for _, s := range a.Limits {
		for i := range f.t.windows {
			if l := &f.t.windows[i]; l.Name == s.Limit && s.Size > 0 && s.Remaining >= 0 {
				f.t.plan.State(f.windowOf(l), s.Size-s.Remaining, o.Overage)
			}
		}
	}
}

// windowGone reports an answer by which a window is used up for longer than a request should wait.
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

// weight is how much usage counts, in input tokens, by the proportions of usual prices: nobody knows how subscriptions count.
func weight(u *provider.Usage) int64 {
	return u.Input + u.CacheRead/10 + u.CacheWrite*5/4 + u.CacheLong*2 + u.Output*5
}
