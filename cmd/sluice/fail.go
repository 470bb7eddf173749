package main

import (
	"errors"

	"github.com/sluicehq/sluice"
)

// exitCodes are how the program ends by what an error is about. The first that matches counts.
var exitCodes = []struct {
	about error
	code  int
}{
	{sluice.ErrStore, exitUnavailable},
	{sluice.ErrUnknownResource, exitUsage},
	{sluice.ErrUnknownTicket, exitUsage},
	{sluice.ErrEnded, exitUsage},
	{sluice.ErrClass, exitRefused},
	{sluice.ErrBudget, exitRefused},
	{sluice.ErrUnknownTask, exitUsage},
	{sluice.ErrInvalid, exitUsage},
	{sluice.ErrCapacity, exitRefused},
	{sluice.ErrBilling, exitRefused},
	{sluice.ErrNotNow, exitNotYet},
	{sluice.ErrDeadline, exitNotYet},
	{sluice.ErrFull, exitNotYet},
	{sluice.ErrSlots, exitNotYet}, // waiting helps
	{sluice.ErrAttempts, exitNotYet},
}

// hinter is an error that knows what to do about it.
type hinter interface{ Hint() string }

// fail turns an error of the gate into a failure with its exit code, the limit in the way, when to
// come back, and a hint. A failure stays what it is.
func fail(err error) error {
	if err == nil {
		return nil
	}
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	f = &failure{code: exitInternal, message: err.Error()}
	for _, c := range exitCodes {
		if errors.Is(err, c.about) {
			f.code = c.code
			break
		}
	}
	var e *sluice.Error
	if errors.As(err, &e) {
		f.hint, f.limit, f.retryAt = e.Hint, e.Limit, e.RetryAt
	}
	if f.code == exitNotYet && f.hint == "" && e != nil && e.Resource != "" {
		f.hint = "sluice why " + e.Resource + " shows the queue and what it waits for"
	}
	var h hinter
	if errors.As(err, &h) && h.Hint() != "" {
		f.hint = h.Hint()
	}
	return f
}
