package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Bucket is a token bucket. It holds at most capacity tokens, and n per window flow back continuously. It starts full.
type Bucket struct {
	// Fractions of a token count exactly. One token is scale units, and drain units flow back each microsecond, with
	// drain/scale = n/window in lowest terms.
	capacity, size int64
	scale, drain   int64
	used           int64 // units taken that have not flowed back by at
	at             store.Time
}

// NewBucket returns a full bucket of the given capacity that refills at n per window. It panics if a size is not
// positive, or if capacity x window is too large to count exactly. Use [BucketFits] to check first.
func NewBucket(capacity, n int64, window time.Duration) *Bucket {
	if !BucketFits(capacity, n, window) {
		panic(fmt.Sprintf("sim: bucket of %d refilled at %d per %v cannot be modelled exactly", capacity, n, window))
	}
	w := window.Microseconds()
	g := gcd(n, w)
	return &Bucket{capacity: capacity, size: n, scale: w / g, drain: n / g}
}

// BucketFits reports whether a bucket of these sizes can be counted in 64 bits.
func BucketFits(capacity, n int64, window time.Duration) bool {
	w := window.Microseconds()
	if capacity < 1 || n < 1 || w < 1 {
		return false
	}
	return capacity <= math.MaxInt64/(2*mostOwed)/(w/gcd(n, w))
}

func (b *Bucket) usedAt(t store.Time) int64 {
	elapsed := int64(t - b.at)
	if elapsed <= 0 {
		return b.used
	}
	if elapsed > b.used/b.drain {
		return 0
	}
	return b.used - elapsed*b.drain
}

// Earliest implements [Rule].
func (b *Bucket) Earliest(t store.Time, cost int64) store.Time {
	if cost > b.capacity {
		return Never
	}
	excess := b.usedAt(t) - (b.capacity-max(cost, 0))*b.scale
	if excess <= 0 {
		return t
	}
	return t + store.Time((excess+b.drain-1)/b.drain)
}

// mostOwed is how many times its capacity a bucket can be overdrawn. Output counts while it is produced, so it can
// overdraw a bucket. The debt has to flow back first: if it were forgiven early, callers that overdraw most would get
// most.
const mostOwed = 8

// Take implements [Rule].
func (b *Bucket) Take(t store.Time, cost int64) {
	most := mostOwed * b.capacity
	cost = min(max(cost, -most), most)
	b.used = min(max(b.usedAt(t)+cost*b.scale, 0), most*b.scale)
	b.at = max(t, b.at)
}

// Done implements [Rule]. The end of a request changes nothing.
func (*Bucket) Done(store.Time, int64) {}

// State implements [Rule]. Reset is when the bucket is full again.
func (b *Bucket) State(t store.Time) State {
	used := b.usedAt(t)
	taken := (used + b.scale - 1) / b.scale
	return State{
		Size:      b.size,
		Remaining: max(b.capacity-taken, 0),
		Reset:     t + store.Time((used+b.drain-1)/b.drain),
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
