package inspect

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Status is the state of a gate at one moment.
type Status struct {
	Store     string           `json:"store"`
	Resources []ResourceStatus `json:"resources"`
	Agents    []AgentStatus    `json:"agents"`
	// Cycles lists agents that wait for each other in a circle.
	Cycles [][]string `json:"cycles"`
	// Budgets lists the spending of each budget.
	Budgets []BudgetStatus `json:"budgets"`
}

// AgentStatus is a live agent: it holds a lease, or asked within the length of one.
type AgentStatus struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	User    string `json:"user"`
	Machine string `json:"machine"`
	// Resource is the resource that the agent uses most. Allocated is the agent's part of its first limit on requests,
	// by the share of its class, or [Unknown]. Used is the agent's approximate use of that limit.
	Resource       string     `json:"resource"`
	Allocated      int64      `json:"allocated"`
	Used           int64      `json:"used"`
	LeaseStartedAt *time.Time `json:"lease_started_at"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at"`
	// Leased is set if the agent holds a lease. An agent without one only sent requests: it is live from its first
	// request until LeaseExpiresAt, and has no machine.
	Leased bool `json:"leased"`
	// Slots lists the slots of the user that this agent holds, if slots are bounded: one under its own name, or one per
	// instance, such as indexer#4711.
	Slots []string `json:"slots"`
	// State is "limited" (held by a limit, a pause or the like for longer than a moment), "held" (should start no new
	// work, because an agent it waits for is limited), "waiting" (for its turn) or "active".
	State      string   `json:"state"`
	PauseChain []string `json:"pause_chain"`
	WaitsFor   []string `json:"waits_for"`
}

// ResourceStatus is the state of one resource.
type ResourceStatus struct {
	Name string `json:"name"`
	// Configured is set if the configuration names the resource. Otherwise only other programs use it in the store.
	Configured bool `json:"configured"`
	// Key is the fingerprint of the pool's API key, if each key has its own pool.
	Key string `json:"key"`
	// Mode is "gate", or "observe" if no request is held.
	Mode string `json:"mode"`
	// State is one of [States]: what a person should know first. Reason says why in words. Until is when that is
	// expected to end, or nil if it is not known.
	State  string     `json:"state"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"`
	// FailingModel is set if the resource is failing because the provider rejects requests for this model alone.
	FailingModel string `json:"-"`
	// UsedUp is set if a limit has nothing left until its reset, or a budget with over: deny nothing or too little. The
	// reason names it, unless it names something more important.
	UsedUp bool   `json:"used_up"`
	Light  string `json:"light"`
	// LightBinds is set if the light holds lower classes back on some limit. Otherwise the light is only shown.
	LightBinds bool `json:"light_binds"`
	// BillingStop is set while the provider refuses requests until a person adds credit or raises a limit there. The
	// state is paused, but the gate still sends requests, so that each caller sees the refusal.
	BillingStop bool       `json:"billing_stop"`
	PausedUntil *time.Time `json:"paused_until"`
	PauseReason string     `json:"pause_reason"`
	// Consecutive429 counts the refusals in a row that led to a pause: of the whole resource, or of the model or key with
	// the most.
	Consecutive429 int            `json:"consecutive_429"`
	Last429        *time.Time     `json:"last_429"`
	LastSend       *time.Time     `json:"last_send"`
	Waiting        map[string]int `json:"waiting"` // by class
	InFlight       int            `json:"in_flight"`
	Limits         []LimitStatus  `json:"limits"`
	Gates          []PauseStatus  `json:"gates"`
	CallerStatus
	Callers []CallerStatus `json:"callers"`
	Models  []ModelStatus  `json:"models"` // by name
	// PastGate counts the connections of commands under sluice run on this machine that went past the gate in the last hour,
	// and PastHosts says where they went. PastGate is nil if no such command made a call.
	PastGate  *int64           `json:"past_gate"`
	PastHosts map[string]int64 `json:"past_hosts"`
	// Throttled7d counts the refusals of the last seven days.
	Throttled7d int64 `json:"throttled_7d"`
	// Advice names the setting to change because of these refusals; nil if there were fewer than two.
	Advice *Advice `json:"advice"`
	// Outage is set while this process cannot reach the store. All other figures are then unknown and empty.
	Outage *OutageStatus `json:"outage"`
	// Members counts the processes that have a share to use when the store cannot be reached. SilentMembers counts
	// the members without a sign of life for seconds: they may be using their share now.
	Members       int `json:"members"`
	SilentMembers int `json:"silent_members"`
	// Log describes the log of a store whose processes share one, such as Redis, as this process knows it. It is nil for
	// other stores.
	Log *LogStatus `json:"log,omitempty"`
}

// LogStatus describes the log that a resource's processes share, and this process's copy of the pool.
type LogStatus struct {
	Process   string `json:"process"`   // this process: its tickets begin with it
	Processes int    `json:"processes"` // that share the pool
	// Rules is the number of the rules by which the pool decides, RulesKnown the highest that this process knows. HoldBack
	// lists the processes that know none above Rules.
	Rules      int      `json:"rules"`
	RulesKnown int      `json:"rules_known"`
	HoldBack   []string `json:"hold_back"`
	// Counted since this process opened the pool: see [EventLogFault], and the snapshots that this process wrote.
	Diverged      int64 `json:"diverged"`
	Poisoned      int64 `json:"poisoned"`
	Lost          int64 `json:"lost"`
	Behind        int64 `json:"behind"`
	Snapshots     int64 `json:"snapshots"`
	Bytes         int64 `json:"bytes"` // of the log since the latest snapshot
	SnapshotBytes int64 `json:"snapshot_bytes"`
}

// OutageStatus describes a store that cannot be reached and what this process does meanwhile.
type OutageStatus struct {
	Since   *time.Time `json:"since"`
	Why     string     `json:"why"`
	Mode    string     `json:"mode"`    // share, closed or open
	Granted int64      `json:"granted"` // by this process since then
	// Meanwhile says in words what this process does with requests now.
	Meanwhile string `json:"meanwhile"`
}

// LimitStatus is the state of one limit, for one scope.
type LimitStatus struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`      // how it is counted: "rolling" if responses contradict a bucket
	WindowMS int64  `json:"window_ms"` // as responses state it; 0 for concurrency
	Unit     string `json:"unit"`
	Scope    string `json:"scope"`
	Limit    int64  `json:"limit"` // a bucket's is what it holds
	// Rate is how much of the limit comes back in each window: less or more than Limit for a bucket with a burst. 0 for
	// concurrency, and while it is not known.
	Rate      int64      `json:"rate"`
	Used      int64      `json:"used"`
	Remaining int64      `json:"remaining"`
	Outside   int64      `json:"outside"`
	ResetAt   *time.Time `json:"reset_at"`
	Light     string     `json:"light"`
	// LightReason says why the light is calmer than its percentages suggest: they shrink as the reset comes near. It is
	// empty if the light is the one that they give.
	LightReason string `json:"light_reason"`
	// Breaker is "open" or "gliding" while the quota would run out before its reset, at GoneAt; otherwise empty.
	Breaker string     `json:"breaker"`
	GoneAt  *time.Time `json:"gone_at"`
	// DiffersFrom is the member whose different size is in force, because it is smaller or came last. It is empty if
	// the size comes from this configuration or from the provider.
	DiffersFrom string `json:"differs_from"`
	// Binds is set if the light holds lower classes back. Otherwise it is only shown.
	Binds bool `json:"light_binds"`
	// Withheld is neither used nor remaining: it is the shares of processes that may be cut off from the store and
	// continue on their own.
	Withheld int64 `json:"withheld"`
	// Learned is set if the provider stated the size and the configuration states none.
	Learned bool `json:"learned"`
	// Held says in words which unanswered tickets leave no room, however much time passes, and until when at the latest.
	// HeldBy lists their agents. Both are empty if time alone makes room.
	Held   string   `json:"-"`
	HeldBy []string `json:"-"`
	// Plan is set for a window of a subscription, counted in millionths. GoneAt is then when it would be used up at the
	// rate since it began, if that is before its reset.
	Plan bool `json:"plan"`
}

// PauseStatus is a pause, probe or ramp in force.
type PauseStatus struct {
	Scope string     `json:"scope"`
	Phase string     `json:"phase"`
	Until *time.Time `json:"until"`
	// ProbeAt is when one request may test a pause that is longer than the backoff's cap; nil if there is no probe.
	ProbeAt *time.Time `json:"probe_at"`
	// Consecutive429 counts the refusals in a row that led to it.
	Consecutive429 int    `json:"consecutive_429"`
	Cause          string `json:"cause"`
}

// CallerStatus counts the sends of one agent, or of all agents. MeanPerS is the mean from the first to the last send,
// over at least one second; that of a [CallerReport] is over whole minutes.
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
	// HeldUntil is when the last of the unanswered tickets ends that hold the limit, if none is closed or renewed before.
	// HeldBy names their agents, and ExpectedAt is nil, because it depends on them. HeldUntil is nil if time alone makes
	// room.
	HeldUntil *time.Time `json:"held_until"`
	Reason    string     `json:"reason"`
	// Scope is what the pause covers that holds the request, such as model=opus. It is empty for a pause of the whole
	// resource, and if no pause holds the request.
	Scope string `json:"scope"`
	// Model is the model that the request names.
	Model string `json:"-"`
	// Own is set if the request waits in this process.
	Own bool `json:"-"`
}

// ModelStatus is a model of a resource. Listed are models with waiting requests, with limits or a pause of their own,
// and models requested under another name.
type ModelStatus struct {
	// Model is the class that the provider limits.
	Model string `json:"model"`
	// Requested is the name that a client last used for the model; empty if that is not known or the same.
	Requested string `json:"requested"`
	Waiting   int    `json:"waiting"`
}

// AllWaiting returns how many requests wait, of all classes together.
func (r *ResourceStatus) AllWaiting() (n int) {
	for _, waiting := range r.Waiting {
		n += waiting
	}
	return n
}

// Model returns the status of a model. It adds the model if necessary.
func (r *ResourceStatus) Model(model string) *ModelStatus {
	at, there := slices.BinarySearchFunc(r.Models, model, func(m ModelStatus, name string) int { return strings.Compare(m.Model, name) })
	if !there {
		r.Models = slices.Insert(r.Models, at, ModelStatus{Model: model})
	}
	return &r.Models[at]
}

// PoolStatus shows how a resource's quota is divided.
type PoolStatus struct {
	// TotalLimit is the size of the first unscoped limit on requests. If there is none, it is the sum over all models
	// of the first limit of each. It is 0 if no size is known.
	TotalLimit  int64                      `json:"totalLimit"`
	ResetAt     *time.Time                 `json:"resetAt"`
	Allocations map[string]AgentAllocation `json:"allocations"` // by agent
}

// AgentAllocation is an agent's part of a quota: its class's share among live classes, divided by the live agents of
// the class. The agent may also use what others leave.
type AgentAllocation struct {
	Priority    int        `json:"priority"`  // of its class; 0 is the highest
	Allocated   int64      `json:"allocated"` // or [Unknown]
	Used        int64      `json:"used"`      // approximate
	LeaseExpiry *time.Time `json:"leaseExpiry"`
	LeaseStart  *time.Time `json:"leaseStart"`
	// Leased is set if the agent holds a lease. Otherwise it only sent requests and counts as live for the length of a
	// lease.
	Leased  bool   `json:"leased"`
	Class   string `json:"class"`
	User    string `json:"user"`
	Machine string `json:"machine"`
	State   string `json:"state"` // as in [AgentStatus]
}

// withNulls encodes v and, if unknown is set, replaces the given fields with null. The fields keep their order, for
// people who read the JSON.
func withNulls(v any, unknown bool, fields ...string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || !unknown {
		return b, err
	}
	for _, f := range fields {
		key := []byte(`"` + f + `":`) // cannot match inside a string, where quotes are escaped
		at := bytes.Index(b, key)
		if at < 0 {
			continue
		}
		at += len(key)
		if n := bytes.IndexAny(b[at:], ",}"); n >= 0 {
			b = append(b[:at:at], append([]byte("null"), b[at+n:]...)...)
		}
	}
	return b, nil
}

// MarshalJSON writes null for the size of a limit that is not known yet, for what remains of it and for its rate.
func (l LimitStatus) MarshalJSON() ([]byte, error) {
	type plain LimitStatus
	return withNulls(plain(l), l.Limit <= 0, "limit", "remaining", "rate")
}

// MarshalJSON writes null for figures that only the store knows while it cannot be reached.
func (r ResourceStatus) MarshalJSON() ([]byte, error) {
	type plain ResourceStatus
	return withNulls(plain(r), r.Outage != nil, "used_up", "light", "light_binds", "consecutive_429", "in_flight", "sent", "throttled", "retried", "waited_ms",
		"peak_per_s", "mean_per_s", "throttled_7d", "members", "silent_members")
}

// Unknown is the allocation of an agent if no size of a limit is known. In JSON it is null. 0 is a known allocation: a
// share that is less than one request.
const Unknown = -1

// MarshalJSON writes null for an unknown allocation.
func (a AgentStatus) MarshalJSON() ([]byte, error) {
	type plain AgentStatus
	return withNulls(plain(a), a.Allocated < 0, "allocated")
}

// UnmarshalJSON reads null as an unknown allocation.
func (a *AgentStatus) UnmarshalJSON(b []byte) error {
	type plain AgentStatus
	p := plain{Allocated: Unknown}
	err := json.Unmarshal(b, &p)
	*a = AgentStatus(p)
	return err
}

// MarshalJSON writes null for an unknown quota.
func (p PoolStatus) MarshalJSON() ([]byte, error) {
	type plain PoolStatus
	return withNulls(plain(p), p.TotalLimit <= 0, "totalLimit")
}

// MarshalJSON writes null for an unknown allocation.
func (a AgentAllocation) MarshalJSON() ([]byte, error) {
	type plain AgentAllocation
	return withNulls(plain(a), a.Allocated < 0, "allocated")
}

// UnmarshalJSON reads null as an unknown allocation.
func (a *AgentAllocation) UnmarshalJSON(b []byte) error {
	type plain AgentAllocation
	p := plain{Allocated: Unknown}
	err := json.Unmarshal(b, &p)
	*a = AgentAllocation(p)
	return err
}
