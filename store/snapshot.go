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
	Queue    []Waiter // the first MaxListed in order
	// HeaderTime is how long answers usually take to begin: the median that decides
	// whether headers or the slack bound an arrival.
	HeaderTime time.Duration
	// Light is that of the limits on which it binds; if it binds on none, of all that the
	// provider enforces.
	Light  Color
	Agents []Agent // that are alive, by name
	// Members are the processes that keep in touch, the longest unheard of first; the first MaxListed.
	Members []Member
	// Throttled7d is how many refusals there were in the last seven days.
	Throttled7d int64
	// Trouble is the streak of sends that the provider did not serve. It ends with the first that it serves. Billing stops are a
	// streak of their own, which a failure ends.
	Trouble Trouble
	// LostAt is when the pool was last said to have lost its memory, and LostUntil when all that may have been
	// forgotten is no longer reckoned with. Both are 0 if that has passed.
	LostAt, LostUntil Time
}

// Trouble is a streak of failed sends. The zero Trouble is none.
type Trouble struct {
	Count     int  // of sends in a row
	Unreached bool // some of them had no answer at all; else all came back as a failure of the provider's
	Unpaid    bool // all came back as billing stops: the provider is well, and serves only accounts that are paid for
	Since     Time
	Last      Time
	Cause     string // of the last
}

// Outage tells that the store cannot be reached, and what happens meanwhile.
type Outage struct {
	Since   Time // on the store's clock, as near as it is known
	Why     string
	Mode    OnFailure
	Granted int64 // let go by this process since then
}

// Color is a traffic light's.
type Color uint8

// The colors.
const (
	Green Color = iota
	Amber       // only the highest class proceeds
	Red         // only an emergency does
)

func (c Color) String() string { return pick(int(c), "green", "amber", "red") }

// MaxListed bounds the lists in a Snapshot, but for the agents, and MaxAgents those.
const (
	MaxListed = 1000
	MaxAgents = 10_000
)

// LimitState is one meter of one limit.
type LimitState struct {
	Limit       int           // index in Spec.Limits
	Scope       string        // the values it is scoped to, comma separated; empty: unscoped
	Kind        Kind          // counted as: another than the limit's where answers contradict that
	Window      time.Duration // counted over: likewise
	Size        int64         // in force now; 0: not known
	Used        int64
	Remaining   int64
	Outstanding int64         // part of Used whose arrival is not bounded yet
	Outside     int64         // part of Used that somebody else spent
	Reset       Time          // of a fixed window, at the latest; 0: not known
	Doubt       time.Duration // how much earlier or later than its middle it may be
	Slack       time.Duration
	By          string // the member whose size it is; empty if the provider has stated it
	Widened     bool   // the slack, after refusals that nothing explained
	Cut         int64  // thousandths of the size that such refusals cost, until they are regained
	Withheld    int64  // part of Size that is neither used nor remaining: shares of members that may be cut off
	Light       Color
	Binds       bool // the light holds lower classes back, and does not merely shine
	Breaker     BreakerState
}

// BreakerState is what the breaker makes of a stock.
type BreakerState struct {
	Tripped bool
	Samples int  // that count
	Gone    Time // when the quota is expected to be gone; 0: not foreseen
}

// Agent is a caller that is alive: it holds a lease, or has asked within the length of one.
type Agent struct {
	Name, User, Machine string
	Class               int
	Leased              bool // by heartbeat
	Slot                bool
	Since               Time
	Expires             Time
	// Allocated is the agent's part of the first unscoped limit on requests: its class's
	// share, among classes that are alive, divided by its living agents.
	Allocated int64
	Used      int64 // of that limit, in a window up to now, about
	WaitsFor  []string
}

// Member is a process that keeps in touch with the pool.
type Member struct {
	Session uint64
	Touched Time
	Expires Time  // end of its lease, unless it is heard of before
	Share   int64 // one part in so many of every shared limit; 0: none
	Silent  bool  // it may be cut off: its share is withheld from the others
}

// PauseState is a pause, probe or ramp in force.
type PauseState struct {
	Scope string // "" : the whole pool; else such as "model=opus"
	Phase string // paused, probing, ramping
	Until Time
	// Probe is when one request may test a pause that is longer than the backoff's cap; 0: none may.
	Probe       Time
	Since       Time
	Consecutive int
	Cause       string
}

// Counters measure what went through the gate since the pool was made.
type Counters struct {
	Sent      int64 // grants not given back
	Retried   int64
	Throttled int64
	Waited    time.Duration
	Peak      int64 // most grants in one calendar second
	First     Time  // grant
	Last      Time  // grant
	Last429   Time  // of the pool as a whole
}

// Mean returns grants per second between the first and the last, over a second at least.
func (c Counters) Mean() float64 {
	if c.Last <= c.First {
		return 0
	}
	return float64(c.Sent) / max(c.Last.Sub(c.First), time.Second).Seconds()
}

// Caller is what one agent sent.
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
	Position int // from 1, among all that wait
	Since    Time
	Expected Time // 0: not known, it depends on others
	Reason   Reason
	HeldBy   []string // who holds the lacked limit, most first: agents with open tickets on places, else who used most of it in its window
}

// History is what was sent.
type History struct {
	Now     Time
	Since   Time     // of what is remembered, from the moment asked for on
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
	Peak         int64 // most of the agent in one calendar second
	PeakAll      int64 // most of all agents together in a second in which this one sent
	Waited       time.Duration
	Amounts      []int64 // used, by unit
}
