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

// Names of the classes there are by default.
const (
	P0 = "p0"
	P1 = "p1"
	P2 = "p2"
)

// Units that the gate itself gives a meaning.
const (
	Requests     = "requests"      // one for each request
	Work         = "work"          // what the tool costs, see Config.Tools
	OutputTokens = "output_tokens" // counted while the answer is produced
)

// Config describes a gate. The zero value of every field is its default.
type Config struct {
	// Store is the URL of where state lives: "mem:" for this process alone, "file:" for all of a user on
	// this machine, "redis://HOST:6379" for many machines.
	Store string
	// OnStoreFailure is what this process does while the store cannot be reached. It matters to
	// stores on other machines; docs/redis.md says how to choose.
	OnStoreFailure store.OnFailure
	// Resources are the APIs whose quota is shared, by name.
	Resources map[string]Resource
	// Price is what usage of a model costs, in millionths of a dollar; known is false where that is a guess. It
	// prices tickets that state tokens and no [USD]. Nil means that only stated dollars count.
	Price func(model string, usage []Amount) (micros int64, known bool)
	// Classes are the priority classes, highest first. Default: p0 40, p1 35, p2 25. A
	// class's share is what it gets when all classes want more than there is; what
	// one leaves, the others use.
	Classes []Class
	// Order is how those who wait are ordered.
	Order store.Order
	// Agents are the callers known by name. "*" stands for all others.
	Agents map[string]Agent
	// Tools is what each tool costs in the unit work; those not named cost 1. Nil
	// means 1 for web_search and read_page, 3 for llm_call, 5 for code_execute and 10 for image_generate.
	Tools map[string]int64
	// Retry is how patient Do is.
	Retry retry.Policy
	// NoShares lets classes take each other's unused shares of fixed windows without
	// leaving anything. Order alone then decides.
	NoShares bool
	// NoPacing lets lower classes use up a rolling window in one burst though an agent of the
	// highest class is alive.
	NoPacing bool
	// NoCascade ends backpressure: StartNewWork is always true.
	NoCascade bool
	// Look leaves resources that others have opened as they are, whatever this configuration
	// says of them: for programs that only look on. It implies Passing.
	ReadOnly bool
	// Others names pools of the store that Resources does not: a gate that looks on has them as resources too, with the limits and classes that
	// their users have stated. It is given the name of a pool, and returns that of the resource; empty means that it is left out, and
	// nil that all are.
	Others func(pool string) string
	// Passing is for programs that make a request and are gone: they have no share of the limits to
	// go on with, so while the store cannot be reached they get [ErrStore], whatever OnStoreFailure says.
	// Without it every start of such a program would make the others' shares smaller.
	OneShot bool
	// Leases are how long agents count as alive.
	Leases Leases
	// Slots bound how many agents a user may have at the same time.
	Slots Slots
	// Budgets bound what is spent, in dollars. Requests whose Cost states the unit usd count against them.
	Budgets []Budget
	// Alert is told once when a budget is used up, from any goroutine, and must not block. Nil means nobody is.
	Alert func(inspect.Alert)
	// Routes are, for each kind of task, the models that can do it.
	Routes map[string][]RouteChoice
	// Events is told what happens, from any goroutine, and must not block. Nil means nobody
	// is.
	Events func(inspect.Event)
}

// Leases are how long agents count as alive that are not heard of.
type Leases struct {
	Renew  time.Duration // between two heartbeats; 0 means 2 min
	Expire time.Duration // without one; 0 means 5 min
	Off    bool          // no agent counts as alive, and Join takes no lease
}

// Slots bound how many agents of a user are joined at the same time.
type Slots struct {
	Max int           // 0: any number
	TTL time.Duration // of a slot, from the last heartbeat; 0 means 5 min
}

// Class is a priority class.
type Class struct {
	Name  string
	Share int64 // 1 to 1000, relative to the others
}

// Agent is what is known of a caller in advance.
type Agent struct {
	Class string
	User  string
	// WaitsFor are agents whose work this one's depends on.
	WaitsFor []string
}

// Resource is an external API whose quota is shared.
type Resource struct {
	// Limits are what the provider enforces, and what you want on top. A request takes
	// from all of them or from none. With no limit of known size the pool starts
	// slowly and learns from answers.
	Limits []Limit
	// SplitKeys counts every limit that the provider enforces for each API key apart, and pauses only the key that was refused.
	// Limits per agent, user or tool and those on work stay as they are.
	SplitKeys bool
	// Paid tells that requests cost money, even those that state neither tokens nor dollars when they ask: what they
	// used is priced when they end.
	Paid bool
	// Guard is how arrivals are bounded on the limits that the provider enforces.
	Guard store.Guard
	// ArrivalSlack is how long a request may take to arrive where answers are slow to
	// begin. Default: 1.5% of the window, at least 1 s, at most 30 s.
	ArrivalSlack time.Duration
	// Use is the percentage of the provider's limits to use: 1 to 100. 0 means 100.
	Use int
	// MaxWaiting bounds the queue. 0 means 10,000.
	MaxWaiting int
	// MaxMeters is how many meters one scoped limit keeps. 0 means 10,000. Limits scoped only by model or
	// key keep a tenth of it. All scopes beyond that share one meter, so that invented names cannot
	// fill the store.
	MaxMeters int
	// Backoff is how long everyone pauses after a 429. Default: 60 s, doubled each time, at
	// most 15 min.
	Backoff Backoff
	// TTL is how long a ticket lives that is never closed. 0 means 10 min.
	TTL time.Duration
	// Light is the traffic light on quotas that have to last until a reset.
	Light Light
	// Breaker slows lower classes before a quota is gone.
	Breaker Breaker
	// Reserve is the percentage of quotas that have to last until a reset which agents
	// leave to a person at the keyboard. It shrinks with the time left.
	Reserve int
	// Observe counts and reports, and never holds anyone: whoever would have to wait goes
	// through all the same, and an event tells.
	Observe bool
}

// Light is the traffic light: what must be left of a quota that has to last.
type Light struct {
	Green  int  // percent: below it only the highest class proceeds; 0 means 20
	Red    int  // percent: below it only an emergency does; 0 means 5
	Static bool // thresholds stay; else they shrink with the time left to the reset
	All    bool // it binds on every limit of the provider's, not only on those that have to last
	Off    bool
}

// Breaker foresees when a quota will be gone.
type Breaker struct {
	Within  time.Duration // trip if it will be gone by then and before its reset; 0 means 2 min
	Samples int           // of what remains, that the forecast rests on; 0 means 10
	Open    bool          // stop lower classes, instead of slowing them down
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
	// Size is the amount per Window, or the number of places of a concurrency limit.
	// 0 means not known: answers will tell.
	Size int64
	// Window is the time in which Size may be spent. Not used by concurrency limits.
	Window time.Duration
	// Burst is how much of a bucket can be spent at once. 0 means Size.
	Burst int64
	// Unit is what is counted. Empty means requests.
	Unit string
	// Per makes one limit of this size for each agent, user, model, tool or key, or
	// combination of them. Limits per agent, user or tool are your own: one who lacks them
	// holds up nobody else. They need no guard, and neither does a limit on work.
	Per []Scope
	// Reset is any moment at which a fixed window is known to reset, if it is.
	Reset time.Time
	// Guess tells that Size is what is usual: what an answer states counts instead, also if it
	// is more. Otherwise Size caps what answers state.
	SizeIsDefault bool
	// Plan tells that it is a window of a subscription: answers state how much of it is used, and what they state counts. It
	// never holds the highest class; the others are paced until its reset. Its size is a million.
	Plan bool
	// Rough tells that costs are estimates: what the provider counts beyond them is believed,
	// and not taken for somebody else's use. So it is for tokens and dollars anyway.
	Estimated bool
}
