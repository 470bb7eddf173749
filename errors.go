package sluice

import (
	"errors"
	"fmt"
	"time"
)

// Kinds of [Error], for use with errors.Is.
var (
	ErrUnknownResource = errors.New("unknown resource")
	ErrInvalid         = errors.New("invalid")
	ErrCapacity        = errors.New("cost above capacity")     // waiting would not help
	ErrNotNow          = errors.New("not now")                 // Try: the request would have to wait
	ErrDeadline        = errors.New("not before the deadline") // the request was not sent
	ErrFull            = errors.New("too many waiting")
	ErrAttempts        = errors.New("out of attempts")
	ErrBilling         = errors.New("billing stop")
	ErrEnded           = errors.New("ticket has ended")
	ErrUnknownTicket   = errors.New("unknown ticket")
	ErrClosed          = errors.New("gate is closed")
	ErrStore           = errors.New("store unreachable or damaged")
	ErrCancelled       = errors.New("cancelled while waiting")
	ErrClass           = errors.New("not for this class")
	ErrSlots           = errors.New("no slot") // the user has its maximum of agents
	ErrBudget          = errors.New("budget used up")
	ErrUnknownTask     = errors.New("unknown task")                             // no route is configured for it
	ErrTakenOver       = errors.New("another machine has taken the lease over") // returned on the agent's old machine
)

// Error says what was refused, why, and what to do about it.
type Error struct {
	Err      error // one of the errors above
	Resource string
	Agent    string
	// Limit is the limit that has no room, if there is one.
	Limit string
	// RetryAt is when a retry may help, by this machine's clock; zero if that is not known.
	RetryAt time.Time
	// Reason is the reason as one word: limit, order, paused, probe, ramp, capacity, deadline, full, invalid, light,
	// share, reserve, pace, breaker, slots, budget or slowed. It is empty if no limit or rule refused the request.
	Reason string
	// HeldBy lists the agents whose open tickets hold the limit, if no time is known because it depends on them. HeldUntil
	// is when the last of these tickets ends, by this machine's clock, if none is closed or renewed before.
	HeldBy    []string
	HeldUntil time.Time
	Message   string
	Hint      string

	cause      error
	why        string        // the reason in words, without the time
	waited     time.Duration // until the caller gave up, or was given up
	behind     string        // for the reasons deadline and full: the reason it would have waited for
	used, size int64         // of a budget
	open       int           // tickets that hold the limit
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the kind of the error and its cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.cause}
}

func invalid(format string, args ...any) *Error {
	return &Error{Err: ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
