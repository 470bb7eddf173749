package sluice

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Kind says when a charge on a limit comes back.
type Kind = store.Kind

// The kinds of limit.
const (
	Bucket      = store.Bucket      // Size per Window, up to Burst at once
	Rolling     = store.Rolling     // Size in any stretch of time of length Window
	Fixed       = store.Fixed       // Size until the next reset
	Concurrency = store.Concurrency // Size at the same time
)

// Scope is an attribute of requests that a limit can be scoped by.
type Scope = store.Scope

// The scopes.
const (
	PerAgent = store.PerAgent
	PerUser  = store.PerUser
	PerModel = store.PerModel
	PerTool  = store.PerTool
	PerKey   = store.PerKey
)

// Names of the default classes.
const (
	P0 = "p0"
	P1 = "p1"
	P2 = "p2"
)

// Units with a meaning to the gate.
const (
	Requests     = "requests"      // one for each request
	Work         = "work"          // the cost of the tool, see Config.Tools
	OutputTokens = "output_tokens" // counted while the response is produced
)

// Config describes a gate. The zero value of every field is its default.
type Config struct {
	// Store is the URL of the store: "mem:" for this process alone, "file:" for all processes of a user on this
	// machine, "redis://HOST:6379" for many machines.
	Store string
	// OnStoreFailure is what this process does while the store cannot be reached. It matters for stores on other
	// machines; docs/redis.md says how to choose.
	OnStoreFailure store.OnFailure
	// Resources are the APIs whose quota is shared, by name.
	Resources map[string]Resource
	// Price returns the cost of a model's usage in millionths of a dollar; known is false if that is a guess. It prices
	// tickets that state tokens and no [USD]. Nil means that only stated dollars count.
	Price func(model string, usage []Amount) (micros int64, known bool)
	// Classes are the priority classes, highest first. Default: p0 40, p1 35, p2 25. A class gets its share when all
	// classes want more than there is. What one class leaves, the others use.
	Classes []Class
	// Order is the order of waiting requests.
	Order store.Order
	// Agents configures agents by name. "*" stands for all others.
	Agents map[string]Agent
	// Tools is the cost of each tool in the unit work; other tools cost 1. Nil means 1 for web_search and read_page, 3
	// for llm_call, 5 for code_execute and 10 for image_generate.
	Tools map[string]int64
	// Retry says how often and how long Do retries.
	Retry retry.Policy
	// NoShares lets classes use up each other's unused shares of fixed windows. Only the order of the queue then
	// decides.
	NoShares bool
	// NoPacing lets lower classes use up a rolling window in one burst even while an agent of the highest class is
	// live.
	NoPacing bool
	// NoCascade turns backpressure off: StartNewWork always reports true.
	NoCascade bool
	// ReadOnly leaves the pools that other processes have opened as they are, whatever this configuration says. It is
	// for programs that only read. It implies OneShot.
	ReadOnly bool
	// Others adds pools of the store that Resources does not name to a read-only gate, with the limits and classes that
	// their users have stated. It gets the name of a pool and returns the name of the resource; empty leaves the pool
	// out. Nil leaves out all of them.
	Others func(pool string) string
	// Provider returns the provider of a resource in a configuration, for advice that can be pasted. Nil means that none has
	// one.
	Provider func(resource string) string
	// OneShot is for programs that make one request and exit. They have no share of the limits: while the store cannot
	// be reached they get [ErrStore], whatever OnStoreFailure says. Otherwise every start of such a program would make
	// the shares of the others smaller.
	OneShot bool
	// Leases says how long agents stay live.
	Leases Leases
	// Slots bounds how many agents a user may run at the same time.
	Slots Slots
	// Budgets bounds spending in dollars. Requests whose Cost states the unit usd are charged to them.
	Budgets []Budget
	// Alert is called once when a budget is used up, from any goroutine. It must not block. Nil means no alerts.
	Alert func(inspect.Alert)
	// Routes lists, for each kind of task, the models that can do it.
	Routes map[string][]RouteChoice
	// Events is called for everything that happens, from any goroutine. It must not block. Nil means no events.
	Events func(inspect.Event)
}

// Leases says how long agents stay live without a heartbeat.
type Leases struct {
	Renew  time.Duration // between two heartbeats; 0 means 2 min
	Expire time.Duration // since the last one; 0 means 5 min
	Off    bool          // no agent counts as live, and Join takes no lease
}

// Slots bounds how many agents of a user are joined at the same time.
type Slots struct {
	Max int           // 0: no bound
	TTL time.Duration // of a slot, since the last heartbeat; 0 means 5 min
}

// Class is a priority class.
type Class struct {
	Name  string
	Share int64 // 1 to 1000, relative to the others
}

// Agent is the configuration of an agent.
type Agent struct {
	Class string
	User  string
	// WaitsFor lists agents whose work this agent depends on.
	WaitsFor []string
}

// Resource is an external API whose quota is shared.
type Resource struct {
	// Limits are the limits that the provider enforces, and any that you add. A request takes from all of them or from
	// none. If no size is known, the pool starts slowly and learns from responses.
	Limits []Limit
	// SplitKeys counts every limit of the provider separately for each API key, and pauses only the key that was
	// refused. Limits per agent, user or tool and limits on work are not affected.
	SplitKeys bool
	// Paid is set if requests cost money even when they state neither tokens nor dollars in advance. Their usage is
	// priced when they end.
	Paid bool
	// Free is set if requests cost no money: units that have no price are nothing that a budget misses. Dollars and tokens
	// that a request states count all the same.
	Free bool
	// Guard says how arrivals are bounded on the limits that the provider enforces.
	Guard store.Guard
	// ArrivalSlack is how long a request may take to arrive if responses are slow to begin. Default: 1.5% of the
	// window, at least 1 s, at most 30 s.
	ArrivalSlack time.Duration
	// Use is the percentage of the provider's limits to use: 1 to 100. 0 means 100.
	Use int
	// MaxWaiting bounds the queue. 0 means 10,000.
	MaxWaiting int
	// MaxMeters bounds the meters of one scoped limit. 0 means 10,000. Limits scoped only by model or key have a tenth
	// of it. All scopes beyond the bound share one meter, so that invented names cannot fill the store.
	MaxMeters int
	// Backoff is how long all requests pause after a 429. Default: 60 s, doubled each time, at most 15 min.
	Backoff Backoff
	// TTL is how long a ticket lives that is never closed. 0 means 10 min.
	TTL time.Duration
	// Light is the traffic light on quotas that have to last until a reset.
	Light Light
	// Breaker slows lower classes before a quota runs out.
	Breaker Breaker
	// Reserve is the percentage of quotas with a reset that agents leave to a person at the keyboard. It shrinks with
	// the time left.
	Reserve int
	// Observe turns on mode observe: the gate counts and reports but never holds a request. An event reports each
	// request that would have had to wait.
	Observe bool
	// Preset marks a built-in resource that the configuration does not name. While an agent uses no resource, views
	// show its part of one that is not a preset, or that other agents use.
	Preset bool
}

// Light is the traffic light: how much of a quota with a reset must be left over.
type Light struct {
	Green  int  // percent: below it only the highest class proceeds; 0 means 20
	Red    int  // percent: below it only emergencies proceed; 0 means 5
	Static bool // fixed thresholds; otherwise they shrink with the time left to the reset
	All    bool // binds on all limits of the provider, not only on those with a reset
	Off    bool
}

// Breaker predicts when a quota will run out.
type Breaker struct {
	Within  time.Duration // trip if the quota runs out within this time and before its reset; 0 means 2 min
	Samples int           // how many samples of the remaining quota the forecast uses; 0 means 10
	Open    bool          // stop lower classes instead of slowing them
	Off     bool
}

// Backoff is a growing pause.
type Backoff struct {
	Start  time.Duration
	Factor int64
	Cap    time.Duration
}

// Limit is one constraint on a resource.
type Limit struct {
	// Name is unique on its resource.
	Name string
	// Kind says when a charge comes back.
	Kind Kind
	// Size is the amount per Window, or the number of open tickets of a concurrency limit. 0 means not known: responses
	// will tell.
	Size int64
	// Window is the time in which Size may be spent. Not used by concurrency limits.
	Window time.Duration
	// Burst is how much of a bucket can be spent at once. 0 means Size.
	Burst int64
	// Unit is what is counted. Empty means requests.
	Unit string
	// Per makes one limit of this size for each agent, user, model, tool or key, or combination of them. Limits per
	// agent, user or tool are your own: a request that lacks room on one delays only requests of the same agent, user
	// or tool. They need no guard, and neither does a limit on work.
	Per []Scope
	// Reset is any moment at which a fixed window is known to reset. Zero means not known.
	Reset time.Time
	// SizeIsDefault is set if Size is only the usual value: a size stated by a response replaces it, even a larger one.
	// Otherwise Size caps the stated size.
	SizeIsDefault bool
	// Plan is set for a window of a subscription: responses state how much of it is used, and that counts. It never
	// holds the highest class; other classes are paced until its reset. Its size is a million.
	Plan bool
	// Estimated is set if costs are estimates. If the provider counts more, the gate believes it, but does not count
	// the difference as use from outside. Tokens and dollars always count as estimates.
	Estimated bool
}
