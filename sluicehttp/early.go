package sluicehttp

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice"
)

// Before a model has answered, a call reserves its max_tokens. Real responses are often a tenth of that. So a call that
// waits with such an estimate asks again once the first responses have shown a lower one. Otherwise it would wait for
// room that it does not use, and forecasts would refuse the calls behind it.

// firstResponse is how long a call waits for the first responses if it would be refused because of its early estimate.
// It asks again after askAgain at the latest, because estimates also fall by less than half.
const (
	firstResponse = 10 * time.Second
	askAgain      = time.Second
)

// errLower interrupts a wait: the estimate has fallen.
var errLower = errors.New("the estimate has fallen")

// inTurn is Acquire for a call whose estimate may fall while it waits. again is set if the call asked more than once.
func (f *flight) inTurn(ctx context.Context) (ticket sluice.Ticket, again bool, err error) {
	began := time.Now()
	for f.asked.Tokens && f.t.book.Early(f.asked.Model, f.told.Estimated.Output) {
		wait, cancel := context.WithCancelCause(ctx)
		watch := f.t.book.Watch(f.caller.Agent, f.asked.Model, f.told.Estimated.Output, func() { cancel(errLower) })
		if watch == nil {
			cancel(nil)
			break
		}
		ticket, err = f.t.Gate.Acquire(wait, f.ask)
		lower := false
		if err != nil && wait.Err() == nil && f.early(err) && time.Since(began) < firstResponse {
			lower = await(wait)
		}
		lower = lower || errors.Is(context.Cause(wait), errLower)
		f.t.book.Forget(watch)
		cancel(nil)
		if err == nil || !lower || ctx.Err() != nil {
			return ticket, again, err
		}
		f.reckon()
		again = true
	}
	ticket, err = f.t.Gate.Acquire(ctx, f.ask)
	return ticket, again, err
}

// early reports whether a call is refused because of its estimate: a limit on output would not have room in time.
func (f *flight) early(err error) bool {
	var e *sluice.Error
	if !errors.As(err, &e) || !errors.Is(e.Err, sluice.ErrDeadline) {
		return false
	}
	for i := range f.t.Limits {
		l := &f.t.Limits[i]
		if l.Name == e.Limit && (l.Unit == sluice.OutputTokens || l.Unit == unitTokens) {
			return f.rough(l.Unit)
		}
	}
	return false
}

// await waits until ctx ends, for at most askAgain. It reports false if the deadline of ctx comes before that.
func await(ctx context.Context) bool {
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= askAgain {
		return false
	}
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}
