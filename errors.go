package sluice

import (
	"errors"
	"fmt"
	"time"
)

// What an [Error] is about, for use with errors.Is.
var (
	ErrUnknownResource = errors.New("unknown resource")
	ErrInvalid         = errors.New("invalid")
	ErrCapacity        = errors.New("cost above capacity")     // no wait would help
	ErrNotNow          = errors.New("not now")                 // Try: it would have to wait
	ErrDeadline        = errors.New("not before the deadline") // so it was not begun
	ErrFull            = errors.New("too many waiting")
	ErrAttempts        = errors.New("out of attempts")
	ErrBilling         = errors.New("billing stop")
	ErrEnded           = errors.New("ticket has ended")
	ErrUnknownTicket   = errors.New("unknown ticket")
	ErrClosed          = errors.New("gate is closed")
	ErrStore           = errors.New("store unreachable or damaged")
	ErrCancelled       = errors.New("cancelled while waiting")
	ErrClass           = errors.New("not for this class")
	ErrSlots           = errors.New("no slot") // the user has as many agents as it may
	ErrBudget          = errors.New("budget used up")
	ErrUnknownTask     = errors.New("unknown task")                             // no route is configured for it
	ErrTakenOver       = errors.New("another machine has taken the lease over") // the agent has moved there; told where it was
)

// Error says what was refused, why, and what to do about it.
type Error struct {
	Err      error // one of the above
	Resource string
	Agent    string
	// Limit is the limit in the way, if one is.
	Limit string
	// RetryAt is when trying again may help, on the store's clock; zero if nobody knows.
	RetryAt time.Time
	// Reason is why, as a word: limit, order, paused, probe, ramp, capacity, deadline,
	// full, invalid, light, share, reserve, pace, breaker, slots, budget, slowed. Empty if the gate was
	// not asked.
	Reason  string
	Message string
	Hint    string

	cause      error
	used, size int64 // of a budget
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message
}

// Unwrap makes an Error match what it is about and what caused it.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.cause}
}

func invalid(format string, args ...any) *Error {
	return &Error{Err: ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
