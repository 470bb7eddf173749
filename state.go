package sluice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// idleAfter is how long after its last send a resource counts as idle.
const idleAfter = time.Minute

// setState computes the state of a resource from the rest of its status.
func (r *resource) setState(s *inspect.ResourceStatus, snap *store.Snapshot) {
	for i := range s.Limits {
		s.LightBinds = s.LightBinds || s.Limits[i].Binds
	}
	s.State, s.Reason, s.Until = r.state(s, snap)
}

func (r *resource) state(s *inspect.ResourceStatus, snap *store.Snapshot) (state, reason string, until *time.Time) {
	trouble, now := snap.Trouble, snap.Now
	if s.Outage != nil { // what other processes have seen is not known
		trouble, now = r.failures.now(), store.Time(time.Now().UnixMicro())
	}
	failing, recent := isFailing(trouble), now.Sub(trouble.Last) < failingFor
	if failing && recent {
		return inspect.StateFailing, failingReason(&trouble), nil
	}
	if s.Outage != nil {
		return inspect.StateDegraded, outageReason(s.Outage), nil
	}
	if snap.LostUntil > 0 {
		return inspect.StateDegraded, r.settings.storeName + " lost its memory; holding requests for one window", clockAt(snap.Now).moment(snap.LostUntil)
	}
	if reason, until := pausedReason(s.Gates); reason != "" {
		return inspect.StatePaused, reason, until
	}
	if trouble.Unpaid && recent {
		s.BillingStop = true
		return inspect.StatePaused, unpaidReason(&trouble), nil
	}
	if waits := sum(snap.Waiting); waits > 0 {
		reason, until := r.queueReason(s, snap, waits)
		return inspect.StateQueueing, reason, until
	}
	switch last := snap.Counters.Last; {
	case last == 0:
		return inspect.StateIdle, "no request was sent yet", nil
	case snap.Now.Sub(last) >= idleAfter && trouble.Unpaid:
		return inspect.StateIdle, "no request was sent in the last minute; the last one met a billing stop: " + trouble.Cause, nil
	case snap.Now.Sub(last) >= idleAfter && failing:
		return inspect.StateIdle, "no request was sent in the last minute; the last send failed: " + trouble.Cause, nil
	case snap.Now.Sub(last) >= idleAfter:
		return inspect.StateIdle, "no request was sent in the last minute", nil
	}
	return inspect.StateFlowing, "requests pass without waiting", nil
}

// whileOut says what a process does without its store, by on_store_failure.
var whileOut = map[string]string{
	"share": "this process goes on within its share", "closed": "this process holds all requests", "open": "this process lets all requests go",
}

func outageReason(o *inspect.OutageStatus) string {
	reason := "the store is out of reach"
	if o.Why != "" {
		reason += ": " + o.Why
	}
	if does := whileOut[o.Mode]; does != "" {
		reason += "; " + does
	}
	return reason
}

// pausedReason says which pause holds a resource: one of the whole resource first, otherwise one of a part of it. It is
// empty if there is none.
func pausedReason(gates []inspect.PauseStatus) (reason string, until *time.Time) {
	var held []*inspect.PauseStatus
	for i := range gates {
		if g := &gates[i]; g.Phase == "paused" || g.Phase == "probing" {
			held = append(held, g)
		}
	}
	if len(held) == 0 {
		return "", nil
	}
	slices.SortStableFunc(held, func(a, b *inspect.PauseStatus) int { // of the whole resource first, then the longest
		return cmp.Or(cmp.Compare(min(len(a.Scope), 1), min(len(b.Scope), 1)), untilOf(b).Compare(untilOf(a)))
	})
	g := held[0]
	reason = g.Cause
	if g.Phase == "probing" {
		reason = strings.TrimPrefix(g.Cause+"; one request tests whether the pause is over", "; ")
	}
	if g.Scope != "" {
		reason = strings.TrimSuffix(scopeWords(g.Scope)+": "+reason, ": ")
		if more := len(held) - 1; more > 0 {
			reason += fmt.Sprintf("; %d more paused", more)
		}
	}
	return cmp.Or(reason, "paused"), g.Until
}

func untilOf(g *inspect.PauseStatus) time.Time {
	if g.Until == nil {
		return time.Time{}
	}
	return *g.Until
}

// scopeWords turns a scope such as model=opus,key=k into words.
func scopeWords(scope string) string {
	return strings.ReplaceAll(strings.ReplaceAll(scope, "=", " "), ",", ", ")
}

// queueReason says what most waiting requests wait for, not counting those that only wait for others. It also returns
// when the last of them is expected to go, if that is known.
func (r *resource) queueReason(s *inspect.ResourceStatus, snap *store.Snapshot, waits int) (string, *time.Time) {
	type cause struct {
		code  store.Code
		limit int8
	}
	count, classes := map[cause]int{}, map[cause]map[int]bool{}
	var slowed []string // names of budgets
	var most cause
	var last store.Time
	known := len(snap.Queue) == waits
	for i := range snap.Queue {
		w := &snap.Queue[i]
		known = known && w.Expected != 0
		last = max(last, w.Expected)
		if w.Reason.Code == store.CodeOrder || w.Reason.Code == store.CodeNone {
			continue
		}
		c := cause{w.Reason.Code, w.Reason.Limit}
		if c.code == store.CodeSlowed && !slices.Contains(slowed, w.HeldBy[0]) {
			slowed = append(slowed, w.HeldBy[0])
		}
		if count[c]++; classes[c] == nil {
			classes[c] = map[int]bool{}
		}
		classes[c][w.Class] = true
		if count[c] > count[most] {
			most = c
		}
	}
	var until *time.Time
	if known {
		until = clockAt(snap.Now).moment(last)
	}
	reason := fmt.Sprintf("%s for others to finish", waitWords(waits))
	if count[most] == 0 {
		return reason, until
	}
	if most.code == store.CodeSlowed {
		reason = waitWords(waits) + ": slowed by budget " + strings.Join(slowed, ", ") + ", which has to last until its reset"
	} else {
		reason = waitWords(waits) + ": " + r.causeWords(s, most.code, most.limit, classes[most])
	}
	if len(count) > 1 {
		reason += fmt.Sprintf(" (%d of them)", count[most])
	}
	return reason, until
}

func waitWords(n int) string {
	if n == 1 {
		return "1 request waits"
	}
	return fmt.Sprintf("%d requests wait", n)
}

// causeWords says what holds requests of some classes.
func (r *resource) causeWords(s *inspect.ResourceStatus, code store.Code, limit int8, of map[int]bool) string {
	name, level := r.limitName(limit), ""
	for i := range s.Limits {
		if l := &s.Limits[i]; l.Name == name && l.Limit > 0 && l.Scope == "" {
			level = fmt.Sprintf(" (%d of %d used)", l.Used, l.Limit)
			if l.Plan {
				level = fmt.Sprintf(" (%d%% used)", l.Used*100/l.Limit)
			}
		}
	}
	the := "a limit"
	if name != "" {
		the = "the limit " + name
	}
	var names []string
	for class := range of {
		names = append(names, r.settings.className(class))
	}
	slices.Sort(names)
	who := strings.Join(names, ", ")
	switch code {
	case store.CodeLimit:
		return the + " is full" + level
	case store.CodeLight:
		return "the light on " + the + " holds " + who + level
	case store.CodeShare:
		return "what is left of " + the + " is the share of other classes, which holds " + who + level
	case store.CodeReserve:
		return "what is left of " + the + " is kept for a person" + level
	case store.CodePace:
		return the + " is paced for " + who + " while a higher class is active" + level
	case store.CodeBreaker:
		return "the breaker on " + the + " holds " + who + level
	case store.CodePaused, store.CodeProbe, store.CodeRamp:
		for i := range s.Limits { // they could not go after the ramp either
			if l := &s.Limits[i]; l.Limit > 0 && l.Remaining == 0 && l.Scope == "" {
				return fmt.Sprintf("the limit %s is full (%d of %d used)", l.Name, l.Used, l.Limit)
			}
		}
		return "only a few requests go at first, until responses show room for more"
	}
	return the + " has no room" + level
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
