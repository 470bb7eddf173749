package sluice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// idleAfter is how long after its last send a resource counts as idle.
const idleAfter = time.Minute

// setState computes the state of a resource from the rest of its status.
func (r *resource) setState(s *inspect.ResourceStatus, snap *store.Snapshot, budgets []inspect.BudgetStatus) {
	for i := range s.Limits {
		s.LightBinds = s.LightBinds || s.Limits[i].Binds
	}
	var out shortage
	turnedAway := false
	if s.Outage == nil {
		turnedAway = r.turnedAway(snap)
		out = r.shortage(s, snap, r.heldAway(snap), budgets)
		s.UsedUp = out.gone
	}
	s.State, s.Reason, s.Until = r.state(s, snap, &out, turnedAway)
}

func (r *resource) state(s *inspect.ResourceStatus, snap *store.Snapshot, out *shortage, turnedAway bool) (state, reason string, until *time.Time) {
	trouble, now := snap.Trouble, snap.Now
	if s.Outage != nil { // what other processes have seen is not known
		trouble, now = r.failures.now(), ownTime()
	}
	failing, recent := isFailing(trouble), now.Sub(trouble.Last) < failingFor
	if failing && recent {
		return inspect.StateFailing, failingReason(&trouble), nil
	}
	if x := rejecting(snap.Rejections, snap.Now); x != nil {
		s.FailingModel = x.Model
		return inspect.StateFailing, rejectedReason(x), nil
	}
	if s.Outage != nil {
		return inspect.StateDegraded, outageReason(s.Outage), nil
	}
	if snap.LostUntil > 0 {
		return inspect.StateDegraded, r.settings.storeName + " lost its memory; holding requests for one window", clockAt(snap.Now).moment(snap.LostUntil)
	}
	s.BillingStop = trouble.Unpaid && recent
	switch reason, until := pausedReason(s.Gates); {
	case s.BillingStop && reason != "": // the end of the pause does not end the billing stop
		return inspect.StatePaused, unpaidReason(&trouble) + "; besides it is paused: " + reason, nil
	case s.BillingStop:
		return inspect.StatePaused, unpaidReason(&trouble), nil
	case reason != "":
		return inspect.StatePaused, reason, until
	}
	if waits := sum(snap.Waiting); waits > 0 {
		reason, until := r.queueReason(s, snap, waits)
		return inspect.StateQueueing, reason, until
	}
	last := snap.Counters.Last
	sent := last != 0 && snap.Now.Sub(last) < idleAfter
	switch {
	case out.of != "" && (turnedAway || out.holds), out.refuses && sent:
		return inspect.StateQueueing, out.of + out.held, out.until
	case out.of != "" && sent:
		return inspect.StateFlowing, "no request waits, but " + out.of, out.until
	case sent:
		return inspect.StateFlowing, "requests pass without waiting", nil
	}
	reason = "no request was sent in the last minute"
	if last == 0 {
		reason = "no request was sent yet"
	}
	switch {
	case last != 0 && trouble.Unpaid:
		return inspect.StateIdle, reason + "; the last one met a billing stop: " + trouble.Cause, nil
	case last != 0 && failing:
		return inspect.StateIdle, reason + "; the last send failed: " + trouble.Cause, nil
	case out.of != "":
		return inspect.StateIdle, reason + "; " + out.of, out.until
	}
	return inspect.StateIdle, reason, nil
}

// turnedAway reports whether an agent asked for a ticket in the last minute, after the last send: it was refused, or gave
// up waiting. The pool remembers when agents without a lease last asked, to about a second.
func (r *resource) turnedAway(snap *store.Snapshot) bool {
	for i := range snap.Agents {
		a := &snap.Agents[i]
		asked := a.Expires.Add(-r.settings.lease)
		if !a.Leased && asked > snap.Counters.Last && asked <= snap.Now && snap.Now.Sub(asked) < idleAfter {
			return true
		}
	}
	return false
}

// shortage is what has nothing left, although no request waits for it now.
type shortage struct {
	of      string     // and how much of it is used; empty: there is room
	held    string     // what happens to requests, after a colon
	until   *time.Time // nil: not known, or room comes back bit by bit
	gone    bool       // room does not come back bit by bit
	refuses bool       // it refuses the requests that come now
	holds   bool       // it has turned a class away, although requests of others may go
}

// heldAway returns the classes of agents that asked for a ticket in the last minute, after their own last send: requests
// of other classes may have gone since. The pool knows this of agents without a lease.
func (r *resource) heldAway(snap *store.Snapshot) (classes []int) {
	sent := map[string]store.Time{}
	for i := range snap.Callers {
		sent[snap.Callers[i].Agent] = snap.Callers[i].Last
	}
	for i := range snap.Agents {
		a := &snap.Agents[i]
		asked := a.Expires.Add(-r.settings.lease)
		if !a.Leased && asked > sent[a.Name] && asked <= snap.Now && snap.Now.Sub(asked) < idleAfter && !slices.Contains(classes, a.Class) {
			classes = append(classes, a.Class)
		}
	}
	slices.Sort(classes)
	return classes
}

// shortage finds the shared limit with nothing left, of several the one with the latest reset. If no limit is used up
// until a reset, it may be a budget that has nothing left, or too little. If agents of some classes were turned away, it
// may also be a limit whose light or breaker holds those classes.
func (r *resource) shortage(s *inspect.ResourceStatus, snap *store.Snapshot, away []int, budgets []inspect.BudgetStatus) (out shortage) {
	if r.observe {
		return out // it holds no request
	}
	lower := away // the classes that amber and the breaker hold
	if len(away) > 0 && away[0] == 0 {
		lower = away[1:]
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		color := r.lightAhead(snap, l)
		lit := l.Binds && (color == store.Red && len(away) > 0 || color == store.Amber && len(lower) > 0)
		slowed := l.Breaker != "" && len(lower) > 0
		later := out.of == "" || l.ResetAt != nil && (out.until == nil || l.ResetAt.After(*out.until))
		if l.Scope != "" || l.Limit <= 0 || l.Remaining > 0 && !lit && !slowed || !later {
			continue
		}
		out = shortage{of: "the limit " + l.Name + " is full" + levelOf(l), held: ": requests that need it wait or are refused", until: l.ResetAt, gone: out.gone}
		if l.Held != "" {
			out.until = nil // the reset does not help
		}
		switch {
		case l.Remaining > 0 && slowed:
			out.of, out.held, out.holds = "the breaker on the limit "+l.Name+" holds "+r.classNames(lower)+levelOf(l), "", true
		case l.Remaining > 0 && l.Light != color.String(): // each stops where the light begins to hold it
			held := lower
			if color == store.Red {
				held = away
			}
			out.of, out.held, out.holds = "the light on the limit "+l.Name+" holds "+r.classNames(held)+levelOf(l), "", true
		case l.Remaining > 0:
			out.of, out.holds = "the light on the limit "+l.Name+" is "+l.Light+levelOf(l), true
			if out.held = ": lower classes wait or are refused"; l.Light == "red" {
				out.held = ": all but emergencies wait or are refused"
			}
		case l.Plan:
			out.of, out.held, out.gone = "the limit "+l.Name+" is used up"+levelOf(l), ": lower classes wait or are refused", true
		case l.ResetAt != nil && l.Held == "":
			out.of, out.gone = "the limit "+l.Name+" is used up"+levelOf(l), true
		}
	}
	if out.until != nil || r.budgets == nil || !r.spends() {
		return out
	}
	for i := range budgets {
		b := &budgets[i]
		if b.Over != OverDeny || out.refuses {
			continue
		}
		name := "the budget " + b.Name + whose(&Budget{Per: b.Per}, b.Who)
		if b.RemainingUSD <= 0 {
			out = shortage{name + " is used up", ": requests that it pays for are refused", b.ResetsAt, true, b.Per == BudgetFleet, false}
		} else if little, refused := r.budgets.little(b); little && !out.gone {
			out = shortage{name + " has " + usdText(micros(b.RemainingUSD)) + " usd left: larger requests are refused", "", b.ResetsAt, true, refused && b.Per == BudgetFleet, false}
		}
	}
	return out
}

// lightAhead returns the color that the light of a limit has for the next request: that after one more unit.
func (r *resource) lightAhead(snap *store.Snapshot, of *inspect.LimitStatus) store.Color {
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Scope != of.Scope || l.Limit != of.Name {
			continue
		}
		below := func(thousandths int64) bool {
			line := policy.Floor{Amount: policy.Part(l.Size, thousandths)}
			if l.Reset != 0 && !r.light.Static {
				line.Over, line.Until = l.Window.Microseconds(), int64(l.Reset)
			}
			at := line.At(int64(snap.Now))
			return at > 0 && l.Remaining-1 < at
		}
		switch {
		case l.Light == store.Red || below(r.light.Red):
			return store.Red
		case l.Light == store.Amber || below(r.light.Green):
			return store.Amber
		}
		return store.Green
	}
	return store.Green
}

// spends reports whether requests to the resource cost money: by its provider, or because one has stated dollars to this
// process.
func (r *resource) spends() bool { return r.paid || r.charged.Load() }

// levelOf says how much of a limit is used, and which unanswered tickets hold it.
func levelOf(l *inspect.LimitStatus) string {
	if l.Plan {
		return fmt.Sprintf(" (%d%% used)", l.Used*100/l.Limit)
	}
	level := fmt.Sprintf(" (%d of %d used)", l.Used, l.Limit)
	if l.Held != "" {
		level += ", " + l.Held
	}
	return level
}

func outageReason(o *inspect.OutageStatus) string {
	reason := "the store is out of reach"
	if o.Why != "" {
		reason += ": " + o.Why
	}
	if o.Meanwhile != "" {
		reason += "; this process " + o.Meanwhile
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
		limit string
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
func (r *resource) causeWords(s *inspect.ResourceStatus, code store.Code, name string, of map[int]bool) string {
	level := ""
	for i := range s.Limits {
		if l := &s.Limits[i]; l.Name == name && l.Limit > 0 && l.Scope == "" {
			level = levelOf(l)
		}
	}
	the := "a limit"
	if name != "" {
		the = "the limit " + name
	}
	who := r.classNames(slices.Collect(maps.Keys(of)))
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
				return "the limit " + l.Name + " is full" + levelOf(l)
			}
		}
		return "only a few requests go at first, until responses show room for more"
	}
	return the + " has no room" + level
}

// classNames lists classes by name.
func (r *resource) classNames(classes []int) string {
	var names []string
	for _, class := range classes {
		names = append(names, r.settings.className(class))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}
