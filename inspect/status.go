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
	Gates          []PauseStatus  `json:"gates"`
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
	// Plan tells that it is a window of a subscription, counted in millionths. GoneAt is then when it would be used up at the rate
	// since it began, if that is before its reset.
	Plan bool `json:"plan"`
}

// PauseStatus is a pause, probe or ramp in force.
type PauseStatus struct {
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

// ModelStatus is a model of a resource: one that somebody waits for, that has limits or a pause of its own, or that was asked for
// under another name.
type ModelStatus struct {
	// Model is the class that the provider limits.
	Model string `json:"model"`
	// Requested is the name that a client wrote for it last; empty if that is not known, or the same.
	Requested string `json:"requested"`
	Waiting   int    `json:"waiting"`
}

// Model returns the status of a model, which is added if it is not there yet.
func (r *ResourceStatus) Model(model string) *ModelStatus {
	at, there := slices.BinarySearchFunc(r.Models, model, func(m ModelStatus, name string) int { return strings.Compare(m.Model, name) })
	if !there {
		r.Models = slices.Insert(r.Models, at, ModelStatus{Model: model})
	}
	return &r.Models[at]
}

// PoolStatus is who has what of a resource's quota.
type PoolStatus struct {
	// TotalLimit is that of the first limit on requests that is not scoped. If there is none, it is the sum over the models of the first
	// limit that each of them has. It is 0 if no size is known.
	TotalLimit  int64                      `json:"totalLimit"`
	ResetAt     *time.Time                 `json:"resetAt"`
	Allocations map[string]AgentAllocation `json:"allocations"` // by agent
}

// AgentAllocation is what an agent has of a quota: its class's share, among the classes that
// are alive, divided by its living agents. What others leave it may use as well.
type AgentAllocation struct {
	Priority    int        `json:"priority"` // of its class; 0 is the highest
	Allocated   int64      `json:"allocated"`
	Used        int64      `json:"used"` // about
	LeaseExpiry *time.Time `json:"leaseExpiry"`
	LeaseStart  *time.Time `json:"leaseStart"`
	// Leased tells that the agent holds a lease; else it has only asked, and counts as alive for the length of one.
	Leased  bool   `json:"leased"`
	Class   string `json:"class"`
	User    string `json:"user"`
	Machine string `json:"machine"`
	State   string `json:"state"` // as in [AgentStatus]
}

// withNulls writes v with null in place of the numbers and words of some fields. Their order stays, for people who read it.
func withNulls(v any, unknown bool, fields ...string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || !unknown {
		return b, err
	}
	for _, f := range fields {
		key := []byte(`"` + f + `":`) // in a text its quotes would be escaped
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

// MarshalJSON writes null for the size of a limit that is not known yet, and for what remains of it.
func (l LimitStatus) MarshalJSON() ([]byte, error) {
	type plain LimitStatus
	return withNulls(plain(l), l.Limit <= 0, "limit", "remaining")
}

// MarshalJSON writes null for figures that only the store knows, while it cannot be reached.
func (r ResourceStatus) MarshalJSON() ([]byte, error) {
	type plain ResourceStatus
	return withNulls(plain(r), r.Outage != nil, "light", "light_binds", "consecutive_429", "in_flight", "sent", "throttled", "retried", "waited_ms",
		"peak_per_s", "mean_per_s", "throttled_7d", "members", "silent_members")
}

// MarshalJSON writes null for the part of an agent that uses no limit whose size is known.
func (a AgentStatus) MarshalJSON() ([]byte, error) {
	type plain AgentStatus
	return withNulls(plain(a), a.Allocated <= 0, "allocated")
}

// MarshalJSON writes null for a quota that is not known.
func (p PoolStatus) MarshalJSON() ([]byte, error) {
	type plain PoolStatus
	return withNulls(plain(p), p.TotalLimit <= 0, "totalLimit")
}

// MarshalJSON writes null for the part of a quota that is not known.
func (a AgentAllocation) MarshalJSON() ([]byte, error) {
	type plain AgentAllocation
	return withNulls(plain(a), a.Allocated <= 0, "allocated")
}
