package sharedlog

import "errors"

// The errors of a [Log], for errors.Is.
var (
	// ErrUnavailable means that the engine did not answer, or refused for now. The call may have had its effect or not.
	ErrUnavailable = errors.New("the engine of the log does not answer")
	// ErrSegmentEnded means that the segment was compacted: Read from the same position follows.
	ErrSegmentEnded = errors.New("the segment of the log has ended")
	// ErrIncarnationOver means that the log goes on in another incarnation: Load it.
	ErrIncarnationOver = errors.New("the incarnation of the log is over")
	// ErrLost means that the engine has no log of the pool, or a shorter, an earlier or another one than the caller has read.
	ErrLost = errors.New("the engine has lost the log")
	// ErrEvicted comes with ErrLost where the engine itself deleted a part of the log to make room.
	ErrEvicted = errors.New("the engine has deleted a part of the log")
	// ErrBehind means that the rest of the caller's segment is gone: Load.
	ErrBehind = errors.New("too far behind the log")
	// ErrFull means that the segment, or the engine's memory, is full. Reading goes on.
	ErrFull = errors.New("the log is full")
	// ErrTooBig means that an entry or a snapshot is larger than allowed, or the name of a pool longer.
	ErrTooBig = errors.New("too big for the log")
	// ErrDamaged means that the log holds bytes that are not entries.
	ErrDamaged = errors.New("the log is damaged")
	// ErrFormat means that another version of Sluice wrote the log in a format that this one does not read.
	ErrFormat = errors.New("the log has the format of another version of Sluice")
	// ErrUnfit means that the engine refuses the caller for good: its version, its configuration or the caller's rights.
	ErrUnfit = errors.New("the engine cannot keep the log")
	// ErrClosed means that the Engine was closed. The call may have had its effect or not.
	ErrClosed = errors.New("the engine of the log is closed")
)
