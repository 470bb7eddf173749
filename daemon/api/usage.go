package api

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Bounds on what a caller below the highest class states where no limit has a size.
const (
	// maxUnits bounds each unit of a ticket. No model takes so many tokens in one request.
	maxUnits = 10_000_000
	// longWindow is from which length on excess on a window is not over soon.
	longWindow = 10 * time.Minute
	// part is what false statements leave of a long window or a shared budget, and what they take of it in an hour.
	part = 8
	// ownTries is how many requests each request of a ticket may have become: a client may retry by itself.
	ownTries = 10
)

// used bounds the usage that a caller below the highest class states. Counting less than the provider has counted would
// let others go over the limit. So used cuts what cannot be true: what is above the whole limit. A window of an hour or a
// day does not forget soon: there, usage beyond what the ticket reserved leaves an eighth of the limit, and takes at most
// a quarter of it at once and an eighth an hour.
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

// of returns what a list has of a unit.
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
	// Of the smallest bucket that counts the unit: its window, and the size of the buckets of all models and keys
	// together. 0 without a bucket.
	window time.Duration
	all    int64
	// Of the smallest limit on the unit whose window is a long one: its size, and what is left of it. 0 without one.
	long, left int64
}

// most returns the smallest whole limit on a unit: a provider admits no larger request. Limits of which answers state a
// larger size count as they are in force.
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

// inForce returns the largest size that a limit has for any model or key, the sum of all of them, and the most that is left of one.
func inForce(l *sluice.Limit, live []inspect.LimitStatus) (size, all, left int64) {
	size, left = l.Size, -1
	for i := range live {
		if live[i].Name == l.Name {
			size, all, left = max(size, live[i].Limit), all+live[i].Limit, max(left, live[i].Remaining)
		}
	}
	if left < 0 { // nothing is known of it
		left = size
	}
	return size, max(size, all), left
}

// stated is the usage that callers below the highest class have stated, of units that a bucket counts. A window forgets
// everything when it is over. A bucket drains at its rate: ten tickets that each state the whole bucket would hold
// everybody for ten windows. The provider's own bucket admits its size at once and its size again in each window. So
// the gate counts no more than twice the size, less what has drained.
type stated struct {
	mu  sync.Mutex
	all map[string]statement
}

type statement struct {
	level float64
	at    time.Time
}

// add returns how much of n counts.
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
	s.all[what] = statement{level + float64(n), now} // as many as there are limits
	return n
}
