// Package replica is one process's copy of a pool: the state machine that the entries of a shared log step.
//
// Processes that share a pool share its input. Each has a [Replica], applies the entries of the log to it in order, and
// finds the results of its own requests there. A replica does no I/O, has no clock and no goroutines, and uses nothing
// random. So replicas that have applied the same entries are the same to the byte, in every process and on every machine.
//
// A process uses the package like this:
//
//	r := replica.New()                            // or Restore(snapshot)
//	w := replica.NewWriter(replica.Identity{...})
//	entry, err := w.Append(nil, r, uptime, requests)
//	...                                           // the log takes the entry, and returns those of others before it
//	for e := range entries {
//		did := r.Apply(e)                         // did.Ops has the results if the entry is the own one
//	}
//
// # Entries
//
// An entry is a batch of requests of one process: open a session, carry out operations, close the session, leave. An entry
// without requests says that the process is alive and that time has passed. The first entry of a process makes it a member.
// The log gives it a number, which later entries have instead of the process's id. Each entry has the next sequence number of
// its process. A process has one entry under way at a time, and sends the same bytes again if it does not know the outcome;
// the second copy is [ErrDuplicate].
//
// Entries are small, because every process reads those of all others. What operations of a process have in common (their
// kind, model, limits and so on) is a shape, which the log has once and which has a number from then on; so have names of
// agents. Replica and [Writer] both keep these books. They change only with the process's own entries, so the Writer knows
// what they will be when the replicas read its entry. A whole ticket takes about 57 bytes in three entries, of which the
// frames of the log are 24.
//
// # Time
//
// The pool's time follows the engine's stamps as far as the monotonic clocks of the machines confirm them; see the type
// clock. Before an entry, a replica lets happen what time alone brings before it: requests that may go, tickets that end,
// processes that are gone, each at its own moment. But nothing happens more than 250 ms before the entry, since nobody
// can have seen a grant while the log stood still.
//
// A process is gone if it has no entry for [store.SessionLife]. Its tied tickets are bounded, its waiting requests
// cancelled, and its limits no longer stated. When there was no entry of any process for six seconds, the engine may have
// been away, and everybody gets the full time again. A process that is gone joins again with its next entry.
//
// # Signs of life
//
// A member with a share (store.OpTouch) has to be heard of every few seconds. After its first touch any entry of its process
// is a sign of life, if the entry says so: a busy process writes nothing for it, an idle one an empty entry each
// [store.BeatEvery]. An entry may be stuck on its way, and arrive when its process has long been going on alone. So it does
// not count from its arrival, but from when it was made at the latest: that is what the machine's clock has shown since
// the process's previous entry, after the arrival of that one, whose result the process knew. So the process can tell, whatever
// became of its latest entry, until when it counts as heard. An entry also confirms the share that the process was
// told in answer to the previous one.
//
// # What the replicas do together
//
// Sessions state limits. The least size that an open session states holds. The first session makes the pool; one that is
// alone, or restates, replaces its limits. Every process says which rules of decision it knows, and the pool decides by the
// highest that all members know. An entry has, about once a second, a hash of the decisions that its writer's replica has
// made up to a position. One that differs is reported as Diverged.
//
// An entry that cannot be decoded, or that comes from a process that may not send it, is passed over by all replicas alike.
// Everything is checked before anything changes. Should applying an entry panic all the same, the replica is broken, and
// says so ever after. Its process restores the latest snapshot, applies what follows, and calls Skip for that entry, as all
// others do.
package replica

import (
	"errors"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// The errors of entries, for errors.Is. With all but the last two an entry was not carried out, by any replica.
var (
	// ErrDuplicate means that an entry is a copy of an earlier one, or older than the latest of its process.
	ErrDuplicate = errors.New("the log has the entry already")
	// ErrNotMember means that the process of an entry has not joined, has left, or was declared gone.
	ErrNotMember = errors.New("the process of the entry is not a member of the pool")
	// ErrUndecodable means that an entry is not what a Writer makes.
	ErrUndecodable = errors.New("the entry cannot be decoded")
	// ErrCrowded means that a process cannot join because too many have.
	ErrCrowded = errors.New("too many processes share the pool")
	// ErrRules means that a process cannot decide as the others do. If it is the error of the replica itself, see
	// [Replica.Broken], this release is too old for the pool.
	ErrRules = errors.New("the release does not decide as the pool's other processes do")
	// ErrPoisoned means that applying an entry failed in a way that must not happen. The replica is broken: restore it from
	// a snapshot, and Skip the entry.
	ErrPoisoned = errors.New("the entry makes the replica fail")
)

// Replica is the state of a pool and of the processes that share it. It is not safe for concurrent use.
type Replica struct {
	pool      *pool.Pool // nil before the first session
	clock     clock
	awake     store.Time // end of the latest long silence of all processes
	rules     int        // by which the pool decides; 0 before the first process
	numbers   uint64     // of processes that have ever joined
	processes []*process // by number
	byID      map[uint64]*process
	departed  []departed // the oldest first
	forgot    store.Time // when it was said, before there was a pool, that an earlier log was lost; 0: it was not
	hash      uint64     // of what the pool's hash does not cover

	// What follows is not part of the state.
	broken  error
	goneDue store.Time // no process is gone before
	checks  [checkSlots]check
	latest  check
	decode  decoder
	errs    []error
	decided []store.ID
}

// check is the hash of a replica at a position.
type check struct{ at, hash uint32 }

// checkSlots is how many recent positions a replica can be compared at.
const checkSlots = 1024

const (
	// mostBack is how long before an entry what time alone brings can happen at the earliest. After a stall of the engine a
	// grant must not lapse before its owner can have seen it.
	mostBack = store.Time(250_000)
	// mostMade is how much of its time the pool can make up at an entry without regard to grants that wait for their callers. Their
	// time to do that went by before: the entry before this one was late itself.
	mostMade = 250 * time.Millisecond
	// mostSteps bounds what time brings before one entry.
	mostSteps = 1 << 14
)

// New returns the replica of a log without entries.
func New() *Replica { return &Replica{} }

// Broken returns why the replica must not be used any more, or nil: [ErrPoisoned] or [ErrRules].
func (r *Replica) Broken() error { return r.broken }

// Pool returns the pool, for views and forks; nil before a session has opened it. Only Apply may step it.
func (r *Replica) Pool() *pool.Pool { return r.pool }

// Now returns the pool's time after the latest entry; 0 before the first.
func (r *Replica) Now() store.Time { return store.Time(r.clock.now) }

// NowAt returns the pool's time when the monotonic clock of a machine shows a reading: what an entry would have that is sent
// now and arrives as fast as any of that machine has. It is not known of a machine without entries.
func (r *Replica) NowAt(machine uint64, monotonic time.Duration) (now store.Time, known bool) {
	at, known := r.clock.at(machine, monotonic.Microseconds())
	return store.Time(at), known
}

// Wake returns when time alone may let a waiting request go, or end it. An entry of that time or later proves that it has
// come. session is the one of that request, or 0 if it is not known. at is 0 if no request waits for time to pass.
func (r *Replica) Wake() (at store.Time, session uint64) {
	if r.pool == nil {
		return 0, 0
	}
	return r.pool.Wake(), r.pool.Next().Session
}

// Hash returns a hash of all decisions so far.
func (r *Replica) Hash() uint64 {
	if r.pool == nil {
		return r.hash
	}
	return flat.Chain(r.hash, r.pool.Hash())
}

func (r *Replica) chain(x uint64) { r.hash = flat.Chain(r.hash, x) }

// Rules returns the number of the rules by which the pool decides; 0 before the first process.
func (r *Replica) Rules() int { return r.rules }

// Fork returns an independent copy.
func (r *Replica) Fork() *Replica {
	f := *r
	if r.pool != nil {
		f.pool = r.pool.Fork()
	}
	f.clock.machines = slices.Clone(r.clock.machines)
	f.departed = slices.Clone(r.departed)
	f.processes, f.byID = nil, nil
	for _, p := range r.processes {
		f.add(p.clone())
	}
	f.decode, f.errs, f.decided = decoder{}, nil, nil
	return &f
}

// Member is a process that has joined and has neither left nor been declared gone.
type Member struct {
	Process  uint64
	Sequence uint16     // of its latest entry
	Heard    store.Time // pool time of its latest entry
	Gone     store.Time // when it counts as gone without another entry
	OneShot  bool
	Sessions int // that are open
	Rules    int // the highest that it knows
}

// Member returns what the replica knows of a process. ok is false if it is not a member.
func (r *Replica) Member(process uint64) (m Member, ok bool) {
	p := r.process(process)
	if p == nil {
		return Member{}, false
	}
	return Member{p.id, p.seq, p.heard, r.deadline(p), p.oneShot, len(p.sessions), p.most}, true
}

// Share returns which session makes a process a member with a share, and what it knows of that; 0: none does.
func (r *Replica) Share(process uint64) (session uint64, m pool.Membership) {
	if p := r.process(process); p != nil && p.shares != 0 && r.pool != nil {
		if m, ok := r.pool.Membership(p.id | uint64(p.shares)); ok {
			return p.id | uint64(p.shares), m
		}
	}
	return 0, m
}

// HeardBy returns when an entry at most counts as a sign of life that a process makes at a reading of its machine's
// monotonic clock, or has made before, whenever it arrives.
func (r *Replica) HeardBy(process uint64, monotonic time.Duration) store.Time {
	if p := r.process(process); p != nil {
		return p.madeBy(monotonic.Microseconds())
	}
	return r.Now()
}

// IsOpen reports whether a session is open.
func (r *Replica) IsOpen(session uint64) bool {
	p := r.process(ProcessOf(session))
	return p != nil && p.byNumber[uint32(session&MaxSession)] != nil
}

// Numbered returns the number of the latest ticket that a session asked for; 0 if it is not open.
func (r *Replica) Numbered(session uint64) uint64 {
	if p := r.process(ProcessOf(session)); p != nil {
		return p.base(uint32(session & MaxSession))
	}
	return 0
}

// EachMember calls f for every member, until f returns false.
func (r *Replica) EachMember(f func(process uint64) bool) {
	for _, p := range r.processes {
		if !f(p.id) {
			return
		}
	}
}

// Members returns the number of members.
func (r *Replica) Members() int { return len(r.processes) }

// Applied is what an entry did. Its slices are valid until the next call of Apply or Skip.
type Applied struct {
	Process  uint64 // 0 if Err is ErrUndecodable or ErrNotMember
	Sequence uint16
	Err      error      // the entry was not carried out
	Ops      []store.Op // all operations of the entry in order, with results
	Errs     []error    // the outcomes of its requests, but for those of the kind Ops, in order; nil is success
	Decided  []store.ID // waiting tickets, of any process, that were decided without being asked about, before or by the entry
	Diverged bool       // the process had decided otherwise than this replica before it made the entry
}

// Kind says what a request asks for.
type Kind uint8

// The kinds of request.
const (
	Ops    Kind = iota // carry out Ops
	Open               // open Session with Spec
	Close              // close Session: its waiting requests are cancelled, and its limits are no longer stated
	Leave              // the process leaves: all its sessions are closed
	Forget             // an earlier log of the pool was lost, and nobody knows what was in it
)

// Request is a part of an entry. Requests are carried out in order, consecutive ones of the kind Ops in one step.
type Request struct {
	Kind    Kind
	Session uint64      // of the process, see SessionOf
	Spec    *store.Spec // for Open
	Ops     []store.Op  // for Ops; those without a session are of Session
}

// sessionBits is the size of a session's number within its process.
const sessionBits = 24

// ProcessID makes the id of a process of random bits. It is never 0.
func ProcessID(random uint64) uint64 { return max(random>>sessionBits, 1) << sessionBits }

// SessionOf returns the id of the nth session of a process. n counts from 1 and begins anew after MaxSession.
func SessionOf(process, n uint64) uint64 { return process | n&MaxSession }

// ProcessOf returns the process of a session.
func ProcessOf(session uint64) uint64 { return session &^ MaxSession }

// MaxSession is the largest number of a session within its process. After so many, the numbers of sessions that were closed
// long ago can be used again.
const MaxSession = 1<<sessionBits - 1

// Identity is what a process says of itself when it joins.
type Identity struct {
	Process uint64 // see ProcessID
	Machine uint64 // the same for all processes that share a monotonic clock: a hash of the machine's boot
	OneShot bool   // it makes one request and exits
}
