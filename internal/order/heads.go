package order

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/flat"
)

// Head is the first in line of a lane.
type Head struct {
	Waiter int32
	Lane   LaneKey
	rank   rank
}

// rank orders heads across lanes.
type rank struct {
	class, tie, flow, seq int64
}

func (a rank) compare(b rank) int {
	return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.tie, b.tie),
		cmp.Compare(a.flow, b.flow), cmp.Compare(a.seq, b.seq))
}

// Heads returns the first in line of every lane, in order. The slice is valid until
// the next call. strict puts a higher class always first.
func (q *Queue) Heads(strict bool) []Head {
	q.heads = q.heads[:0]
	for i := q.first; i != 0; i = q.lanes.At(i).next {
		if h, ok := q.laneHead(i, strict); ok {
			q.heads = append(q.heads, h)
		}
	}
	if len(q.heads) > 1 {
		slices.SortFunc(q.heads, func(a, b Head) int { return a.rank.compare(b.rank) })
	}
	return q.heads
}

func (q *Queue) laneHead(i int32, strict bool) (best Head, ok bool) {
	l := q.lanes.At(i)
	for c := range l.roots {
		if l.roots[c] == 0 {
			continue
		}
		n := q.tree.Min(l.roots[c])
		k := q.tree.KeyOf(n)
		r := q.rankOf(c, k, strict)
		if !ok || r.compare(best.rank) < 0 {
			best = Head{Waiter: q.flows.At(q.tree.Value(n)).first, Lane: l.key, rank: r}
			ok = true
		}
	}
	return best, ok
}

func (q *Queue) rankOf(class int, k flat.Key, strict bool) rank {
	switch {
	case strict || q.Mode == Strict:
		return rank{class: int64(class), flow: k.A, seq: k.B}
	case q.Mode == FIFO:
		return rank{seq: k.B}
	default:
		return rank{class: q.classes[class].start, tie: int64(class), flow: k.A, seq: k.B}
	}
}

// aheadScale is the denominator of Ahead.
const aheadScale = 1024

// aheadLooks bounds how many agents Ahead looks at; what they have before the newcomer
// stands for the rest.
const aheadLooks = 32

// Ahead estimates which part of all others that wait will go before waiter w, the
// latest of its agent or, when it renews, the first: in 1/1024, rather too little than
// too much.
func (q *Queue) Ahead(w int32) int64 {
	wt := q.waiters.At(w)
	fl := q.flows.At(wt.flow)
	class := fl.key.Class
	c := &q.classes[class]
	others := q.queued - wt.cost
	if others <= 0 {
		return 0
	}
	if q.Mode == FIFO {
		if fl.first == w && wt.next != 0 {
			return 0 // it renews
		}
		return aheadScale
	}
	own := q.members.At(fl.member).queued - wt.cost
	if fl.first == w {
		own = 0
	}
	ahead := min(own+q.sooner(w, own), c.queued-wt.cost)
	finish := c.start + q.classCost(class, ahead)
	for i := range q.classes {
		o := &q.classes[i]
		switch {
		case i == int(class) || o.waiting == 0:
		case q.Mode == Fair:
			ahead += min(max(finish-o.start, 0)*q.Weights[i]/weightScale, o.queued)
		case i < int(class):
			ahead += o.queued
		}
	}
	return min(ahead, others) * aheadScale / others
}

// sooner adds up what other agents of w's class have in line before it, if its own
// agent has the cost own before it.
func (q *Queue) sooner(w int32, own int64) (sum int64) {
	wt := q.waiters.At(w)
	me := q.flows.At(wt.flow)
	class := me.key.Class
	tag := flat.Key{A: q.members.At(me.member).start + own, B: wt.seq}
	looks := int64(0)
	for l := q.first; l != 0; l = q.lanes.At(l).next {
		for n := q.tree.Min(q.lanes.At(l).roots[class]); n != 0 && q.tree.KeyOf(n).Less(tag); n = q.tree.Next(n) {
			if looks++; looks > aheadLooks {
				return sum / aheadLooks * int64(q.classes[class].active)
			}
			fl := q.flows.At(q.tree.Value(n))
			if fl.member == me.member {
				continue
			}
			m := q.members.At(fl.member)
			sum += min(max(tag.A-m.start, q.waiters.At(fl.first).cost), m.queued)
		}
	}
	return sum
}

// Share returns the part of amount that Ahead's fraction stands for.
func Share(amount, ahead int64) int64 {
	return amount/aheadScale*ahead + amount%aheadScale*ahead/aheadScale
}
