package policy

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
)

const (
	// IslandWithin is the longest window, or time that a bucket takes to drain, of which a member that
	// is cut off has a share: no more is withheld from the others.
	IslandWithin = 600_000_000
	// MaxIsland bounds how many requests an island remembers.
	MaxIsland = 4096

	finestShare = 1 << 20
)

// IslandLimit is one meter of a limit that many share, as a member knew it when it was cut off.
type IslandLimit struct {
	Def   meter.Def
	Size  int64 // of the whole, per window; places of a concurrency limit; 0: not known, it refuses nothing
	Burst int64 // capacity of a bucket
	// Lo and Hi are the earliest and the latest moment of a fixed window's next reset, on the clock of
	// the island; 0: not known.
	Lo, Hi   int64
	Standing []Lingering // what the member's requests that are over have charged
}

// Standing is a charge of a request that had arrived by Bound. Granted is 0 if the store may not know
// of it: it was let go while the member was cut off before.
type Lingering struct{ Amount, Granted, Bound int64 }

// IslandTicket is a request that was under way when the member was cut off.
type IslandTicket struct {
	Amounts  []int64 // by meter
	Granted  int64
	Answered int64 // 0: not yet
	Due      int64 // end of its time to live
}

// Island decides for one member that is cut off from its store, so that all members together stay
// within every limit whatever the others do. It is not safe for concurrent use.
//
// Times are on the store's clock, as early as it may be there: reckoned from the last answer as if
// that had taken no time to come. Two of them make it safe.
//   - Start is when the store withholds the member's share for certain: three seconds after the last
//     moment at which it may have heard of the member. Before it nothing is granted.
//   - End is when the member's lease may be over: reckoned from the last touch that was answered as if
//     that had taken no time to arrive. From then on nothing is granted.
//
// Others may have taken all that was free until Start, and what they sent then may be on its
// way for the longest slack, Most, after it. So
//   - on a rolling window the member re-uses what it had charged itself, as it comes back, up to its
//     share; the whole share from a window and Most after Start on;
//   - on a fixed window whose reset is known it has nothing until the first reset that is later
//     than Start + Most, and its share from then on;
//   - on a bucket its share is a bucket with a part of the burst and of the rate, full at Start + Most;
//   - of places it re-uses those that it had, and only for requests that are over by End: nobody knows
//     how long the others keep theirs;
//   - on windows above IslandWithin it has nothing.
//
// What bounds an arrival is as in the pool: the answer, or the slack at its longest. Where only the
// answer does, with a strict guard or a unit that is counted to the end, the others' requests are never
// known to have arrived: there it only re-uses, and only for requests that are over by End, and of a
// bucket it has nothing.
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
	full   int64 // from when on it has all of its share
	none   bool  // it has nothing of it
	span   int64 // how long a charge stands once it is bound
	bucket meter.Meter
}

// islander is a request that an island knows.
type islander struct {
	IslandTicket
	number int
	here   bool   // granted by the island
	closed int64  // 0: it is not
	poured []bool // into the bucket of a meter
}

// NewIsland makes the island of a member that was last told that it has one part in share of
// everything; 0: it has none. Meters and tickets are numbered as they are given, from 0 on.
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

// Add adds a meter that was not known, such as that of another model, and returns its number.
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

// stood is what the member had charged itself and the pool has not given back by Start, so that
// others could not take it. The pool may know that a request has arrived before the member does: only
// that it was not before its grant is certain.
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

// awaits reports that nothing but its end tells that a request has arrived.
func (x *isle) awaits() bool { return x.Def.Guard == meter.Strict || x.Def.Late }

// back returns when a charge comes back that had arrived by bound.
func (x *isle) back(bound int64) int64 {
	if x.Def.Kind != meter.Fixed || x.Hi == 0 {
		return bound + x.span
	}
	if bound < x.Lo {
		return x.Hi
	}
	return x.Hi + ((bound-x.Lo)/x.Def.Window+1)*x.Def.Window
}

// boundOf returns by when a request has arrived at the latest, as far as is known.
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

// until returns when what a request charged to meter k comes back, 0 if it charged nothing.
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

// Allow reports whether a request that will be over within ttl may go at t, and else when to ask again
// at the earliest: [meter.Never] if not before the store is back.
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

// ready returns when to ask again for amount of meter k: t if it may go.
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

// drops is how a share of a bucket is counted: what is on its way is counted beside it.
var drops = meter.Def{Kind: meter.Bucket, Guard: meter.Off}

// pour brings the bucket of meter k to t and returns when amount fits beside what is on its way.
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

// Take lets a request go that Allow has just allowed, and returns its number.
func (is *Island) Take(t, ttl int64, amounts []int64) int {
	return is.enter(islander{IslandTicket: IslandTicket{Amounts: amounts, Granted: t, Due: t + ttl}, here: true})
}

// Answer says that the answer to a request has begun at t.
func (is *Island) Answer(number int, t int64) {
	if q := is.find(number); q != nil && q.Answered == 0 {
		q.Answered = t
	}
}

// Close says that a request was over at t.
func (is *Island) Close(number int, t int64) {
	if q := is.find(number); q != nil && q.closed == 0 {
		q.closed = t
	}
}

func (is *Island) find(number int) *islander {
	i, ok := slices.BinarySearchFunc(is.tickets, number, func(q islander, n int) int { return cmp.Compare(q.number, n) })
	if !ok {
		return nil
	}
	return &is.tickets[i]
}

// sweep forgets requests of which nothing stands.
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

// Standing returns what requests that were granted here and are over still take at t, by meter. The
// member charges it, by force, in the step in which it is in touch again and before it says so; and
// each request that is under way likewise, under an id of its own.
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
