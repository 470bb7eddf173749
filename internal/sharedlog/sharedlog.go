// Package sharedlog defines the contract between a store whose processes share a log and the engine that keeps the log:
// Redis, Postgres, or a model in memory.
//
// A pool is a deterministic state machine. Its processes share only its input: an ordered log of entries, each stamped by
// the engine's clock. Every process applies all entries in order to its own replica, and so reads the result of its own
// entries there. An engine orders, stamps and keeps bytes. It knows nothing of what they mean.
//
// # Places
//
// A [Position] lies between two entries. Its Offset counts the bytes of all entries before it, and never begins anew while
// an incarnation lasts. An incarnation is one life of the log: it ends when the engine has lost the log, or its end, and
// whoever survived goes on with a new one (see [Log.Revive]). A segment is the part of an incarnation after its latest
// snapshot. It is named by the offset at which it begins, so a position keeps its Offset when the segment changes.
//
// # What engines guarantee
//
//   - Order. All processes read the same entries in the same order, and every entry whole.
//   - One round trip. Append returns what other processes appended since the caller's position, and the own entry's stamp.
//   - Nothing is appended elsewhere. An entry goes into the incarnation and the segment of the caller's position, or
//     nowhere: a process that slept while the log went on without it gets an error that says so.
//   - A loss is noticed. A position carries the stamp of the entry before it. If the engine holds other bytes there, as
//     after a failover that lost the end of the log, every method that reads returns [ErrLost].
//   - A loss that a caller cannot see is announced. An engine loses the end of a log only when it is restarted or another
//     one takes over. From then on until somebody revives the log, what Load, Append and Read return is marked as Moved.
//   - Stamps are the engine's word. They may jump in either direction if its clock is set; the replica decides how much
//     time has passed.
//
// # Errors
//
// Every error of a [Log] matches exactly one of the errors of this package, except that [ErrEvicted] comes with [ErrLost].
// An error that is [ErrUnavailable] leaves open whether the call had its effect. Entries carry their sender and a
// number of it, so that a sender can append the entry again and every replica recognises the second one. All other errors
// mean that the call changed nothing, with one exception: Append may return [ErrLost] after it has appended the entry to what
// is left of a log whose end was lost.
//
// # Use
//
// A process loads the log, and then appends and reads from the position that the last call returned:
//
//	loaded, err := log.Load(ctx, sharedlog.Position{})
//	at := loaded.At
//	...
//	got, err := log.Append(ctx, at, entry)
//	switch {
//	case errors.Is(err, sharedlog.ErrSegmentEnded): // nothing was appended: Read follows to the next, then append again
//	case errors.Is(err, sharedlog.ErrIncarnationOver): // load, and state again what the others may not know
//	case errors.Is(err, sharedlog.ErrLost): // heal: Post, wait, and Revive
//	case err == nil:
//		apply(got.All())
//		at = got.At
//	}
//
// The type member of package logtest is the smallest process that does all of it.
//
// One process may use several positions of a log at once. All methods are safe for concurrent use. A call returns when the
// deadline of its context has come; after a cancellation it may take as long as the engine's own timeout.
package sharedlog

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Bounds that every engine enforces.
const (
	// MaxEntry is the largest entry in bytes: a batch of a few thousand operations.
	MaxEntry = 256 << 10
	// MaxSegment is how long a segment may become, in bytes. Each process that has seen a segment of that length refuses to
	// append to it until it was compacted. So it can grow beyond by one entry of each process.
	MaxSegment = 32 << 20
	// MaxSnapshot is the largest snapshot in bytes.
	MaxSnapshot = 64 << 20
	// MaxRead bounds the bytes of the entries that one call returns, so that a process that is far behind takes neither much
	// memory of the engine nor its connection from others, and so that a call over a slow line ends in time. The largest entry
	// fits.
	MaxRead = 272 << 10
	// MaxPool is the longest name of a pool in bytes.
	MaxPool = store.MaxName
	// MaxPosts is how many posts Post returns.
	MaxPosts = 64
)

// Times that every engine keeps.
const (
	// KeepEnded is how long a segment that has ended can be read.
	KeepEnded = 10 * time.Second
	// KeepNew is how long a new log, or a new incarnation, is kept until Keep is called.
	KeepNew = 24 * time.Hour
	// KeepPost is how long the position that a process has posted counts.
	KeepPost = 2 * time.Second
	// KeepAside is how long a damaged log is kept for those who want to look at it.
	KeepAside = 7 * 24 * time.Hour
	// KeepUpload is how long an engine keeps a snapshot that was uploaded and never became the log's.
	KeepUpload = time.Minute
)

// Engine keeps the logs of many pools. A process opens one and shares it.
type Engine interface {
	// Log returns the log of a pool. It does no I/O: Load creates the log.
	Log(pool string) Log
	// Pools returns the names of all pools that have a log, in order. It reports false for whole if it could not look at
	// everything that the engine holds.
	Pools(ctx context.Context) (names []string, whole bool, err error)
	// Secret returns the secret called name, which consists of a few lower-case letters. If the engine has none, it keeps
	// fresh, of [store.SecretSize] bytes, and returns that. Concurrent callers get the same secret.
	Secret(ctx context.Context, name string, fresh []byte) ([]byte, error)
	// Close ends the connection. Calls under way, and later ones, return [ErrClosed].
	Close() error
}

// Shared is implemented by engines in which other programs can write to what a log consists of.
type Shared interface {
	// Place returns what the engine keeps the log of a pool in, for people, such as the name of a key.
	Place(pool string) string
	// Aside moves all that the engine keeps of a pool out of the way, for [KeepAside], and returns where it is then. For
	// processes that know the log it is lost.
	Aside(ctx context.Context, pool string) (place string, err error)
}

// Log is the log of one pool.
type Log interface {
	Journal
	Snapshots
	Healing
	Bell
}

// Journal is the entries.
type Journal interface {
	// Load returns the latest snapshot and the entries after it. If the engine has no log of the pool, Load creates an empty
	// one, unless processes that know the lost one have posted within KeepPost: then it returns [ErrLost], and the caller
	// tries again in a moment.
	//
	// A caller that knows a log states where its knowledge ends. For it Load creates none: it returns [ErrLost].
	Load(ctx context.Context, known Position) (Loaded, error)

	// Append adds an entry of at most MaxEntry bytes to the end of the segment of at, and stamps it. It returns the entries
	// between at and the new one. If these are too many (see MaxRead), Own is false, and the new entry comes with a later
	// Read.
	//
	// Errors besides those of Read: [ErrSegmentEnded], [ErrTooBig], and [ErrFull] if the segment has reached MaxSegment or
	// the engine is out of memory.
	Append(ctx context.Context, at Position, entry []byte) (Entries, error)

	// Read returns entries after at, at most MaxRead bytes of them, or none if there are none. Where the segment of at has
	// ended, Read returns its rest and the position where to go on.
	//
	// Errors: [ErrUnavailable], [ErrIncarnationOver], [ErrLost], and [ErrBehind] if the segment ended KeepEnded ago, or if
	// another has ended since.
	Read(ctx context.Context, at Position) (Entries, error)
}

// Snapshots begin new segments, and so keep the log short.
type Snapshots interface {
	// Claim reports whether the caller shall write the snapshot that ends the segment of at. It is true for one process of
	// all that ask within the time. It spares work and guards nothing: Compact does that.
	Claim(ctx context.Context, at Position, within time.Duration) (bool, error)

	// Compact makes a snapshot of the state at a position the beginning of a new segment, to which the entries after at
	// move. Others notice by [ErrSegmentEnded]. So does the caller if another process compacted the segment first. A position
	// at the very beginning of its segment needs no new snapshot, so Compact does nothing.
	Compact(ctx context.Context, at Position, snapshot []byte) error

	// Keep has the engine delete the log after a time in which nobody calls Keep, so that pools that nobody uses any more do
	// not stay. A log for which it was never called is kept for KeepNew. Errors are those of Read.
	Keep(ctx context.Context, at Position, unused time.Duration) error
}

// Healing is for a log that was lost, by those who know it.
type Healing interface {
	// Post tells other survivors of a lost log how much of it this process knows. It returns what all have posted within
	// KeepPost: those who know most first, and in an order that is the same for all. Who is first after a short wait revives
	// the log.
	Post(ctx context.Context, process uint64, at Position) ([]Survivor, error)

	// Revive begins a new incarnation with a snapshot of the state at a position of an earlier one. It does so only if the
	// engine has no log, or still the incarnation of from, whose end was lost, or one before that. Otherwise another process
	// was first: Revive returns [ErrIncarnationOver], and the caller loads.
	Revive(ctx context.Context, from Position, snapshot []byte) (Position, error)
}

// Bell wakes processes.
type Bell interface {
	// Publish wakes processes. Wake-ups are hints: they may be lost, late, or in another order.
	Publish(ctx context.Context, processes ...uint64) error

	// Watch returns a channel that gets a value after a wake-up of the process, and when wake-ups may have been lost. Many
	// wake-ups may become one. The channel is closed when ctx ends or the engine is closed.
	Watch(ctx context.Context, process uint64) (<-chan struct{}, error)
}

// Entries are a part of the log.
type Entries struct {
	// Data holds whole entries as the log has them; see All. The caller may keep it.
	Data []byte
	// From is the position before Data.
	From Position
	// At is where to go on: after Data, or after the own entry if Own.
	At Position
	// Own is set by Append if Data reaches up to the own entry, so that the caller can apply that too.
	Own bool
	// Stamp is the time of the own entry, set if Own.
	Stamp store.Time
	// More reports that the log had more entries than were returned.
	More bool
	// Moved reports that the engine was restarted, or another one took over, since the incarnation began: others may know
	// entries after those that it still has. Nobody may act on these before the survivors have healed the log.
	Moved bool
}

// Loaded is what a process begins with.
type Loaded struct {
	// Snapshot is the state at Entries.From. It is empty if the log has none yet.
	Snapshot []byte
	Entries
	// Origin is the position that Revive was called with: how much of an earlier incarnation this one contains. It is zero
	// if this one began with nothing.
	Origin Position
	// Created reports that this call created the log.
	Created bool
	// Now is the engine's time.
	Now store.Time
}

// Survivor is a process that has posted its position.
type Survivor struct {
	Process uint64
	At      Position
	// New is set for the caller if it had not posted before, or the engine has lost that: then it may have lost the posts of
	// others too.
	New bool
}
