// Package store defines the contract between the gate and the place where a pool's state lives: a process's memory, a
// shared file, Redis, or a daemon.
//
// A store applies batches of small operations to one pool, atomically and on its own clock. It knows limits, costs,
// classes and times. It knows nothing of HTTP, providers, prices or dollars: the caller decides what a request costs
// and what a response means before it builds an operation.
//
// Implementations register a URL scheme (see [Register]) and pass the tests in package storetest.
package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds that every store enforces, so that no input can make its state grow without limit.
const (
	MaxLimits   = 16      // limits on one pool
	MaxAmounts  = 64      // amounts in one operation
	MaxClasses  = 8       // classes of one pool
	MaxName     = 256     // bytes in the name of an agent, user, model, tool or key
	MaxAmount   = 1 << 40 // largest size of a limit and largest cost of a request
	MaxWindow   = 100 * 24 * time.Hour
	MaxTTL      = 24 * time.Hour
	MaxHint     = 31 * 24 * time.Hour // a longer RetryAfter is a mistake and counts as none
	MaxBatch    = 4096                // operations in one Apply
	MaxForeseen = 64                  // operations in one Foresee
	MaxWaits    = 16                  // agents that one agent can wait for
	MaxSamples  = 64                  // of a breaker
	MaxSlots    = 1 << 20
	MaxLeases   = 1 << 17     // in one pool
	MaxMembers  = 4096        // in one pool: processes that have a share while the store cannot be reached
	MaxMeters   = 1 << 20     // for one limit
	MaxAge      = time.Second // of a late report
)

// DefaultMeters is how many agents, users or tools get a meter of their own on a limit scoped by them.
const DefaultMeters = 10_000

// Whole is the denominator of parts, which are given in thousandths.
const Whole = 1000

// Store opens pools.
type Store interface {
	// Pool opens the pool that spec names and creates it if it does not exist. Opening an existing pool with other
	// limits keeps every charge. Where two members state different sizes for a limit of the same name, the smaller one
	// holds.
	Pool(ctx context.Context, spec Spec) (Pool, error)
	// Close releases the store's resources. Its pools return [ErrClosed] afterwards, and sessions with waiting requests
	// are notified through Watch.
	Close() error
}

// Pool is one session's handle on a pool. All methods are safe for concurrent use.
type Pool interface {
	// Apply carries out ops in order, as one atomic step at one moment of the store's clock, and fills in each op's
	// Result. It does not wait: a request that must wait stays in the queue and its Result says Waiting. The error is
	// about the store (unreachable, closed); the outcome of each operation is in its Result. Applying the same ops
	// again after an error is safe: a charged id is not charged twice, and a second answer or close changes nothing.
	// The error matches [ErrKept] if the store will apply the answers, closes and cancels by itself. The pool keeps no
	// slice of an op, see [Op.Clone].
	Apply(ctx context.Context, ops []Op) error
	// Snapshot reads the whole state of the pool at one moment.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Watch sets the function to call when waiting tickets of this session have been decided after the Apply that
	// queued them. Collect them with OpPoll. The function is called without locks held, from any goroutine, and must
	// not block. The ids are valid only during the call.
	Watch(decided func(ids []ID))
	// Now returns the current time on the store's clock, as closely as this handle knows it without asking the store.
	Now() Time
	// Close ends the session. Its waiting requests are cancelled; its open tickets stay charged until their TTL is
	// over. A member leaves.
	Close() error
}

// Shelf is implemented by stores that live in the process's memory. Callers can keep other values with them that should
// last as long as the store.
type Shelf interface {
	// Keep returns the value kept under name. If there is none, it keeps value and returns it.
	Keep(name string, value any) any
}

// Home is implemented by stores whose pools are files in a directory. Files that must outlast the pools, which are only
// a cache, are kept next to them.
type Home interface {
	// Dir returns the directory of the pools, where other files may be kept too.
	Dir() string
}

// Secrets is implemented by stores that keep secrets for all their users, such as the secret for labels of API keys.
type Secrets interface {
	// Secret returns the secret called name, which consists of a few lower-case letters. If the store has none, it
	// keeps fresh, of [SecretSize] bytes, and returns that. Concurrent callers get the same secret.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}

// SecretSize is the length of a secret in bytes.
const SecretSize = 32

// Lister is implemented by stores that can list their pools.
type Lister interface {
	// Pools reads the specs of all existing pools, whichever program created them, and creates none. It leaves out the
	// gate's internal pools, whose names begin with a parenthesis.
	Pools(ctx context.Context) (Listing, error)
}

// MaxPools bounds a Listing.
const MaxPools = 256

// Listing is the list of a store's pools.
type Listing struct {
	Pools   []Spec   `json:"pools"`   // by name
	Skipped []string `json:"skipped"` // why pools could not be read, for people; at most 16
}

// Add adds a pool, or the error from reading it. It reports false when the listing is full.
func (l *Listing) Add(spec Spec, err error) bool {
	switch {
	case err != nil:
		l.Skip(err.Error())
	case strings.HasPrefix(spec.Name, "("):
	case len(l.Pools) >= MaxPools:
		l.Skip(fmt.Sprintf("there are more pools than the %d that are listed", MaxPools))
		return false
	default:
		l.Pools = append(l.Pools, spec)
	}
	return true
}

// Skip records why a pool is missing from the list.
func (l *Listing) Skip(why string) {
	const most = 16
	if len(l.Skipped) < most {
		l.Skipped = append(l.Skipped, why)
	}
}

// Sort sorts the pools by name.
func (l *Listing) Sort() {
	slices.SortFunc(l.Pools, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
}

// Mortal is implemented by stores that can fail in a way they do not recover from by themselves.
type Mortal interface {
	// Broken says why the store will not work again without help. It returns nil if the store works, and also if it is
	// only busy, slow or out of room.
	Broken(ctx context.Context) error
}

// Time is a moment on the store's clock, in microseconds since the Unix epoch. The zero Time means none. Compare store
// times only with each other, never with the caller's own clock.
type Time int64

// Std converts t to a time.Time, for display. The zero Time becomes the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Add returns t+d, rounded down to whole microseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Microseconds()) }

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// ID names a ticket. Session identifies the session; N counts within it. The store assigns N when an acquire leaves it
// zero. A caller that chooses its own N must present them in increasing order: that lets a store recognise a ticket
// that has ended without remembering it.
type ID struct{ Session, N uint64 }

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// Kind says when a charge on a limit comes back.
type Kind uint8

// The four kinds of limit.
const (
	Bucket      Kind = iota // drains at Size per Window from the bound on; holds up to Burst
	Rolling                 // comes back one Window after the bound
	Fixed                   // comes back at the first reset after the bound
	Concurrency             // comes back when the ticket is closed
)

func (k Kind) String() string {
	return pick(int(k), "bucket", "rolling", "fixed", "concurrency")
}

// Guard says what bounds the arrival of a request at the provider.
type Guard uint8

// The three guards. GuardAuto is the default.
const (
	GuardAuto   Guard = iota // response headers while they are fast, the slack where they are slow
	GuardStrict              // only response headers, or the ticket's TTL
	GuardOff                 // the grant counts as the arrival: for limits that the provider does not count
)

func (g Guard) String() string { return pick(int(g), "auto", "strict", "off") }

// Scope is a set of a request's attributes. A scoped limit has one meter for each combination of their values.
type Scope uint8

// The attributes a limit can be scoped by.
const (
	PerAgent Scope = 1 << iota
	PerUser
	PerModel
	PerTool
	PerKey
)

// Shared is the set of scopes that many agents have in common. Limits scoped only by these take part in the common
// order of the queue. A request that lacks room on any other scope delays only requests of the same agent, user or
// tool.
const Shared = PerModel | PerKey

// Order says which waiting request is served next.
type Order uint8

// The three orders.
const (
	Fair   Order = iota // classes by weight, agents of a class in turn
	Strict              // a higher class always first, agents of a class in turn
	FIFO                // first come, first served, across all classes and agents
)

func (o Order) String() string { return pick(int(o), "fair", "strict", "fifo") }

// Limit is one constraint on a pool.
type Limit struct {
	Name   string
	Kind   Kind
	Unit   string
	Size   int64         // amount per Window, or open tickets of a concurrency limit; 0: not known yet
	Burst  int64         // capacity of a bucket
	Window time.Duration // for all kinds but concurrency
	Per    Scope
	Guard  Guard
	// Slack is the arrival slack. 0 means 1.5% of the window, at least 1 s and at most 30 s, and less for spent tickets
	// on small limits.
	Slack time.Duration
	// Late is set for units that the provider counts while it produces the response. Their charges are bound when the
	// ticket is closed, not when it is answered.
	Late bool
	// SizeIsDefault is set if Size is only the usual value: a size stated by a response replaces it, even a larger one.
	// Otherwise Size caps the stated size.
	SizeIsDefault bool
	// Estimated is set for units whose costs are estimates. If a provider counts more, the pool believes it, but does
	// not count the difference as use from outside.
	Estimated bool
	// Plan is set for a window of a subscription, whose provider states with every response how much is used. That
	// figure counts even where the ledger has more. All classes but the highest are paced to the reset, see
	// docs/design.md.
	Plan bool
	// Reset is any moment at which a fixed window is known to reset. 0 means not known: the window then counts as a
	// rolling one until a response tells. Reset is wall-clock time in UTC; a store with another clock converts it.
	Reset Time
}

// Class is a priority class and its share of a contended pool.
type Class struct {
	Name   string
	Weight int64
}

// Backoff is how long a pool pauses: Start, then Factor times longer for each consecutive refusal, at most Cap.
type Backoff struct {
	Start  time.Duration
	Factor int64
	Cap    time.Duration
}

// Light configures the traffic light: how much of a stock must be left over. Below Green only the highest class
// proceeds, below Red only an emergency. Both are in thousandths. The zero Light is off. It binds on shared fixed
// windows of at least [LightFrom].
type Light struct {
	Green, Red int64
	Static     bool // fixed thresholds; otherwise both shrink with the time left to the reset
	All        bool // binds on every shared limit, flows too
}

// LightFrom is the length from which on a fixed window counts as a stock that has to last.
const LightFrom = 10 * time.Minute

// Breaker predicts from the remaining amounts in responses when a stock will run out. Before that happens it slows or
// stops all classes but the highest. The zero Breaker is off.
type Breaker struct {
	Within  time.Duration // trip if the stock runs out within this time and before its reset
	Samples int           // how many of the latest samples the fitted line uses
	Open    bool          // stop lower classes instead of slowing them to last until the reset
}

// Slots bounds how many agents of one user hold a lease at the same time.
type Slots struct {
	Max int           // 0: no bound, and this agent takes no slot
	TTL time.Duration // of a slot, since the last heartbeat
}

// DefaultLease is how long an agent stays live after its last request or heartbeat.
const DefaultLease = 5 * time.Minute

// OnFailure says what a member does while the store cannot be reached.
type OnFailure uint8

// The modes of a member that cannot reach the store.
const (
	FailShare  OnFailure = iota // continue within its share, so that all members together keep to the limits
	FailClosed                  // refuse every request
	FailOpen                    // grant every request and count nothing
)

func (o OnFailure) String() string { return pick(int(o), "share", "closed", "open") }

// Spec describes a pool.
type Spec struct {
	Name       string
	Limits     []Limit
	Classes    []Class
	Order      Order
	MaxWaiting int
	// MaxMeters bounds the meters of one scoped limit; 0 means [DefaultMeters]. Limits scoped only by model or key have
	// a tenth of it. All scopes beyond the bound share one more meter, which is safe for each of them.
	MaxMeters int
	Throttle  Backoff // after a 429
	Overload  Backoff // after an overload of the provider as a whole

	// The following fields decide how much of a limit a request has to leave to others. The zero value turns each off.
	Light   Light
	Breaker Breaker
	Reserve int64 // thousandths of a stock that only emergencies may use, kept for a person at the keyboard
	Shares  bool  // on fixed windows, each class leaves the unused shares of the others alone
	Pace    bool  // on rolling windows, lower classes spread their use while the highest class is live

	// Lease is how long an agent stays live after its last request or heartbeat. 0 means [DefaultLease]; if negative,
	// no agent counts as live.
	Lease time.Duration

	// Member names the process that opens the pool. It is shown as the source of a limit's size.
	Member string
	// OnFailure is what this member does while the store cannot be reached. Members may differ.
	OnFailure OnFailure
	// OneShot is set by processes that make one request and exit. They are not members and have no share while the
	// store cannot be reached.
	OneShot bool
	// Restate replaces all earlier specs opened through the same [Store]: its other sessions on the pool do not count
	// as members with different limits. They continue under the new limits; waiting requests keep their positions and
	// charges stay. Sessions of other stores count as usual.
	Restate bool
	// ReadOnly opens an existing pool as it is and ignores the rest of the spec. It is for callers that only read, or
	// report responses.
	ReadOnly bool
}

// Tie says what happens to a ticket whose session ends first.
type Tie uint8

// The ties. A process that sends the request itself ties its ticket, so that its death does not block limits for the
// whole TTL.
const (
	TieNone Tie = iota // the ticket lives for its TTL: for tickets that another process ends by id
	TieBeat            // the ticket ends once the session was silent for SessionLife; see OpPoll and Op.Alive
	TieGone            // the ticket ends when OpGone reports that the session is gone: for stores that notice this themselves
)

// SessionLife is how long the tickets of a silent session live on if they are tied with [TieBeat]. Sessions send a beat
// every BeatEvery.
const (
	SessionLife = 10 * time.Second
	BeatEvery   = 3 * time.Second
)

// OpKind says what an operation does.
type OpKind uint8

// The operations.
const (
	OpAcquire OpKind = iota // ask for a ticket; queues if Wait allows
	// OpPoll asks again about a waiting ticket, and collects it if it is granted, under the id of the result. If TTL is set, a ticket that is held
	// lives for TTL from now on.
	OpPoll
	OpCancel    // give an unsent ticket back, with full refund
	OpRenew     // give it back and ask again in one step, keeping its position
	OpAnswer    // the provider's response has begun: bounds the ticket's arrival
	OpClose     // the request is over: settles usage and frees its concurrency
	OpObserve   // a response without a ticket
	OpPause     // hold all requests for RetryAfter
	OpResume    // end a pause by hand
	OpHeartbeat // take or keep an agent's lease, and its slot
	OpLeave     // give an agent's lease and slot back
	OpLaunch    // ask when to start a job: jobs that start together are spread over Wait
	OpTouch     // this session is a member and live; with Spent it leaves
	OpForget    // the store has lost its memory: earlier charges are not known
	// OpGone reports that the process of this session has ended: its tied tickets are bounded and it is no longer a
	// member. N, if set, is the number of such sessions. With a Tie of TieBeat the process was only silent for SessionLife: it
	// may still use its share, and stays a member until its lease ends.
	OpGone
)

// Verdict is what a response means for the quota.
type Verdict uint8

// The verdicts.
const (
	VerdictNone        Verdict = iota // the response says nothing about the quota
	VerdictOK                         // accepted
	VerdictThrottled                  // over a limit
	VerdictOverloaded                 // the provider as a whole is over its capacity
	VerdictExhausted                  // a quota is gone until RetryAfter is over
	VerdictBilling                    // out of credit: a retry cannot help
	VerdictError                      // any other failure; with a Cause it is the provider's failure, such as a 502
	VerdictUnreachable                // no response: the request did not arrive, or nothing came back; Cause says why
)

func (v Verdict) String() string {
	return pick(int(v), "none", "ok", "throttled", "overloaded", "quota gone", "billing stop", "error", "unreachable")
}

// NotStated marks a value that a response does not state.
const NotStated = -1

// Observed is what a response states about one limit. Fields it does not state are negative; a zero ResetIn is a
// statement.
type Observed struct {
	Limit     string // its name; a limit that the pool does not have is passed over
	Size      int64  // what the provider grants per window
	Remaining int64
	ResetIn   time.Duration // from the moment the response was made
	// Slop is how far off ResetIn may be in either direction. 0 means 1.2 s, for headers rounded to seconds. Where the
	// way in which a provider counts is learned, 0 means 50 ms if ResetIn states a fraction of a second.
	Slop time.Duration
	// Whole is the size that the provider states if Size is only the part of it to use. 0 means Size.
	Whole int64
}

// Amount is how much of a unit a request takes or has used. It concerns every limit that counts the unit, or with Limit
// only the limit of that name.
type Amount struct {
	Unit  string // such as "requests" or "input_tokens"; may be empty if Limit is set
	Limit string // empty: every limit of the unit
	N     int64
}

// concerns reports whether an amount is one of limit l.
func (a *Amount) concerns(l *Limit) bool {
	if a.Limit != "" {
		return a.Limit == l.Name && (a.Unit == "" || a.Unit == l.Unit)
	}
	return a.Unit == l.Unit
}

// AmountOf returns the amount of limit l, and whether amounts state one. If several concern the limit, the last one
// counts.
func AmountOf(amounts []Amount, l *Limit) (n int64, stated bool) {
	for i := len(amounts) - 1; i >= 0; i-- {
		if a := &amounts[i]; a.concerns(l) {
			return a.N, true
		}
	}
	return 0, false
}

// Op is one operation. Which fields are read depends on Kind.
type Op struct {
	Kind OpKind
	ID   ID // of the ticket; may be zero for OpAcquire

	// For OpAcquire, and for OpObserve as the scope of its pause.
	Agent, User, Model, Tool, Key string
	Class                         uint8
	Retry                         bool // this send repeats an earlier one
	Emergency                     bool // goes first and need not leave anything to others; for the highest class only
	// Force counts without limiting: an acquire is granted and charged whatever the limits say, and a response causes
	// no pause.
	Force bool
	// Amounts are the costs, or for OpClose the actual use; see [AmountOf]. Limits that they do not state take nothing, and
	// for OpClose keep their estimates. Amounts of units and limits that the pool does not have are passed over. An
	// amount below 0 or above MaxAmount makes an acquire invalid, and for OpClose counts as not stated. There are at
	// most MaxAmounts.
	Amounts []Amount
	Wait    time.Duration // longest wait; 0: decide now; negative: no bound
	// Alive is how long a waiting request outlives its last poll; 0: until Wait is over. Callers that can die without
	// the store noticing set it. An OpPoll with a session and no number keeps the whole session alive for Alive: its
	// waiting requests and its tickets tied with TieBeat. The Result is Granted if the session has any.
	Alive time.Duration
	TTL   time.Duration // of the ticket once granted
	Tie   Tie           // the ticket is bounded when its session ends, at the latest after TTL

	// For OpAnswer and OpObserve.
	Verdict    Verdict
	RetryAfter time.Duration // the provider's hint, or the length of an OpPause; 0: none
	Scope      Scope         // what the response proves to be limited, within Shared; 0: the whole pool
	Observed   []Observed
	// Rejected is the HTTP status of an answer that says that the request itself is wrong, such as 404; 0: it is no such
	// answer. Its verdict is about the quota, which let the request pass.
	Rejected int
	Cause    string // of a pause, a failure or a rejection, for people

	// For OpAnswer and OpClose that are reported late: how long ago it happened, at most MaxAge. It must not be more than
	// that, because windows count the request from then on.
	Age time.Duration

	// For OpClose: no response will be reported, and the request may still be on its way. For OpAcquire: no response
	// will be reported, and the ticket ends with its grant. For OpTouch: the member leaves, and its share is free.
	Spent bool

	// For OpTouch, which also reads TTL as the length of the member's lease; 0 means the pool's. Share is the share
	// from the latest Result, so that the pool knows what the member relies on. A touch that arrives after Until does
	// nothing: if it was delayed, the member may have given up meanwhile. An Until of 0 means no such time.
	Share int64
	Until Time

	// For OpHeartbeat, which also reads Agent, User, Class, and TTL as the length of the lease; 0 means the pool's.
	// OpLeave reads Agent and Machine. It does not end a lease that another session or machine has taken over, unless
	// Machine is empty.
	Machine  string
	WaitsFor []string // agents whose work this one's depends on
	Slots    Slots    // of the agent's user

	Result Result
}

// Clone returns a copy of op that shares no memory with it.
func (op *Op) Clone() Op {
	c := *op
	c.Amounts, c.Observed, c.WaitsFor = slices.Clone(op.Amounts), slices.Clone(op.Observed), slices.Clone(op.WaitsFor)
	return c
}

// State is the state of a ticket after an operation.
type State uint8

// The states.
const (
	NoResult State = iota // no store has carried the operation out
	Granted               // may be sent
	Waiting               // in the queue
	Refused               // will not be granted; Reason says why
	Ended                 // closed, cancelled or expired; success for OpClose, OpAnswer and OpCancel
	Unknown               // no such ticket
)

func (s State) String() string {
	return pick(int(s), "none", "granted", "waiting", "refused", "ended", "unknown")
}

// Code says why a request waits or was refused.
type Code uint8

// The codes.
const (
	CodeNone     Code = iota
	CodeLimit         // a limit has no room
	CodeOrder         // others are ahead, or have claimed the room that is left
	CodePaused        // the pool, model or key is paused
	CodeProbe         // a pause ended and its probe is still out
	CodeRamp          // the pool is ramping up
	CodeCapacity      // the cost is more than the limit can ever hold
	CodeDeadline      // no grant within Wait
	CodeFull          // MaxWaiting requests are waiting
	CodeInvalid       // the operation is not valid
	CodeLight         // the light is amber or red for this class
	CodeShare         // only the unused share of other classes is left
	CodeReserve       // the rest is reserved for a person
	CodePace          // lower classes are paced while the highest class is live
	CodeBreaker       // the quota would run out before its reset
	CodeSlots         // the user has its maximum of agents
	CodeStore         // the store cannot be reached, and the process has no room in its share
	CodeSlowed        // a budget slows the request down; set by the gate, never by a store
)

func (c Code) String() string {
	return pick(int(c), "none", "limit", "order", "paused", "probe", "ramp", "capacity", "deadline", "full", "invalid",
		"light", "share", "reserve", "pace", "breaker", "slots", "store", "slowed")
}

// Reason explains a decision, as data.
type Reason struct {
	Code   Code
	Behind Code   // for CodeDeadline and CodeFull: what the request would wait for
	Limit  string // name of the limit; empty: none
	At     Time   // when the cause is expected to end; 0: not known
}

// Result is the outcome of an operation. The zero Result is none: it is neither a grant nor a refusal.
type Result struct {
	State     State
	ID        ID
	Now       Time // the time of the batch
	GrantedAt Time
	Waited    time.Duration
	// Reason is why the request waits or was refused. An acquire that may wait without bound gets no reason: poll for
	// it.
	Reason Reason
	// Held tells a retry that the pool is paused or ramping. It should join the queue at once: the queue's order
	// replaces any jitter.
	Held bool
	// Share is the result of a touch: the member's share of every shared limit is 1/Share, rounded down. 0 means that
	// it has none yet.
	Share int64
}

func pick(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "invalid"
	}
	return names[i]
}
