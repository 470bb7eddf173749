// Package store is the contract between the gate and the place where a pool's
// state lives: a process's memory, a shared file, Redis, or a daemon.
//
// A store is mechanism. It applies batches of small operations to one pool,
// atomically and on its own clock. It knows limits, costs, classes and times;
// it knows nothing of HTTP, providers, models' prices or dollars. Everything
// that decides what a request costs or what an answer means happens before an
// operation is handed to it.
//
// Implementations register a URL scheme (see [Register]) and pass the suite in
// package storetest.
package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds that every store keeps, so that no input can make its state grow
// without limit.
const (
	MaxLimits  = 16      // limits on one pool
	MaxClasses = 8       // classes of one pool
	MaxName    = 256     // bytes in the name of an agent, user, model, tool or key
	MaxAmount  = 1 << 40 // largest size of a limit and largest cost of a request
	MaxWindow  = 100 * 24 * time.Hour
	MaxTTL     = 24 * time.Hour
	MaxHint    = 31 * 24 * time.Hour // a RetryAfter beyond it is a mistake and counts as none
	MaxBatch   = 4096                // operations in one Apply
	MaxWaits   = 16                  // agents that one agent can wait for
	MaxSamples = 64                  // of a breaker
	MaxSlots   = 1 << 20
	MaxLeases  = 1 << 17 // of one pool
	MaxMembers = 4096    // of one pool: processes that have a share while the store cannot be reached
	MaxMeters  = 1 << 20 // of one limit
)

// DefaultMeters is how many agents, users or tools have a meter of their own for a limit that is scoped by
// them.
const DefaultMeters = 10_000

// Whole is the unit of parts: a thousand thousandths.
const Whole = 1000

// Store opens pools.
type Store interface {
	// Pool opens the pool that spec names, creating it if nobody has. Opening a
	// pool that exists with other limits keeps every charge; where two members
	// state different sizes for a limit of the same name, the smaller one holds.
	Pool(ctx context.Context, spec Spec) (Pool, error)
	// Close releases what the store holds. Its pools answer [ErrClosed] afterwards, and
	// those who wait are told to look.
	Close() error
}

// Pool is one session's handle on a pool. All methods are safe for concurrent
// use.
type Pool interface {
	// Apply carries out ops in order, as one atomic step at one moment of the
	// store's clock, and fills in each op's Result. It does not wait: a request
	// that has to is left in the queue and its op says Waiting. The error is about
	// the store (unreachable, closed); what became of each operation is in its
	// Result. Applying the same ops again after an error is safe: an id that was
	// charged is not charged twice, and a second answer or close changes nothing.
	// The error matches [ErrKept] if the store will see to answers, closes and
	// cancels by itself.
	Apply(ctx context.Context, ops []Op) error
	// Snapshot reads the whole state of the pool at one moment.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Watch sets the function that is told when waiting tickets of this session
	// have been decided after the Apply that queued them: collect them with
	// OpPoll. It is called without locks held, from any goroutine, and must
	// not block. Ids are valid only during the call.
	Watch(decided func(ids []ID))
	// Now returns the moment on the store's clock, as near as this handle knows it without
	// asking.
	Now() Time
	// Close ends the session: what waits is cancelled, what is held stays charged
	// until its time to live is over. A member leaves.
	Close() error
}

// Shelf is implemented by stores that are gone with the process: what else is to last as long as they do can be kept with
// them.
type Shelf interface {
	// Keep returns what is kept under a name. If there is nothing, that is value from now on.
	Keep(name string, value any) any
}

// Home is implemented by stores whose pools are a cache in a directory. What must last is kept beside them.
type Home interface {
	// Dir is the directory that the pools are in, and where else there can be files.
	Dir() string
}

// Secrets is implemented by stores that keep secrets for all their users, such as the one that labels of API keys are made
// with.
type Secrets interface {
	// Secret returns the secret of a name, which is a few lower-case letters. If the store has none, it keeps fresh, of
	// [SecretSize] bytes, and returns that. Whoever asks at the same time gets the same answer.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
}

// SecretSize is the length of a secret in bytes.
const SecretSize = 32

// Lister is implemented by stores that can tell which pools they have.
type Lister interface {
	// Pools reads what is stated of the pools that exist, whoever made them, and makes none. Pools of the gate's own,
	// whose names begin with a parenthesis, are left out.
	Pools(ctx context.Context) (Listing, error)
}

// MaxPools bounds a Listing.
const MaxPools = 256

// Listing is what a store has.
type Listing struct {
	Pools   []Spec   `json:"pools"`   // by name
	Skipped []string `json:"skipped"` // what could not be read, and why, for people; 16 at most
}

// Add adds a pool, or what became of reading it. It reports false when there is room for no more.
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

// Skip notes why something is missing.
func (l *Listing) Skip(why string) {
	const most = 16
	if len(l.Skipped) < most {
		l.Skipped = append(l.Skipped, why)
	}
}

// Sort puts the pools in order.
func (l *Listing) Sort() {
	slices.SortFunc(l.Pools, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
}

// Mortal is implemented by stores that can get into a state that they do not recover from by themselves.
type Mortal interface {
	// Broken says why nothing will work any more unless somebody helps, nil if it will. A store that is busy,
	// slow or out of room is not broken.
	Broken(ctx context.Context) error
}

// Time is a moment on the store's clock: microseconds since the Unix epoch, as
// the store reckons it. The zero Time means none. Callers compare store times
// with each other, never with their own clock.
type Time int64

// Std converts t for people to read.
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

// ID names a ticket. Session tells the callers of a pool apart; N counts within
// it. The store gives out N when an acquire leaves it zero; a caller that
// chooses its own must present them in increasing order, which lets a
// store recognise a ticket that has ended without remembering it.
type ID struct{ Session, N uint64 }

// IsZero reports whether the id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// Kind says when a charge on a limit comes back.
type Kind uint8

// The four kinds of limit.
const (
	Bucket      Kind = iota // drains at Size per Window from the bound on, up to Burst at once
	Rolling                 // comes back one Window after the bound
	Fixed                   // comes back at the first reset after the bound
	Concurrency             // comes back when the ticket is closed
)

func (k Kind) String() string {
	return pick(int(k), "bucket", "rolling", "fixed", "concurrency")
}

// Guard says how the arrival of a request at the provider is bounded.
type Guard uint8

// The three guards, and the default.
const (
	GuardAuto   Guard = iota // headers as the bound while they are quick, the slack where they are slow
	GuardStrict              // only headers, or the ticket's time to live
	GuardOff                 // the grant itself counts as the arrival: for limits of our own
)

func (g Guard) String() string { return pick(int(g), "auto", "strict", "off") }

// Scope is a set of a request's attributes. A limit scoped to some of them has one
// meter for each combination of their values.
type Scope uint8

// The attributes a limit can be scoped by.
const (
	PerAgent Scope = 1 << iota
	PerUser
	PerModel
	PerTool
	PerKey
)

// Shared is the set of scopes that many agents meet in: limits scoped only by
// these take part in the common order. Scopes outside it are somebody's own, and
// one who lacks them holds up nobody else.
const Shared = PerModel | PerKey

// Order says who is next.
type Order uint8

// The three orders.
const (
	Fair   Order = iota // classes by weight, agents of a class in turn
	Strict              // a higher class always first, agents of a class in turn
	FIFO                // first come, first served, over everyone
)

func (o Order) String() string { return pick(int(o), "fair", "strict", "fifo") }

// Limit is one constraint on a pool.
type Limit struct {
	Name   string
	Kind   Kind
	Unit   string
	Size   int64         // amount per Window, or places of a concurrency limit; 0: not known yet
	Burst  int64         // capacity of a bucket
	Window time.Duration // of all kinds but concurrency
	Per    Scope
	Guard  Guard
	Slack  time.Duration // arrival slack; 0: 1.5% of the window, at least 1 s, at most 30 s, and less for spent tickets on small limits
	// Late is set for units that are counted while the answer is produced: they
	// are bound when the ticket is closed, not when it is answered.
	Late bool
	// Guess is set if Size is what is usual: what an answer states counts instead, also if it is
	// more. Otherwise Size caps what is stated.
	SizeIsDefault bool
	// Rough is set for units whose costs are estimates: what a provider counts beyond them
	// is believed, but does not prove that somebody else spent it.
	Estimated bool
	// Plan is set for a window of a subscription, whose provider states with every answer how much is used. Its word counts,
	// also where the ledger has more. All classes but the highest are paced to the reset, see docs/design.md.
	Plan bool
	// Reset is any moment at which a fixed window is known to reset; 0: not known,
	// and until an answer tells, the window is kept as a rolling one. It is a time of day, in
	// UTC: a store whose clock is another converts it.
	Reset Time
}

// Class is a priority class and its share of a contended pool.
type Class struct {
	Name   string
	Weight int64
}

// Backoff is how long a pool pauses: Start, then Factor times longer for each
// consecutive refusal, at most Cap.
type Backoff struct {
	Start  time.Duration
	Factor int64
	Cap    time.Duration
}

// Light is the traffic light: how much of a stock must be left behind. Below Green only
// the highest class proceeds, below Red only an emergency. Both are thousandths; the zero
// Light is off. It binds on fixed windows of [LightFrom] and more that many agents share.
type Light struct {
	Green, Red int64
	Static     bool // else both shrink with the time left to the reset
	All        bool // it binds on every shared limit, flows too
}

// LightFrom is the length from which a fixed window is a stock that has to last.
const LightFrom = 10 * time.Minute

// Breaker foresees when a stock will be gone, from what answers say remains, and slows
// or stops all classes but the highest before that happens. The zero Breaker is off.
type Breaker struct {
	Within  time.Duration // trip if it will be gone by then, and before its reset
	Samples int           // that the line is fitted through: the last so many
	Open    bool          // stop, instead of gliding to the reset
}

// Slots bound how many agents of one user hold a lease at the same time.
type Slots struct {
	Max int           // 0: any number, and this one takes none
	TTL time.Duration // of a slot, from the last heartbeat
}

// DefaultLease is how long an agent lives that is not heard of.
const DefaultLease = 5 * time.Minute

// OnFailure says what a member does while the store cannot be reached.
type OnFailure uint8

// What a member can do.
const (
	FailShare  OnFailure = iota // it goes on within its share, so that all together keep to the limits
	FailClosed                  // it refuses everything
	FailOpen                    // it lets everything go, and counts nothing
)

func (o OnFailure) String() string { return pick(int(o), "share", "closed", "open") }

// Spec describes a pool.
type Spec struct {
	Name       string
	Limits     []Limit
	Classes    []Class
	Order      Order
	MaxWaiting int
	// MaxMeters is how many meters one scoped limit has at most; 0 means [DefaultMeters]. Limits scoped only by
	// model or key have a tenth of it. All scopes beyond that share one more meter, which is
	// safe for each of them.
	MaxMeters int
	Throttle  Backoff // after a 429
	Overload  Backoff // after an overload of the provider as a whole

	// What follows decides how much of a limit a request has to leave to others. The zero
	// value of each is off.
	Light   Light
	Breaker Breaker
	Reserve int64 // thousandths of a stock that all but emergencies leave, for a person at the keyboard
	Shares  bool  // on fixed windows, classes leave each other's unused shares
	Pace    bool  // on rolling windows, lower classes spread their use while the highest is alive

	// Lease is how long an agent lives that is not heard of: 0 means [DefaultLease],
	// negative that no agent counts as alive.
	Lease time.Duration

	// Member names who opens the pool, for people: whose size of a limit holds.
	Member string
	// OnFailure is what members do while the store cannot be reached. It is each member's own.
	OnFailure OnFailure
	// Passing is set by those who make one request and are gone: they are no members, and have no
	// share to go on with when the store cannot be reached.
	OneShot bool
	// Restate tells that this is said instead of all that was said before through the same [Store]: the sessions that it
	// has on the pool do not count as others who state something else. They go on under the new limits, those
	// who wait in their places and what is charged where it is. Sessions of other stores count as ever.
	Restate bool
	// Look opens a pool that exists as it is, whatever else the spec says: for those who only
	// look, or tell of answers. Limits are found by their names.
	ReadOnly bool
}

// Tie says what becomes of a ticket when its session ends first.
type Tie uint8

// The ties. Whoever sends the request itself ties its ticket, so that a process that dies blocks no limit for the whole TTL.
const (
	TieNone Tie = iota // the ticket lives for its TTL: for tickets that another process ends by their ids
	TieBeat            // the ticket ends with a session that was not heard of for SessionLife; see OpPoll and Op.Alive
	TieGone            // the ticket ends when OpGone says that the session is gone: for stores that notice this themselves
)

// SessionLife is how long the tickets of a session outlive its last word, where [TieBeat] ties them to it. Sessions say
// that they are alive every BeatEvery.
const (
	SessionLife = 10 * time.Second
	BeatEvery   = 3 * time.Second
)

// OpKind says what an operation does.
type OpKind uint8

// The operations.
const (
	OpAcquire   OpKind = iota // ask for a ticket; queues if Wait allows
	OpPoll                    // ask again about a waiting ticket, and collect it if granted; one that is held lives for TTL from now on, if that is set
	OpCancel                  // give an unsent ticket back, with full refund
	OpRenew                   // give it back and ask again in one step, keeping its place
	OpAnswer                  // the provider's answer has begun: bounds the ticket's arrival
	OpClose                   // the request is over: settles usage and frees its place
	OpObserve                 // an answer that no ticket belongs to
	OpPause                   // hold everyone for RetryAfter
	OpResume                  // end a pause by hand
	OpHeartbeat               // take or keep an agent's lease, and its slot
	OpLeave                   // give an agent's lease and slot back
	OpLaunch                  // ask when to start a job, so that those that start together are spread over Wait
	OpTouch                   // this session is a member, and alive; with Spent it leaves
	OpForget                  // the store has lost its memory: what was charged before is not known
	OpGone                    // the process of this session is gone: its tied tickets are bounded, and it is no member any more; with N, of so many sessions
)

// Verdict is what an answer means.
type Verdict uint8

// The verdicts.
const (
	VerdictNone        Verdict = iota // nothing that concerns the quota was learned
	VerdictOK                         // accepted
	VerdictThrottled                  // over a limit
	VerdictOverloaded                 // the provider as a whole is over its capacity
	VerdictExhausted                  // a quota is gone until RetryAfter is over
	VerdictBilling                    // money has run out: retrying is useless
	VerdictError                      // any other failure; with a Cause it is the provider's own, such as a 502
	VerdictUnreachable                // no answer: the request did not reach the provider, or nothing came back; Cause says why
)

func (v Verdict) String() string {
	return pick(int(v), "none", "ok", "throttled", "overloaded", "quota gone", "billing stop", "error", "unreachable")
}

// NotStated marks what an answer does not say of a limit.
const NotStated = -1

// Observed is what an answer states of one limit. Fields that it does not state
// are negative; a zero ResetIn is a statement.
type Observed struct {
	Limit     int   // index in Spec.Limits
	Size      int64 // what the provider grants per window
	Remaining int64
	ResetIn   time.Duration // from the moment the answer was made
	// Slop is how far off ResetIn may be either way; 0: 1.2 s, for headers
	// rounded to seconds.
	Slop time.Duration
	// Whole is the size that the provider states, where Size is the part of it to use; 0: Size.
	Whole int64
}

// Op is one operation. Which fields are read depends on Kind.
type Op struct {
	Kind OpKind
	ID   ID // of the ticket; may be zero for OpAcquire

	// Of OpAcquire, and of OpObserve for the scope of its gate.
	Agent, User, Model, Tool, Key string
	Class                         uint8
	Retry                         bool // this send repeats an earlier one
	Emergency                     bool // leaves nothing behind, and goes first; for the highest class only
	// Force is for those who only count: an acquire is granted whatever the limits say, and charged; an answer pauses nobody.
	Force bool
	// Amounts are costs by limit, or with OpClose the actual use. Negative with
	// OpClose: not known, the estimate stands; so it does for all limits if every one of
	// them is zero.
	Amounts [MaxLimits]int64
	Wait    time.Duration // longest wait; 0: decide now; negative: any
	// Alive is how long a waiting entry outlives its last poll; 0: until Wait is
	// over. Callers that can die without the store noticing set it. With OpPoll, of a session
	// and no number, it is how long the session's entries outlive this: what waits, and what is tied with TieBeat. The result
	// is Granted if the session has any.
	Alive time.Duration
	TTL   time.Duration // of the ticket once granted
	Tie   Tie           // to the session. The ticket is bounded when the session ends, and at the latest when TTL is over

	// Of OpAnswer and OpObserve.
	Verdict    Verdict
	RetryAfter time.Duration // the provider's hint, or the length of an OpPause; 0: none
	Scope      Scope         // what the answer proves to be limited, within Shared; 0: the whole pool
	Observed   []Observed
	Cause      string // of a pause or a failure, for people

	// Of OpClose: nothing will be heard of this request, and it may still be on its
	// way. Of OpAcquire: so it will be, and the ticket ends with its grant. Of OpTouch: the
	// member leaves, and its share is free.
	Spent bool

	// Of OpTouch, which also reads TTL as the length of the member's lease; 0 means the pool's.
	// Share is what the latest answer said, so that the pool knows what the member believes.
	// After Until the touch comes too late and does nothing: one that was stuck on its way must not
	// speak for a member that has given up meanwhile. 0: it never does.
	Share int64
	Until Time

	// Of OpHeartbeat, which also reads Agent, User, Class, and TTL as the length of the lease; 0
	// means the pool's. OpLeave reads Agent and Machine, and leaves what another session or
	// machine has taken over; without a machine it speaks for all.
	Machine  string
	WaitsFor []string // agents whose work this one's depends on
	Slots    Slots    // that the agent's user has

	Result Result
}

// State is where an operation left its ticket.
type State uint8

// The states.
const (
	Granted State = iota // may be sent
	Waiting              // in the queue
	Refused              // will not be granted; see Reason
	Ended                // closed, cancelled or expired; for OpClose, OpAnswer and OpCancel this is success
	Unknown              // no such ticket
)

func (s State) String() string {
	return pick(int(s), "granted", "waiting", "refused", "ended", "unknown")
}

// Code says why a request waits or was refused.
type Code uint8

// The codes.
const (
	CodeNone     Code = iota
	CodeLimit         // a limit has no room
	CodeOrder         // others are ahead, or have claimed the room there is
	CodePaused        // the pool, or this part of it, is paused
	CodeProbe         // one probe is out after a pause
	CodeRamp          // the pool is ramping up
	CodeCapacity      // the cost is above what the limit can ever hold
	CodeDeadline      // it would not be granted within Wait
	CodeFull          // MaxWaiting requests are waiting
	CodeInvalid       // the operation makes no sense
	CodeLight         // the light is amber or red for this class
	CodeShare         // what is left is the unused share of other classes
	CodeReserve       // what is left is kept for a person
	CodePace          // lower classes are paced while the highest is alive
	CodeBreaker       // the quota would be gone before its reset
	CodeSlots         // the user has as many agents as it may
	CodeStore         // the store cannot be reached, and the process has no room of its own
	CodeSlowed        // a budget slows it down; stores never say so, the gate does
)

func (c Code) String() string {
	return pick(int(c), "none", "limit", "order", "paused", "probe", "ramp", "capacity", "deadline", "full", "invalid",
		"light", "share", "reserve", "pace", "breaker", "slots", "store", "slowed")
}

// Reason is a decision's explanation as data.
type Reason struct {
	Code   Code
	Behind Code // of CodeDeadline and CodeFull: what it would wait for
	Limit  int8 // index in Spec.Limits; -1: none
	At     Time // when it is expected to be over; 0: not known
}

// Result is what became of an operation.
type Result struct {
	State     State
	ID        ID
	Now       Time // the moment of the batch
	GrantedAt Time
	Waited    time.Duration
	// Reason is why it waits or was refused. An acquire that may wait for ever is not told
	// why it waits: a poll is.
	Reason Reason
	// Held tells, for a retry, that the pool is paused or ramping: join the
	// queue at once, its order replaces any jitter.
	Held bool
	// Share tells, for a touch, that the member's share of every shared limit is one part in so
	// many, rounded down; 0: it has none yet.
	Share int64
}

func pick(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return "invalid"
	}
	return names[i]
}
