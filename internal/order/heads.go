package order

import (
	"cmp"
	"math"
	"slices"
)

// Head is the next waiter of a lane, or of one class in a lane.
type Head struct {
	Waiter int32
	lane   int32
	class  int32
	rank   rank
}

// Class returns the head's class.
func (h Head) Class() int { return int(h.class) }

// rank orders heads: the first field that differs decides.
type rank [3]int64

func (a rank) compare(b rank) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

// Strictness says where a higher class always goes first, whatever the mode.
type Strictness struct {
	All  bool
	Lane func(LaneKey) bool // true for lanes that are strict within themselves; may be nil
}

func (s Strictness) in(k LaneKey) bool { return s.All || s.Lane != nil && s.Lane(k) }

// Heads returns the next waiter of every lane, in order. With each, it returns the next waiter of every class in
// every lane, for passes in which classes have different room. The slice is valid until the next call.
func (q *Queue) Heads(strict Strictness, each bool) []Head {
	q.heads, q.held = q.heads[:0], q.held[:0]
	q.findLeast()
	for i := q.first; i != 0; {
		next := q.lanes.At(i).next
		if !q.laneHeads(i, strict, each) {
			q.retire(i)
		}
		i = next
	}
	if len(q.heads) > 1 {
		slices.SortFunc(q.heads, func(a, b Head) int { return a.rank.compare(b.rank) })
	}
	return q.heads
}

// findLeast records the lowest start tag of the waiting parts on each meter. lead measures from it.
func (q *Queue) findLeast() {
	if q.Mode == FIFO {
		return
	}
	for i := q.first; i != 0; i = q.lanes.At(i).next {
		for k, l := int32(0), q.lanes.At(i); k < l.n; k++ {
			q.domains.At(l.domains[k]).least = math.MaxInt64
		}
	}
	for i := q.first; i != 0; i = q.lanes.At(i).next {
		l := q.lanes.At(i)
		for c := range l.roots {
			if l.roots[c] == 0 {
				continue
			}
			for k := range l.n {
				d := q.domains.At(l.domains[k])
				d.least = min(d.least, l.parts[c].tags[k].start)
			}
		}
	}
}

// laneHeads adds the heads of a lane, and reports whether there are any.
func (q *Queue) laneHeads(i int32, strict Strictness, each bool) bool {
	l := q.lanes.At(i)
	within := strict.in(l.key)
	first := len(q.heads)
	for c := range l.roots {
		if l.roots[c] == 0 {
			continue
		}
		n := q.tree.Min(l.roots[c])
		h := Head{Waiter: q.flows.At(q.tree.Value(n)).first, lane: i, class: int32(c), rank: q.rankOf(c, q.lead(l, c), q.tree.KeyOf(n).B, strict.All)}
		switch {
		case len(q.heads) == first || each && !within:
			q.heads = append(q.heads, h)
		case each: // right behind the class above it, wherever that class ranks among the lanes
			if above := q.heads[len(q.heads)-1].rank; h.rank.compare(above) <= 0 {
				h.rank = above.next()
			}
			q.heads = append(q.heads, h)
		case !within && h.rank.compare(q.heads[first].rank) < 0:
			q.heads[first] = h
		}
		if within && !each {
			break // this is the highest class that waits
		}
	}
	return len(q.heads) > first
}

// next returns the rank directly behind a.
func (a rank) next() rank { return rank{a[0], a[1], a[2] + 1} }

// Close records that every waiter in the head's lane lacks the same room, for this pass.
func (q *Queue) Close(h Head, pass uint32) { q.lanes.At(h.lane).pass = pass }

// Closed reports whether a head's lane has been closed in this pass.
func (q *Queue) Closed(h Head, pass uint32) bool { return q.lanes.At(h.lane).pass == pass }

// Held records that this head cannot go in this pass, for a reason that does not hold up other waiters.
func (q *Queue) Held(h Head) { q.held = append(q.held, h) }

// carry moves the tags of held heads forward when another waiter is granted. Held heads earn no credit for the
// grants they miss; with credit they would have the queue to themselves later. They keep credit for the request they
// wait with, or newcomers would always draw level with them. Their order among each other stays.
func (q *Queue) carry() {
	for _, h := range q.held {
		for k, l := int32(0), q.lanes.At(h.lane); k < l.n; k++ {
			q.domains.At(l.domains[k]).least = math.MinInt64
		}
	}
	for _, h := range q.held {
		l := q.lanes.At(h.lane)
		for k := range l.n {
			d := q.domains.At(l.domains[k])
			d.least = max(d.least, l.parts[h.class].tags[k].start+q.partCost(l, uint8(h.class), k, q.waiters.At(h.Waiter).cost))
		}
	}
	for _, h := range q.held {
		l := q.lanes.At(h.lane)
		for k := range l.n {
			d := q.domains.At(l.domains[k])
			l.parts[h.class].tags[k].start += max(d.virtual-d.least, 0)
		}
	}
	q.held = q.held[:0]
}

// lead returns how far a class's part of a lane is ahead of the lowest tag, on the meter where it is furthest ahead.
// A part with lead 0 has had the least on every meter.
func (q *Queue) lead(l *lane, class int) (most int64) {
	if q.Mode == FIFO {
		return 0
	}
	for k := range l.n {
		most = max(most, l.parts[class].tags[k].start-q.domains.At(l.domains[k]).least)
	}
	return most
}

func (q *Queue) rankOf(class int, lead, seq int64, strict bool) rank {
	switch {
	case strict || q.Mode == Strict:
		return rank{int64(class), lead, seq}
	case q.Mode == FIFO:
		return rank{seq}
	default:
		return rank{lead, int64(class), seq}
	}
}
