package main

import (
	"errors"

	"github.com/sluicehq/sluice"
)

// exitCodes maps errors to exit codes. The first match counts.
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

// hinter is an error with a hint.
type hinter interface{ Hint() string }

// fail converts an error of the gate into a failure with exit code, limit, time to retry, and hint. A failure is
// returned unchanged.
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
		f.hint, f.limit, f.retryAt, f.heldBy, f.heldUntil = e.Hint, e.Limit, e.RetryAt, e.HeldBy, e.HeldUntil
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
