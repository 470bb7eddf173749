package sluice

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/store"
)

// Status is the state of a gate at one moment.
type Status struct {
	Store     string           `json:"store"`
	Resources []ResourceStatus `json:"resources"`
	Agents    []AgentStatus    `json:"agents"`
	// Cycles are circles of agents that wait for each other.
	Cycles [][]string `json:"cycles"`
	// Budgets are what was spent of each.
	Budgets []BudgetStatus `json:"budgets"`
}

// AgentStatus is an agent that is alive: it holds a lease, or has asked within the length of
// one.
type AgentStatus struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	User    string `json:"user"`
	Machine string `json:"machine"`
	// Allocated is the agent's part of the resource that it uses most: of the first limit on
	// its requests, by its class's share. Used is what it has used of that, about.
	Resource       string     `json:"resource"`
	Allocated      int64      `json:"allocated"`
	Used           int64      `json:"used"`
	LeaseStartedAt *time.Time `json:"lease_started_at"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at"`
	// Leased tells that the agent holds a lease. One that does not has only asked: it counts as alive from its first
	// request until LeaseExpiresAt, and has no machine.
	Leased bool `json:"leased"`
	// Slots are those of its user's that the agent holds, where slots are bounded: under its own name, or one for each of its
	// instances, such as indexer#4711.
	Slots []string `json:"slots"`
	// State is limited (held up by a limit, a pause or the like for longer than a moment),
	// held (should start no new work: an agent that it waits for is limited), waiting (for
	// its turn), or active.
	State      string   `json:"state"`
	PauseChain []string `json:"pause_chain"`
	WaitsFor   []string `json:"waits_for"`
}

// ResourceStatus is the state of one resource.
type ResourceStatus struct {
	Name string `json:"name"`
	// Configured tells that the configuration names the resource. Other programs use the others in the store.
	Configured bool `json:"configured"`
	// Key is the fingerprint of the key that the pool is for, where each key has its own.
	Key string `json:"key"`
	// Mode is gate, or observe where nobody is held.
	Mode string `json:"mode"`
	// State is one of [States]: what a person should know first. Reason says why in words, and Until when that
	// is expected to end; nil: it has no known end.
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"`
	Light  string     `json:"light"`
	// LightBinds tells that the light holds lower classes back on some limit. Where it does not, it is only shown.
	LightBinds bool `json:"light_binds"`
	// BillingStop tells that the provider refuses requests until a person adds credit or raises a limit there. The state is
	// paused; the gate holds nothing back because of it, so that each caller sees the refusal.
	BillingStop    bool           `json:"billing_stop"`
	PausedUntil    *time.Time     `json:"paused_until"`
	PauseReason    string         `json:"pause_reason"`
	Consecutive429 int            `json:"consecutive_429"`
	Last429        *time.Time     `json:"last_429"`
	LastSend       *time.Time     `json:"last_send"`
	Waiting        map[string]int `json:"waiting"` // by class
	InFlight       int            `json:"in_flight"`
	Limits         []LimitStatus  `json:"limits"`
	Gates          []GateStatus   `json:"gates"`
	CallerStatus
	Callers []CallerStatus `json:"callers"`
	Models  []ModelStatus  `json:"models"` // by name
	// Throttled7d is how many refusals there were in the last seven days.
	Throttled7d int64 `json:"throttled_7d"`
	// Outage tells that this process cannot reach the store; nil: it can. Meanwhile all else is
	// unknown, and empty.
	Outage *OutageStatus `json:"outage"`
	// Members is how many processes have a share to go on with when the store cannot be reached, and
	// SilentMembers how many of them have not been heard of for seconds: they may be doing that now.
	Members       int `json:"members"`
	SilentMembers int `json:"silent_members"`
}

// OutageStatus tells that the store cannot be reached, and what this process does meanwhile.
type OutageStatus struct {
	Since   *time.Time `json:"since"`
	Why     string     `json:"why"`
	Mode    string     `json:"mode"`    // share, closed or open
	Granted int64      `json:"granted"` // let go by this process since then
}

// LimitStatus is the state of one limit, for one scope.
type LimitStatus struct {
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`      // counted as: rolling where answers contradict a bucket
	WindowMS  int64      `json:"window_ms"` // counted over: as answers state it; 0 for concurrency
	Unit      string     `json:"unit"`
	Scope     string     `json:"scope"`
	Limit     int64      `json:"limit"`
	Used      int64      `json:"used"`
	Remaining int64      `json:"remaining"`
	Outside   int64      `json:"outside"`
	ResetAt   *time.Time `json:"reset_at"`
	Light     string     `json:"light"`
	// Breaker is open or gliding while the quota would be gone before its reset, else empty;
	// GoneAt is when that would be.
	Breaker string     `json:"breaker"`
	GoneAt  *time.Time `json:"gone_at"`
	// DiffersFrom is the member that states another size, which holds because it is smaller or
	// because it came last; empty if the size is that of this configuration, or the provider's.
	DiffersFrom string `json:"differs_from"`
	// Binds tells that the light is not merely shown: it holds lower classes back.
	Binds bool `json:"light_binds"`
	// Withheld is what is neither used nor remaining: shares of processes that may be cut off from
	// the store and go on by themselves.
	Withheld int64 `json:"withheld"`
	// Learned tells that the size is the provider's own word: the configuration states none.
	Learned bool `json:"learned"`
}

// GateStatus is a pause, probe or ramp in force.
type GateStatus struct {
	Scope string     `json:"scope"`
	Phase string     `json:"phase"`
	Until *time.Time `json:"until"`
	// ProbeAt is when one request may test a pause that is longer than the backoff's cap; nil if none may.
	ProbeAt *time.Time `json:"probe_at"`
	Cause   string     `json:"cause"`
}

// CallerStatus is what was sent, by one agent or by all.
type CallerStatus struct {
	Agent     string  `json:"agent,omitempty"`
	Sent      int64   `json:"sent"`
	Throttled int64   `json:"throttled"`
	Retried   int64   `json:"retried"`
	WaitedMS  int64   `json:"waited_ms"`
	PeakPerS  int64   `json:"peak_per_s"`
	MeanPerS  float64 `json:"mean_per_s"`
}

// Waiting is a request in the queue and why it is there.
type Waiting struct {
	Ticket     string     `json:"ticket"`
	Agent      string     `json:"agent"`
	Class      string     `json:"class"`
	Limit      string     `json:"limit"`
	HeldBy     []string   `json:"held_by"`
	Position   int        `json:"position"`
	ExpectedAt *time.Time `json:"expected_at"`
	Reason     string     `json:"reason"`
	// Model is what it is for, as the request said.
	Model string `json:"-"`
	// Own tells that it waits at this gate, in this process.
	Own bool `json:"-"`
}

// Status reads the state of all resources. A process that goes on by itself while the store cannot be
// reached gets no error: the outage is the state.
func (g *Gate) Status(ctx context.Context) (Status, error) {
	s := Status{Store: g.Store(), Resources: []ResourceStatus{}, Agents: []AgentStatus{}, Cycles: [][]string{}, Budgets: []BudgetStatus{}}
	v, err := g.look(ctx, true)
	if err != nil {
		return s, err
	}
	for i, name := range v.names {
		s.Resources = append(s.Resources, g.resources[name].status(&v.snaps[i]))
	}
	s.Agents = v.agents()
	s.Cycles = append(s.Cycles, v.graph.Cycles()...)
	if budgets, err := g.Budgets(ctx); err == nil {
		s.Budgets = budgets
	} else if !v.cutOff {
		return s, err
	}
	return s, nil
}

// Why lists who waits for a resource, in order, each with the limit in the way, who holds
// it, and when it is expected to go.
func (g *Gate) Why(ctx context.Context, resource string) ([]Waiting, error) {
	r, err := g.resource(resource)
	if err != nil {
		return nil, err
	}
	snap, err := r.read(ctx)
	if err != nil {
		return nil, r.storeError(err)
	}
	list, c := []Waiting{}, clockAt(snap.Now)
	for _, w := range snap.Queue {
		list = append(list, Waiting{
			Ticket: r.ticketID(w.ID), Agent: w.Agent, Class: r.plan.className(w.Class), Limit: r.limitName(w.Reason.Limit),
			HeldBy: append([]string{}, w.HeldBy...), Position: w.Position, ExpectedAt: c.moment(w.Expected), Reason: w.Reason.Code.String(), Model: w.Model,
			Own: w.ID.Session == r.session.Load(),
		})
	}
	return list, nil
}

// Resource reads the state of one resource; see [Gate.Status].
func (g *Gate) Resource(ctx context.Context, name string) (ResourceStatus, error) {
	r, err := g.resource(name)
	if err != nil {
		return ResourceStatus{}, err
	}
	snap, _, err := r.snapshot(ctx, true)
	if err != nil {
		return ResourceStatus{}, err
	}
	return r.status(&snap), nil
}

func (r *resource) status(snap *store.Snapshot) ResourceStatus {
	c := clockAt(snap.Now)
	s := ResourceStatus{
		Name: r.name, Configured: !r.other, Mode: r.mode(), Waiting: map[string]int{}, InFlight: snap.InFlight, Last429: c.moment(snap.Counters.Last429),
		LastSend: c.moment(snap.Counters.Last),
		Limits:   []LimitStatus{}, Gates: []GateStatus{}, Callers: []CallerStatus{}, Models: []ModelStatus{}, CallerStatus: callerStatus("", snap.Counters),
		Light: snap.Light.String(), Throttled7d: snap.Throttled7d, Outage: r.outage(), Members: len(snap.Members),
	}
	for i := range snap.Members {
		if snap.Members[i].Silent {
			s.SilentMembers++
		}
	}
	for i, n := range snap.Waiting {
		s.Waiting[r.plan.className(i)] = n
	}
	for _, l := range snap.Limits {
		if l.Limit >= len(r.limits) {
			continue // another member added it: its name is not known here
		}
		def := r.limits[l.Limit]
		s.Limits = append(s.Limits, LimitStatus{
			Name: def.Name, Kind: l.Kind.String(), WindowMS: l.Window.Milliseconds(), Unit: def.Unit, Scope: l.Scope, Limit: l.Size, Used: l.Used,
			Remaining: l.Remaining, Outside: l.Outside, ResetAt: c.moment(resetOf(&l)),
			Light: l.Light.String(), Breaker: r.breaker(l.Breaker), GoneAt: c.moment(l.Breaker.Gone), DiffersFrom: r.differs(&l), Binds: l.Binds,
			Withheld: l.Withheld, Learned: sizeOf(&def) == 0 && l.Size > 0,
		})
	}
	for _, g := range snap.Gates {
		if r.observe {
			break // they hold nobody
		}
		s.Gates = append(s.Gates, GateStatus{Scope: g.Scope, Phase: g.Phase, Until: c.moment(g.Until), ProbeAt: c.moment(g.Probe), Cause: g.Cause})
		if g.Scope == "" {
			s.PauseReason, s.Consecutive429 = g.Cause, g.Consecutive
			if g.Phase == "paused" {
				s.PausedUntil = c.moment(g.Until)
			}
		}
	}
	for _, c := range snap.Callers {
		s.Callers = append(s.Callers, callerStatus(c.Agent, c.Counters))
	}
	r.addModels(&s, snap)
	r.setState(&s, snap)
	return s
}

// sizeOf is what a limit can hold.
func sizeOf(l *store.Limit) int64 {
	if l.Kind == Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Size
}

// differs returns the member whose smaller size of a limit is in force instead of ours; empty if
// ours is, or the provider's.
func (r *resource) differs(l *store.LimitState) string {
	ours := sizeOf(&r.limits[l.Limit])
	switch {
	case l.By == "" || ours == 0 || l.Size == ours || l.Cut > 0:
		return ""
	case l.By != r.plan.member:
		return l.By
	case r.plan.restate: // it cannot be taken back while others may rely on it
		return "this process, by an earlier configuration"
	}
	return ""
}

func (r *resource) mode() string {
	if r.observe {
		return "observe"
	}
	return "gate"
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

// resetOf is when a window is expected to reset: in the middle of what is known.
func resetOf(l *store.LimitState) store.Time {
	if l.Reset == 0 {
		return 0
	}
	const fine = store.Time(1000) // it is not known to the microsecond: midnight is not to be shown as just before
	return (l.Reset.Add(-l.Doubt) + fine/2) / fine * fine
}

func callerStatus(agent string, c store.Counters) CallerStatus {
	return CallerStatus{
		Agent: agent, Sent: c.Sent, Throttled: c.Throttled, Retried: c.Retried, WaitedMS: c.Waited.Milliseconds(),
		PeakPerS: c.Peak, MeanPerS: c.Mean(),
	}
}

func (r *resource) limitName(i int8) string {
	if i < 0 || int(i) >= len(r.limits) {
		return ""
	}
	return r.limits[i].Name
}

// In reports whether a limit with a scope, such as model=opus, counts the request: those of other agents, models and the like do not.
func (req *Request) In(scope string) bool {
	for _, own := range [...]string{"agent=" + req.Agent, "user=" + req.User, "model=" + req.Model, "tool=" + req.Tool, "key=" + cmp.Or(req.Key, keylabel.None)} {
		if rest, ok := strings.CutPrefix(scope, own); ok && (rest == "" || rest[0] == ',') {
			scope = strings.TrimPrefix(rest, ",")
		}
	}
	return scope == ""
}
