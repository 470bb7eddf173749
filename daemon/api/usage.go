package api

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Bounds on the usage that a caller below the highest class states when no limit has a size.
const (
	// maxUnits bounds each unit of a ticket. No model takes so many tokens in one request.
	maxUnits = 10_000_000
	// longWindow is the length from which a window takes too long to recover from false usage.
	longWindow = 10 * time.Minute
	// part is the divisor for long windows and shared budgets: false statements leave one eighth free, and take one
	// eighth per hour.
	part = 8
	// ownTries is how many provider requests one request of a ticket may stand for: a client may retry by itself.
	ownTries = 10
)

// used bounds the usage that a caller below the highest class states. Counting less than the provider has counted would
// let other callers exceed the limit, so used cuts only what cannot be true: usage above the whole limit. A window of
// an hour or a day recovers slowly. There, usage beyond what the ticket reserved leaves an eighth of the limit free,
// and takes at most a quarter of it at once and an eighth per hour.
func (c *call) used(resource string, reserved, usage []sluice.Amount) []sluice.Amount {
	if !c.bounded() {
		return usage
	}
	now := time.Now()
	for i := range usage {
		u := &usage[i]
		if u.Unit == sluice.USD {
			continue
		}
		b := c.api.most(c.r.Context(), resource, u.Unit)
		u.N = min(u.N, b.size)
		if u.Unit == sluice.Requests {
			u.N = min(u.N, ownTries*max(of(reserved, u.Unit), 1))
		}
		if b.window > 0 {
			u.N = c.api.stated.add(resource+" "+u.Unit, u.N, b, now)
		}
		if more := u.N - of(reserved, u.Unit); b.long > 0 && more > 0 {
			fits := min(more, max(b.left-b.long/part, 0))
			fits = c.api.stated.add(resource+" "+u.Unit+" beyond", fits, bound{all: b.long / part, window: time.Hour}, now)
			u.N -= more - fits
		}
	}
	return usage
}

// of returns the amount of a unit in a list.
func of(list []sluice.Amount, unit string) int64 {
	for _, a := range list {
		if a.Unit == unit {
			return a.N
		}
	}
	return 0
}

// bound is the most that one request can use of a unit.
type bound struct {
	size int64
	// For the smallest bucket that counts the unit: its window, and the size of the buckets of all models and keys
	// together. 0 without a bucket.
	window time.Duration
	all    int64
	// Of the smallest limit on the unit whose window is a long one: its size, and what is left of it. 0 without one.
	long, left int64
}

// most returns the smallest whole limit on a unit, because a provider admits no larger request. If responses state a
// larger size, that size counts.
func (a *API) most(ctx context.Context, resource, unit string) bound {
	b := bound{}
	var live []inspect.LimitStatus
	for i := range a.Limits[resource] {
		l := &a.Limits[resource][i]
		if cmp.Or(l.Unit, "requests") != unit || l.Kind == sluice.Concurrency {
			continue
		}
		if live == nil {
			live, _ = a.levels.of(ctx, a.Gate, resource) // without it the configured sizes count
		}
		size, all, left := inForce(l, live)
		if size == 0 {
			continue
		}
		if l.Window > longWindow && (b.long == 0 || size < b.long) {
			b.long, b.left = size, left
		}
		if b.size == 0 || size < b.size {
			b.size = size
		}
		if l.Kind == sluice.Bucket && (b.window == 0 || all < b.all) {
			b.window, b.all = l.Window, all
		}
	}
	if b.size == 0 {
		b.size = maxUnits
	}
	return b
}

// inForce returns the largest size that a limit has for any model or key, the sum of all sizes, and the most that is
// left of any.
func inForce(l *sluice.Limit, live []inspect.LimitStatus) (size, all, left int64) {
	size, left = l.Size, -1
	for i := range live {
		if live[i].Name == l.Name {
			size, all, left = max(size, live[i].Limit), all+live[i].Limit, max(left, live[i].Remaining)
		}
	}
	if left < 0 { // no level is known
		left = size
	}
	return size, max(size, all), left
}

// stated tracks the usage that callers below the highest class have stated, for units that a bucket counts. A window
// forgets all use when it ends, but a bucket drains at its rate: ten tickets that each state the whole bucket would
// hold all callers for ten windows. The provider's own bucket admits its size at once and its size again in each
// window. So the gate counts at most twice the size, less what has drained.
type stated struct {
	mu  sync.Mutex
	all map[string]statement
}

type statement struct {
	level float64
	at    time.Time
}

// add returns how much of n counts, and records it.
func (s *stated) add(what string, n int64, b bound, now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]statement{}
	}
	last := s.all[what]
	size := float64(b.all)
	level := max(last.level-size*now.Sub(last.at).Seconds()/b.window.Seconds(), 0)
	n = min(n, int64(max(2*size-level, 0)))
	s.all[what] = statement{level + float64(n), now} // one entry per limit
	return n
}
