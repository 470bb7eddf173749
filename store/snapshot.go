package store

import (
	"time"
)

// Snapshot is the state of a pool at one moment.
type Snapshot struct {
	Now      Time
	Limits   []LimitState
	Waiting  []int // by class
	InFlight int   // granted and not yet closed
	Gates    []PauseState
	Counters Counters
	Callers  []Caller
	Queue    []Waiter // the first MaxListed, in order
	// HeaderTime is the median time until a response begins. It decides whether response headers or the slack bound an
	// arrival.
	HeaderTime time.Duration
	// Light is the worst light of the limits on which it binds. If it binds on none, it is the worst of all limits that
	// the provider enforces.
	Light  Color
	Agents []Agent // live agents, by name
	// Members are the processes that report to the pool, longest silence first. At most MaxListed are listed.
	Members []Member
	// Throttled7d counts the refusals of the last seven days.
	Throttled7d int64
	// Trouble is the current streak of sends that the provider did not serve. It ends with the first send that is
	// served. Billing stops form a streak of their own, which a failure ends.
	Trouble Trouble
	// Rejections counts the requests that the provider rejected in the last minute, as wrong: first of all models
	// together, then of each. It is empty if there are none.
	Rejections []Rejections
	// LostAt is when the pool was last told that its memory is lost. LostUntil is when no charge from before that can
	// count any more. Both are 0 once that time has passed.
	LostAt, LostUntil Time
}

// Trouble is a streak of failed sends. The zero Trouble means that there is none.
type Trouble struct {
	Count     int  // sends in a row
	Unreached bool // at least one had no response; otherwise the provider answered all with a failure
	Unpaid    bool // all were billing stops: the provider works, but serves only paid accounts
	Since     Time
	Last      Time
	Cause     string // of the last failure
}

// Rejections counts the answers of the last minute that reject a request as wrong, such as 404.
type Rejections struct {
	Model    string // empty: all requests
	Rejected int64
	Answers  int64  // all answers, with the rejections
	Status   int    // HTTP status of the latest rejection
	Mixed    bool   // others had another status
	Last     Time   // the latest rejection
	Cause    string // what is known about the latest rejection; may be empty
}

// Outage describes a store that cannot be reached and what the process does meanwhile.
type Outage struct {
	Since   Time // on the store's clock, as closely as it is known
	Why     string
	Mode    OnFailure
	Granted int64 // grants by this process since then
	// In mode FailShare, Start is when the process begins to use its share, and End is when its lease ends and it has
	// none any more. Both are on the store's clock. Unshared names the limits of which it has no share: requests that
	// need them wait for the store.
	Start, End Time
	Unshared   []string
}

// Color is the color of a traffic light.
type Color uint8

// The colors.
const (
	Green Color = iota
	Amber       // only the highest class proceeds
	Red         // only emergencies proceed
)

func (c Color) String() string { return pick(int(c), "green", "amber", "red") }

// MaxAgents bounds the list of agents in a Snapshot, MaxListed all other lists.
const (
	MaxListed = 1000
	MaxAgents = 10_000
)

// LimitState is one meter of one limit.
type LimitState struct {
	Limit       string        // its name
	Scope       string        // the values it is scoped to, separated by commas; empty: unscoped
	Kind        Kind          // how it is counted: differs from the limit's kind if responses contradict it
	Window      time.Duration // what it is counted over: may differ likewise
	Size        int64         // in force now, for a bucket what it holds; 0: not known
	Refill      int64         // a bucket drains Refill every RefillEvery; 0: not known
	RefillEvery time.Duration
	Used        int64
	Remaining   int64
	Outstanding int64         // part of Used whose arrival is not bounded yet
	Outside     int64         // part of Used that was spent outside this pool
	Reset       Time          // latest time of a fixed window's reset; 0: not known
	Doubt       time.Duration // how much earlier or later than the middle the reset may be
	Slack       time.Duration
	By          string // the member that stated the size; empty if the provider stated it
	Widened     bool   // the slack was widened after unexplained refusals
	Cut         int64  // thousandths of the size lost to unexplained refusals, until regained
	Withheld    int64  // part of Size neither used nor remaining: shares of members that may be cut off
	// StatedLeft and StatedIn are set if one response after another states that nearly everything is free, while the
	// ledger counts it as used: what the latest stated, and in which time everything is back. StatedLeft is 0 otherwise.
	StatedLeft int64
	StatedIn   time.Duration
	Hold       Hold
	Light      Color
	Binds      bool // the light holds lower classes back; otherwise it is only shown
	Breaker    BreakerState
}

// Hold describes the open tickets that hold part of a limit: each counts until it is answered or closed, or ends. It is
// empty for concurrency limits.
type Hold struct {
	By      []string // their agents, most first, at most five
	Tickets int
	Until   Time // when the last of them ends, if it is neither closed nor renewed before
	Full    bool // they leave no room to others, however much time passes
}

// BreakerState is what the breaker knows about a stock.
type BreakerState struct {
	Tripped bool
	Samples int  // samples in use
	Gone    Time // when the quota is expected to run out; 0: not foreseen
}

// Agent is a live agent: it holds a lease, or asked within the length of one.
type Agent struct {
	Name, User, Machine string
	Class               int
	Leased              bool // holds a lease kept by heartbeats
	Slot                bool
	Since               Time
	Expires             Time
	// Allocated is the agent's part of the first unscoped limit on requests: its class's share among live classes,
	// divided by the live agents of the class. If limits are only per model or key, it is a part of their sum.
	Allocated int64
	Used      int64 // of that limit, in one window up to now; approximate
	WaitsFor  []string
}

// Member is a process that reports to the pool.
type Member struct {
	Session uint64
	Touched Time
	Expires Time  // end of its lease, unless it reports before
	Share   int64 // the divisor: the member has 1/Share of every shared limit; 0: no share
	Silent  bool  // it may be cut off: its share is withheld from the others
}

// PauseState is a pause, probe or ramp in force.
type PauseState struct {
	Scope string // empty: the whole pool; else such as "model=opus"
	Phase string // paused, probing, ramping
	Until Time
	// Probe is when one request may test a pause that is longer than the backoff's cap; 0: no probe.
	Probe       Time
	Since       Time
	Consecutive int
	Cause       string
	Agent       string // whose request began it; empty: not known
}

// Counters count what went through the pool since it was created.
type Counters struct {
	Sent      int64 // grants that were not given back
	Retried   int64
	Throttled int64
	Waited    time.Duration
	Peak      int64 // most grants in one calendar second
	First     Time  // first grant
	Last      Time  // last grant
	Last429   Time  // last 429 of the pool as a whole
}

// Mean returns grants per second between the first and the last grant, over at least one second.
func (c Counters) Mean() float64 {
	if c.Last <= c.First {
		return 0
	}
	return float64(c.Sent) / max(c.Last.Sub(c.First), time.Second).Seconds()
}

// Caller holds the counters of one agent.
type Caller struct {
	Agent string
	Counters
}

// Waiter is a request in the queue.
type Waiter struct {
	ID       ID
	Agent    string
	Class    int
	Model    string
	Position int // from 1, among all waiting requests
	Since    Time
	Expected Time // 0: not known, because it depends on other requests
	Reason   Reason
	// HeldBy lists the agents that hold the missing limit, most first. For concurrency limits these are the agents with
	// open tickets, for other limits those with the most use in its window.
	HeldBy []string
	// HeldUntil is when the last of the open tickets ends that hold the limit, if none is closed or renewed before. It is
	// 0 if time alone makes room.
	HeldUntil Time
}

// History lists the sends that a pool remembers.
type History struct {
	Now     Time
	Since   Time     // start of what is remembered, not before the moment asked for
	Units   []string // of the amounts
	Periods []Period // by time
}

// Period is what one agent sent for one model in one minute.
type Period struct {
	Agent, Model string
	Start        Time
	Sent         int64
	Retried      int64
	Throttled    int64
	Failed       int64 // for other reasons
	Peak         int64 // most sends of this agent in one calendar second
	PeakAll      int64 // most sends of all agents in a second in which this agent sent
	Waited       time.Duration
	Amounts      []int64 // used, by unit
}
