package redisconn

import (
	"errors"

	"github.com/sluicehq/sluice/internal/redisfault"
)

// Errors for use with errors.Is. An error of a [Link] matches at most one of them.
var (
	ErrUnreachable = errors.New("cannot reach Redis, or it cannot serve now")
	ErrUnfit       = errors.New("this Redis cannot be used")
	ErrClosed      = redisfault.ErrClosed
)

// Fault says what an error means for the caller.
type Fault = redisfault.Fault

// The faults.
const (
	FaultNone        = redisfault.None
	FaultUnreachable = redisfault.Unreachable
	FaultNotRun      = redisfault.NotRun
	FaultUnfit       = redisfault.Unfit
	FaultScript      = redisfault.Script
	FaultClosed      = redisfault.Closed
)

// Error is the error of a [Link]: what failed, at which address, and what to do about it.
type Error struct {
	Fault Fault
	at    string
	what  string
	hint  string
	cause error // nil if its text held a password
}

func (e *Error) Error() string { return e.at + ": " + e.what }

// Hint says what to do, or is "".
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the error above that the fault stands for, and the cause.
func (e *Error) Unwrap() []error {
	var all []error
	switch e.Fault {
	case FaultUnreachable, FaultNotRun:
		all = append(all, ErrUnreachable)
	case FaultUnfit:
		all = append(all, ErrUnfit)
	case FaultClosed:
		all = append(all, ErrClosed)
	}
	if e.cause != nil {
		all = append(all, e.cause)
	}
	return all
}

// Classify returns the fault of an error of a [Link] or of rueidis. The error of a context is FaultUnreachable, because no
// reply was seen.
func Classify(err error) Fault {
	if err == nil {
		return FaultNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return redisfault.Judge(err).Fault
}

// Why describes err and what to do about it in one sentence.
func Why(err error) string {
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		v := redisfault.Judge(err)
		e = &Error{what: v.Text(), hint: v.Hint}
	}
	if e.hint == "" {
		return e.what
	}
	return e.what + "; " + e.hint
}
