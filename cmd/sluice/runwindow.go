package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/show"
)

const (
	// windowEvery is how often a run checks whether a used-up window of a subscription is back: providers refill some
	// early.
	windowEvery = time.Minute
	// resumeOver is the time over which runs that have waited for such a window start, unless --scatter is longer.
	resumeOver = 5 * time.Minute
)

// awaitWindow waits while a window of a subscription is used up, because a new command could only wait or fail.
// Afterwards the waiting runs start one after the other. It returns how long that took, and whether the run already has
// its position among them. Without --wait it waits without limit.
func (r *runner) awaitWindow(ctx context.Context, until time.Time) (waited time.Duration, spread bool, err error) {
	began := time.Now()
	var last *usedUp
	for {
		gone, err := r.usedUp(ctx)
		if err != nil {
			return 0, false, failed(ctx, err)
		}
		if gone == nil {
			break
		}
		last = gone
		left := time.Until(gone.back)
		if r.waitGiven && gone.back.After(until) {
			return 0, false, &failure{
				code: exitNotYet, message: "start no new work: " + gone.String(), hint: "try then, or leave out --wait to wait for the reset",
			}
		}
		stop := r.waiting(func() string { return "waits for the reset: " + gone.String() })
		err = r.sleep(ctx, min(max(left, time.Second), windowEvery))
		stop()
		if err != nil {
			return 0, false, err
		}
	}
	if last == nil {
		return 0, false, nil
	}
	wait, err := r.s.gate.StartDelay(ctx, last.resource, max(r.scatter, resumeOver))
	if err != nil {
		return 0, false, failed(ctx, err)
	}
	if err := r.sleep(ctx, wait); err != nil {
		return 0, false, err
	}
	return time.Since(began), true, nil
}

// usedUp is a window with nothing left.
type usedUp struct {
	resource string
	limit    inspect.LimitStatus
	back     time.Time
}

func (u *usedUp) String() string {
	now := time.Now()
	return fmt.Sprintf("%s: %s", u.resource, show.Window("", time.Duration(u.limit.WindowMS)*time.Millisecond, u.limit.Used, u.limit.Limit, u.limit.ResetAt, nil, now))
}

// usedUp finds the used-up window that takes longest to come back: of the run's resource, or of all if it names none.
// The highest class does not wait.
func (r *runner) usedUp(ctx context.Context) (last *usedUp, err error) {
	if r.s.className(r.req.Class) == r.s.file.Classes[0].Name {
		return nil, nil
	}
	names := []string{r.req.Resource}
	if r.req.Resource == "" {
		names = r.s.resourceNames()
	}
	for _, name := range names {
		if inside.Of(r.s.gate).Observes(name) {
			continue
		}
		s, err := r.s.gate.Resource(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, l := range planOf(s.Limits) {
			if l.Scope == "" && l.Remaining <= 0 && l.ResetAt != nil && (last == nil || l.ResetAt.After(last.back)) {
				last = &usedUp{name, l, *l.ResetAt}
			}
		}
	}
	return last, nil
}
