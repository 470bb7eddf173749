package sluice

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Status reads the state of all resources. If this process continues on its own while the store cannot be reached,
// there is no error: the status reports the outage.
func (g *Gate) Status(ctx context.Context) (inspect.Status, error) {
	s := inspect.Status{Store: g.Store(), Resources: []inspect.ResourceStatus{}, Agents: []inspect.AgentStatus{}, Cycles: [][]string{}, Budgets: []inspect.BudgetStatus{}}
	v, err := g.look(ctx, true)
	if err != nil {
		return s, err
	}
	budgets, err := g.Budgets(ctx)
	if err == nil {
		s.Budgets = budgets
	}
	for i, name := range v.names {
		s.Resources = append(s.Resources, g.resources[name].status(&v.snaps[i], s.Budgets))
	}
	s.Agents = v.agents()
	s.Cycles = append(s.Cycles, v.graph.Cycles()...)
	if err != nil && !v.cutOff {
		return s, err
	}
	return s, nil
}

// Why lists the requests that wait for a resource, in order. Each entry has the limit that it waits for, who holds it,
// and when it is expected to go.
func (g *Gate) Why(ctx context.Context, resource string) ([]inspect.Waiting, error) {
	r, err := g.resource(resource)
	if err != nil {
		return nil, err
	}
	snap, err := r.read(ctx)
	if err != nil {
		return nil, r.storeError(err)
	}
	list, c := []inspect.Waiting{}, clockAt(snap.Now)
	for _, w := range snap.Queue {
		if w.Reason.Code == store.CodeSlowed { // it waits in the budget's own queue
			list = append(list, inspect.Waiting{
				Ticket: fmt.Sprintf("%s.slow%x-%x", r.name, w.ID.Session, w.ID.N), Agent: w.Agent, Class: r.settings.className(w.Class), Limit: w.HeldBy[0], HeldBy: w.HeldBy[1:], Position: w.Position,
				ExpectedAt: c.moment(w.Expected), Reason: w.Reason.Code.String(),
			})
			continue
		}
		list = append(list, inspect.Waiting{
			Ticket: r.ticketID(w.ID), Agent: w.Agent, Class: r.settings.className(w.Class), Limit: w.Reason.Limit,
			HeldBy: append([]string{}, w.HeldBy...), Position: w.Position, ExpectedAt: c.moment(w.Expected), HeldUntil: c.moment(w.HeldUntil), Reason: w.Reason.Code.String(), Model: w.Model,
			Scope: pausedScope(snap.Gates, &w), Own: w.ID.Session == r.session.Load(),
		})
	}
	return list, nil
}

// pausedScope returns what the pause covers that holds a request: empty for the whole resource, if no pause holds it, or
// if it may be one of several keys.
func pausedScope(gates []store.PauseState, w *store.Waiter) (scope string) {
	if w.Reason.Code != store.CodePaused && w.Reason.Code != store.CodeProbe {
		return ""
	}
	for _, g := range gates {
		rest, ofModel := strings.CutPrefix(g.Scope, "model=")
		model, _, _ := strings.Cut(rest, ",")
		switch {
		case g.Phase == "ramping" || ofModel && model != w.Model:
		case g.Scope == "" || scope != "":
			return ""
		default:
			scope = g.Scope
		}
	}
	return scope
}

// Resource reads the state of one resource; see [Gate.Status].
func (g *Gate) Resource(ctx context.Context, name string) (inspect.ResourceStatus, error) {
	return g.resourceStatus(ctx, name, func() []inspect.BudgetStatus {
		budgets, _ := g.Budgets(ctx) // without them, the state is of the limits alone
		return budgets
	})
}

// resourceStatus is Resource with a way to read the budgets, which is called if the state depends on them.
func (g *Gate) resourceStatus(ctx context.Context, name string, read func() []inspect.BudgetStatus) (inspect.ResourceStatus, error) {
	r, err := g.resource(name)
	if err != nil {
		return inspect.ResourceStatus{}, err
	}
	snap, cutOff, err := r.snapshot(ctx, true)
	if err != nil {
		return inspect.ResourceStatus{}, err
	}
	var budgets []inspect.BudgetStatus
	if r.spends() && !cutOff {
		budgets = read()
	}
	return r.status(&snap, budgets), nil
}

// Levels returns what is left of a resource's limits, and how many callers the resource has. It reads no budgets.
func (g inside) Levels(ctx context.Context, resource string) (limits []inspect.LimitStatus, callers int, err error) {
	r, err := g.resource(resource)
	if err != nil {
		return nil, 0, err
	}
	snap, _, err := r.snapshot(ctx, true)
	if err != nil {
		return nil, 0, err
	}
	return r.limitStatus(&snap), len(snap.Callers), nil
}

func (r *resource) status(snap *store.Snapshot, budgets []inspect.BudgetStatus) inspect.ResourceStatus {
	c := clockAt(snap.Now)
	s := inspect.ResourceStatus{
		Name: r.name, Configured: !r.other, Mode: r.mode(), Waiting: map[string]int{}, InFlight: snap.InFlight, Last429: c.moment(snap.Counters.Last429),
		LastSend: c.moment(snap.Counters.Last),
		Limits:   r.limitStatus(snap), Gates: []inspect.PauseStatus{}, Callers: []inspect.CallerStatus{}, Models: []inspect.ModelStatus{}, CallerStatus: callerStatus("", snap.Counters),
		Light: snap.Light.String(), Throttled7d: snap.Throttled7d, Outage: r.outage(), Members: len(snap.Members), Log: r.logStatus(),
	}
	if a, ok := policy.AdviseOnRefusals(r.facts(snap)); ok {
		s.Advice = new(inspect.Advice(a))
	}
	for i := range snap.Members {
		if snap.Members[i].Silent {
			s.SilentMembers++
		}
	}
	for i, n := range snap.Waiting {
		s.Waiting[r.settings.className(i)] = n
	}
	for _, g := range snap.Gates {
		if r.observe {
			break // in mode observe they hold no request
		}
		s.Gates = append(s.Gates, inspect.PauseStatus{Scope: g.Scope, Phase: g.Phase, Until: c.moment(g.Until), ProbeAt: c.moment(g.Probe), Consecutive429: g.Consecutive, Cause: g.Cause})
		s.Consecutive429 = max(s.Consecutive429, g.Consecutive)
		if g.Scope == "" {
			if g.Phase == "paused" {
				s.PausedUntil = c.moment(g.Until)
			}
			if g.Phase == "paused" || g.Phase == "probing" { // afterwards the cause is history
				s.PauseReason = g.Cause
			}
		}
	}
	for _, c := range snap.Callers {
		s.Callers = append(s.Callers, callerStatus(c.Agent, c.Counters))
	}
	r.addModels(&s, snap)
	r.setState(&s, snap, budgets)
	return s
}

// limitStatus returns the state of each limit.
func (r *resource) limitStatus(snap *store.Snapshot) []inspect.LimitStatus {
	list, c := []inspect.LimitStatus{}, clockAt(snap.Now)
	for _, l := range snap.Limits {
		def := r.limit(l.Limit)
		if def == nil || def.Plan && l.Size == 0 {
			continue // added by another member, or the resource is not used by subscription
		}
		var held string
		var heldBy []string
		if l.Hold.Full {
			held, heldBy = heldWords(l.Hold.By, l.Hold.Tickets, c.time(l.Hold.Until)), l.Hold.By
		}
		list = append(list, inspect.LimitStatus{
			Name: def.Name, Kind: l.Kind.String(), WindowMS: l.Window.Milliseconds(), Unit: def.Unit, Scope: l.Scope, Limit: l.Size, Rate: rateOf(&l), Used: l.Used,
			Remaining: l.Remaining, Outside: l.Outside, ResetAt: c.moment(resetOf(&l)),
			Light: l.Light.String(), LightReason: r.lightReason(&l, snap.Now), Breaker: r.breaker(l.Breaker), GoneAt: c.moment(goneOf(&l, def.Plan, snap.Now)), DiffersFrom: r.differs(&l), Binds: l.Binds,
			Withheld: l.Withheld, Learned: sizeOf(def) == 0 && l.Size > 0, Held: held, HeldBy: heldBy, Plan: def.Plan,
		})
	}
	return list
}

// sizeOf returns what a limit can hold.
func sizeOf(l *store.Limit) int64 {
	if l.Kind == Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Size
}

// rateOf returns how much of a limit comes back in each window.
func rateOf(l *store.LimitState) int64 {
	switch {
	case l.Kind == Concurrency:
		return 0
	case l.Kind == Bucket && l.RefillEvery > 0:
		high, low := bits.Mul64(uint64(l.Refill), uint64(l.Window))
		if every := uint64(l.RefillEvery); high < every {
			n, _ := bits.Div64(high, low, every)
			return int64(min(n, math.MaxInt64))
		}
	}
	return l.Size
}

// differs returns the member whose different size of a limit is in force instead of ours. It is empty if our size or
// the provider's is in force.
func (r *resource) differs(l *store.LimitState) string {
	def := r.limit(l.Limit)
	if def == nil {
		return ""
	}
	ours := sizeOf(def)
	switch {
	case l.By == "" || ours == 0 || l.Size == ours || l.Cut > 0:
		return ""
	case l.By != r.settings.member:
		return l.By
	case r.settings.restate: // another process states what this one did before
		return "another process that has the earlier configuration"
	}
	return ""
}

func (r *resource) mode() string {
	if r.observe {
		return "observe"
	}
	return "gate"
}

// lightReason says why a light that holds requests back is calmer than its percentages: they shrink until the reset.
func (r *resource) lightReason(l *store.LimitState, now store.Time) string {
	s, unshrunk, next := &r.light, store.Green, ""
	line := s.Green
	switch {
	case l.Remaining < policy.Part(l.Size, s.Red):
		unshrunk = store.Red
	case l.Remaining < policy.Part(l.Size, s.Green):
		unshrunk = store.Amber
	}
	switch {
	case !l.Binds || s.Static || l.Size <= 0 || l.Light >= unshrunk:
		return ""
	case l.Light == store.Green:
		next = store.Amber.String()
	default:
		next, line = store.Red.String(), s.Red
	}
	left := float64(min(max(l.Reset.Sub(now), 0), l.Window)) / float64(l.Window)
	return fmt.Sprintf("%s with %.3g%% left: it turns %s below %.3g%%, which shrinks from %d%% to 0 until the reset (mode: static keeps %d%%)",
		l.Light, 100*float64(l.Remaining)/float64(l.Size), next, left*float64(line)/10, line/10, line/10)
}

func (r *resource) breaker(b store.BreakerState) string {
	switch {
	case !b.Tripped:
		return ""
	case r.breakerOpens:
		return "open"
	default:
		return "gliding"
	}
}

// goneOf returns when a quota is expected to run out; 0 if that is not foreseen. A forecast of the breaker stays until the
// next sample, and can be over.
func goneOf(l *store.LimitState, plan bool, now store.Time) store.Time {
	switch {
	case plan:
		return planGone(l, now)
	case l.Breaker.Gone <= now:
		return 0
	}
	return l.Breaker.Gone
}

// resetOf returns when a window is expected to reset: the middle of the possible range.
func resetOf(l *store.LimitState) store.Time {
	if l.Reset == 0 {
		return 0
	}
	const fine = store.Time(1000) // not known to the microsecond: do not show midnight as just before
	return (l.Reset.Add(-l.Doubt) + fine/2) / fine * fine
}

func callerStatus(agent string, c store.Counters) inspect.CallerStatus {
	return inspect.CallerStatus{
		Agent: agent, Sent: c.Sent, Throttled: c.Throttled, Retried: c.Retried, WaitedMS: c.Waited.Milliseconds(),
		PeakPerS: c.Peak, MeanPerS: c.Mean(),
	}
}

// In reports whether a limit with the given scope, such as model=opus, counts the request.
func (req *Request) In(scope string) bool {
	for _, own := range [...]string{"agent=" + req.Agent, "user=" + req.User, "model=" + req.Model, "tool=" + req.Tool, "key=" + cmp.Or(req.Key, keylabel.None)} {
		if rest, ok := strings.CutPrefix(scope, own); ok && (rest == "" || rest[0] == ',') {
			scope = strings.TrimPrefix(rest, ",")
		}
	}
	return scope == ""
}
