package sluicehttp

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/again"
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

// inTurn is Acquire for a call whose estimate may fall while it waits. more is set if the call asked more than once.
func (f *flight) inTurn(ctx context.Context) (ticket sluice.Ticket, more bool, err error) {
	began := time.Now()
	for f.asked.Tokens && f.t.book.Early(f.asked.Model, f.told.Estimated.Output) {
		wait, cancel := context.WithCancelCause(ctx)
		watch := f.t.book.Watch(f.caller.Agent, f.asked.Model, f.told.Estimated.Output, func() { cancel(errLower) })
		if watch == nil {
			cancel(nil)
			break
		}
		asks := false
		lower := func(err error) bool {
			asks = asks || errors.Is(context.Cause(wait), errLower) || wait.Err() == nil && f.early(err) && time.Since(began) < firstResponse && hasTime(wait)
			return asks
		}
		if ticket, err = f.t.Gate.Acquire(again.With(wait, lower), f.ask); err != nil && lower(err) {
			await(wait)
		}
		f.t.book.Forget(watch)
		cancel(nil)
		if !asks || ctx.Err() != nil {
			return ticket, more, err
		}
		f.reckon()
		more = true
	}
	ticket, err = f.t.Gate.Acquire(ctx, f.ask)
	return ticket, more, err
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

// hasTime reports whether the deadline of ctx is later than the next try.
func hasTime(ctx context.Context) bool {
	until, ok := ctx.Deadline()
	return !ok || time.Until(until) > askAgain
}

// await waits until ctx ends, for at most askAgain.
func await(ctx context.Context) {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
