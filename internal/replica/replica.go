// Package replica is one process's copy of a pool: the state machine that the entries of a shared log step.
package replica

import (
	"errors"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
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
	pool   *pool.Pool
	broken error
}

// New returns the replica of a log without entries.
func New() *Replica { return &Replica{} }

// Restore returns the replica that AppendSnapshot wrote. It checks everything: whatever the bytes are, it returns an error
// or a replica that works.
func Restore(snapshot []byte) (*Replica, error) { return nil, errors.ErrUnsupported }

// AppendSnapshot appends the replica as bytes, which are the same on every machine.
func (r *Replica) AppendSnapshot(b []byte) []byte { return b }

// Apply carries out the next entry of the log, after what time has brought before it.
func (r *Replica) Apply(e sharedlog.Entry) Applied { return Applied{Err: ErrUndecodable} }

// Skip passes over the next entry of the log, at which Apply failed. Only the position and the time move.
func (r *Replica) Skip(e sharedlog.Entry) {}

// Broken returns why the replica must not be used any more, or nil: [ErrPoisoned] or [ErrRules].
func (r *Replica) Broken() error { return r.broken }

// Pool returns the pool, for views and forks; nil before a session has opened it. Only Apply may step it.
func (r *Replica) Pool() *pool.Pool { return r.pool }

// Now returns the pool's time after the latest entry.
func (r *Replica) Now() store.Time { return 0 }

// Wake returns when time alone may let a waiting request go. An entry of that time or later proves that it has come.
// session is the one of that request, or 0 if it is not known. at is 0 if no request waits for time to pass.
func (r *Replica) Wake() (at store.Time, session uint64) { return 0, 0 }

// Hash returns a hash of all decisions so far.
func (r *Replica) Hash() uint64 { return 0 }

// Fork returns an independent copy.
func (r *Replica) Fork() *Replica { return nil }

// Member is a process that has joined and has neither left nor been declared gone.
type Member struct {
	Process  uint64
	Sequence uint16     // of its latest entry
	Heard    store.Time // pool time of its latest entry
	OneShot  bool
	Sessions int // that are open
}

// Member returns what the replica knows of a process. ok is false if it is not a member.
func (r *Replica) Member(process uint64) (m Member, ok bool) { return m, false }

// Members returns the number of members.
func (r *Replica) Members() int { return 0 }

// Applied is what an entry did. Its slices are valid until the next call of Apply or Skip.
type Applied struct {
	Process  uint64 // 0 if Err is ErrUndecodable or ErrNotMember
	Sequence uint16
	Err      error      // the entry was not carried out
	Ops      []store.Op // all operations of the entry in order, with results
	Errs     []error    // the outcomes of its requests of the kinds Open, Close and Leave, in order; nil is success
	Decided  []store.ID // waiting tickets, of any process, that were decided without being asked about, before or by the entry
	Diverged bool       // the process had decided otherwise than this replica before it made the entry
}

// Kind says what a request asks for.
type Kind uint8

// The kinds of request.
const (
	Ops   Kind = iota // carry out Ops
	Open              // open Session with Spec
	Close             // close Session: its waiting requests are cancelled, and its limits are no longer stated
	Leave             // the process leaves: all its sessions are closed
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

// Writer makes the entries of one process.
type Writer struct{ id Identity }

// NewWriter returns a writer that makes the process join with its first entry.
func NewWriter(id Identity) *Writer { return &Writer{id: id} }

// Append appends to b the entry with which the process asks for requests; without any it only says that the process is
// alive and that time has passed. If the process is not a member in r, the entry makes it one.
//
// r is the replica of the process after the process's previous entry was applied, or found to be lost for good. So there
// is one entry under way at a time, and until its outcome is known the same bytes may be appended to the log again: all
// replicas recognise the second one. monotonic is the current reading of the machine's monotonic clock.
//
// It returns [sharedlog.ErrTooBig] if the requests do not fit into an entry.
func (w *Writer) Append(b []byte, r *Replica, monotonic time.Duration, requests []Request) ([]byte, error) {
	return b, errors.ErrUnsupported
}
