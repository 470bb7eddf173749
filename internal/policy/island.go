package policy

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
)

const (
	// IslandWithin is the longest window, or drain time of a bucket, of which a cut-off member has a share. Nothing
	// is withheld from the others on longer ones.
	IslandWithin = 600_000_000
	// MaxIsland bounds how many requests an island remembers.
	MaxIsland = 4096

	finestShare = 1 << 20
)

// IslandLimit is one meter of a shared limit, as a member knew it when it was cut off.
type IslandLimit struct {
	Def   meter.Def
	Size  int64 // of the whole limit, per window; slots of a concurrency limit; 0: not known, refuses nothing
	Burst int64 // capacity of a bucket
	// Lo and Hi are the earliest and latest time of a fixed window's next reset, on the island's clock. 0 means not
	// known.
	Lo, Hi   int64
	Standing []Lingering // charges of the member's requests that are over
}

// Lingering is a charge of a request that arrived by Bound. Granted is 0 if the store may not know of it, because it
// was granted while the member was cut off before.
type Lingering struct{ Amount, Granted, Bound int64 }

// IslandTicket is a request that was in flight when the member was cut off.
type IslandTicket struct {
	Amounts  []int64 // by meter
	Granted  int64
	Answered int64 // 0: not yet
	Due      int64 // when the ticket expires
}

// Island decides for one member that is cut off from its store, so that all members together stay within every
// limit, whatever the others do. It is not safe for concurrent use.
//
// Times are on the store's clock, at the earliest that it may be: counted from the last response as if it had taken
// no time to come. Two times make it safe.
//   - Start is when the store certainly withholds the member's share: three seconds after the last time at which it
//     may have heard of the member. Before it nothing is granted.
//   - End is when the member's lease may be over: counted from the last answered touch as if it had taken no time to
//     arrive. From then on nothing is granted.
//
// Others may have taken all free room until Start, and their requests may be in flight for the longest slack, Most,
// after it. So
//   - on a rolling window the member reuses its own charges as they come back, up to its share. From a window and
//     Most after Start on, it has the whole share;
//   - on a fixed window with a known reset it has nothing until the first reset later than Start + Most, and its
//     share from then on;
//   - on a bucket its share is a bucket with a part of the burst and of the rate, full at Start + Most;
//   - on a concurrency limit it reuses its own slots, and only for requests that are over by End, because it is
//     unknown how long the others keep theirs;
//   - on windows above IslandWithin it has nothing.
//
// Arrivals are bounded as in the pool: by the response, or by the slack at its longest. With a strict guard or a
// unit that is counted to the end, only the response bounds an arrival, so the others' requests are never known to
// have arrived. There the member only reuses its own charges, only for requests that are over by End, and it has
// nothing of a bucket.
type Island struct {
	share, start, end int64
	limits            []isle
	tickets           []islander // by number
	last              int
}

// isle is the member's part of one meter.
type isle struct {
	IslandLimit
	share  int64 // of the capacity
	reused int64 // part of it that the member had charged itself
	full   int64 // when it has all of its share
	none   bool  // it has no share
	span   int64 // how long a charge stands after its bound
	bucket meter.Meter
}

// islander is a request that an island knows.
type islander struct {
	IslandTicket
	number int
	here   bool   // granted by the island
	closed int64  // when it was closed; 0: still open
	poured []bool // added to the bucket, by meter
}

// NewIsland returns the island of a member. share is the last known divisor: the member has 1/share of every limit,
// or nothing if share is 0. Meters and tickets are numbered in the given order, from 0.
func NewIsland(share, start, end int64, limits []IslandLimit, open []IslandTicket) *Island {
	is := &Island{share: share, start: start, end: end}
	for _, t := range open[:min(len(open), MaxIsland)] {
		is.enter(islander{IslandTicket: t})
	}
	for _, l := range limits {
		is.Add(l)
	}
	return is
}

func (is *Island) enter(q islander) int {
	q.Amounts, q.number = slices.Clone(q.Amounts), is.last
	q.poured = make([]bool, len(q.Amounts))
	is.tickets = append(is.tickets, q)
	is.last++
	return q.number
}

// Add adds a new meter, such as that of another model, and returns its number.
func (is *Island) Add(l IslandLimit) int {
	k := len(is.limits)
	d := &l.Def
	x := isle{IslandLimit: l, span: d.Window, full: is.start + d.Most + d.Window}
	capacity := l.Size
	if d.Kind == meter.Bucket {
		if l.Burst > 0 {
			capacity = l.Burst
		}
		if l.Size > 0 && capacity > l.Size {
			x.span = min((capacity+l.Size-1)/l.Size, meter.MaxAmount/d.Window+1) * d.Window
		}
	}
	if is.share <= 0 || is.share > finestShare || x.span > IslandWithin {
		x.none = true
	} else {
		x.share = capacity / is.share
		x.reused = min(is.stood(&x, k), x.share)
	}
	switch {
	case d.Kind == meter.Concurrency || x.awaits():
		x.full = meter.Never
	case d.Kind == meter.Fixed && l.Hi != 0:
		x.reused, x.full = 0, l.Hi
		for lo := l.Lo; lo <= is.start+d.Most; lo += d.Window {
			x.full += d.Window
		}
	}
	if d.Kind == meter.Bucket && l.Size > 0 && !x.none {
		n, w, err := meter.Rate(l.Size, d.Window*is.share, max(x.share, 1))
		x.none = err != nil || x.awaits()
		x.bucket = meter.Meter{Cap: x.share, N: n, W: w, Level: x.share, Last: is.start + d.Most}
	}
	is.limits = append(is.limits, x)
	return k
}

// Shares reports whether the member has a share of meter k, now or later.
func (is *Island) Shares(k int) bool { return !is.limits[k].none && is.limits[k].share > 0 }

// stood returns what the member had charged itself and the pool has not given back by Start, so that others could
// not take it. The pool may learn of an arrival before the member does. It is only certain that a request did not
// arrive before its grant.
func (is *Island) stood(x *isle, k int) (sum int64) {
	for _, s := range x.Standing {
		if x.back(s.Granted) > is.start {
			sum += s.Amount
		}
	}
	for i := range is.tickets {
		q := &is.tickets[i]
		back := x.back(q.Granted)
		if x.Def.Kind == meter.Concurrency {
			back = q.Due
		}
		if k < len(q.Amounts) && back > is.start {
			sum += q.Amounts[k]
		}
	}
	return sum
}

// awaits reports whether only the end of a request proves its arrival.
func (x *isle) awaits() bool { return x.Def.Guard == meter.Strict || x.Def.Late }

// back returns when a charge comes back that arrived by bound.
func (x *isle) back(bound int64) int64 {
	if x.Def.Kind != meter.Fixed || x.Hi == 0 {
		return bound + x.span
	}
	if bound < x.Lo {
		return x.Hi
	}
	return x.Hi + ((bound-x.Lo)/x.Def.Window+1)*x.Def.Window
}

// boundOf returns the latest time at which a request can have arrived, as far as is known.
func (x *isle) boundOf(q *islander) int64 {
	d := &x.Def
	switch {
	case d.Late:
		if q.Answered != 0 && q.closed != 0 {
			return min(q.closed, q.Due)
		}
		return q.Due
	case d.Guard == meter.Off:
		return q.Granted
	case d.Guard == meter.Strict:
		if q.Answered != 0 {
			return min(q.Answered, q.Due)
		}
		return q.Due
	case q.Answered != 0:
		return min(q.Answered, q.Granted+d.Most)
	}
	return q.Granted + d.Most
}

// until returns when a request's charge to meter k comes back, or 0 if it has none.
func (x *isle) until(q *islander, k int) int64 {
	switch {
	case k >= len(q.Amounts) || q.Amounts[k] == 0:
		return 0
	case x.Def.Kind != meter.Concurrency:
		return x.back(x.boundOf(q))
	case q.closed != 0:
		return min(q.closed, q.Due)
	}
	return q.Due
}

// Allow reports whether a request that ends within ttl may go at t, and otherwise the earliest time to ask again:
// [meter.Never] if only the store can grant it.
func (is *Island) Allow(t, ttl int64, amounts []int64) (ok bool, retryAt int64) {
	if t < is.start {
		return false, is.start
	}
	if t >= is.end {
		return false, meter.Never
	}
	if is.sweep(t); len(is.tickets) >= MaxIsland {
		return false, t + 1_000_000
	}
	for k := range min(len(amounts), len(is.limits)) {
		if x := &is.limits[k]; amounts[k] > 0 && x.Size > 0 {
			retryAt = max(retryAt, is.ready(x, k, t, ttl, amounts[k]))
		}
	}
	if retryAt <= t {
		return true, t
	}
	if retryAt >= is.end {
		retryAt = meter.Never
	}
	return false, retryAt
}

// ready returns when to ask again for amount of meter k. It returns t if the request may go.
func (is *Island) ready(x *isle, k int, t, ttl, amount int64) int64 {
	switch {
	case x.none || amount > x.share:
		return meter.Never
	case (x.Def.Kind == meter.Concurrency || x.awaits()) && t+ttl > is.end:
		return meter.Never
	case x.Def.Kind == meter.Bucket:
		return is.pour(x, k, t, amount)
	}
	most, next := x.share, int64(meter.Never)
	if t < x.full {
		most, next = x.reused, x.full
	}
	if amount > most {
		return next
	}
	taken := amount
	for _, s := range x.Standing {
		if back := x.back(s.Bound); back > t {
			taken, next = taken+s.Amount, min(next, back)
		}
	}
	for i := range is.tickets {
		if q := &is.tickets[i]; x.until(q, k) > t {
			taken, next = taken+q.Amounts[k], min(next, x.until(q, k))
		}
	}
	if taken <= most {
		return t
	}
	return next
}

// drops is the definition of a bucket's share. Requests in flight are counted separately.
var drops = meter.Def{Kind: meter.Bucket, Guard: meter.Off}

// pour advances the bucket of meter k to t, and returns when amount fits in addition to requests in flight.
func (is *Island) pour(x *isle, k int, t, amount int64) int64 {
	var due []*islander
	next := int64(meter.Never)
	for i := range is.tickets {
		q := &is.tickets[i]
		switch {
		case !q.here || k >= len(q.Amounts) || q.poured[k]:
		case x.boundOf(q) <= t:
			due = append(due, q)
		default:
			amount += q.Amounts[k]
			next = min(next, x.boundOf(q))
		}
	}
	slices.SortStableFunc(due, func(a, b *islander) int { return cmp.Compare(x.boundOf(a), x.boundOf(b)) })
	for _, q := range due {
		x.bucket.Advance(&drops, nil, x.boundOf(q))
		x.bucket.Take(&drops, nil, x.boundOf(q), q.Amounts[k], false)
		q.poured[k] = true
	}
	x.bucket.Advance(&drops, nil, t)
	if x.bucket.Room(&drops, nil) >= amount {
		return t
	}
	return min(next, max(x.bucket.ReadyAt(&drops, nil, max(t, x.bucket.Last), amount), t+1))
}

// Take grants a request that Allow has just allowed, and returns its number.
func (is *Island) Take(t, ttl int64, amounts []int64) int {
	return is.enter(islander{IslandTicket: IslandTicket{Amounts: amounts, Granted: t, Due: t + ttl}, here: true})
}

// Answer records that the response to a request began at t.
func (is *Island) Answer(number int, t int64) {
	if q := is.find(number); q != nil && q.Answered == 0 {
		q.Answered = t
	}
}

// Close records that a request was over at t.
func (is *Island) Close(number int, t int64) {
	if q := is.find(number); q != nil && q.closed == 0 {
		q.closed = t
	}
}

// Drop forgets a request that was let go and is not sent. What a bucket has counted of it drains as if it had been.
func (is *Island) Drop(number int) {
	is.tickets = slices.DeleteFunc(is.tickets, func(q islander) bool { return q.number == number })
}

func (is *Island) find(number int) *islander {
	i, ok := slices.BinarySearchFunc(is.tickets, number, func(q islander, n int) int { return cmp.Compare(q.number, n) })
	if !ok {
		return nil
	}
	return &is.tickets[i]
}

// sweep forgets requests without any remaining charge.
func (is *Island) sweep(t int64) {
	is.tickets = slices.DeleteFunc(is.tickets, func(q islander) bool {
		if q.closed == 0 && q.Due > t {
			return false
		}
		for k := range q.Amounts {
			if k < len(is.limits) && is.limits[k].until(&q, k) > t {
				return false
			}
		}
		return true
	})
}

// Lingering returns what requests granted here and over by now still take at t, by meter. When the member is
// connected again, it first charges this amount by force, in the same step and before it reports. It also charges
// each request in flight, under an id of its own.
func (is *Island) Lingering(t int64) []int64 {
	sums := make([]int64, len(is.limits))
	for i := range is.tickets {
		q := &is.tickets[i]
		if !q.here || q.closed == 0 && q.Due > t {
			continue
		}
		for k := range is.limits {
			if is.limits[k].until(q, k) > t {
				sums[k] += q.Amounts[k]
			}
		}
	}
	return sums
}
