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

// Ahead estimates which part of all others that wait will go before a newcomer of this
// class and agent, in 1/1024. The newcomer is in line already, with its cost. Under a fair order its own earlier requests take
// turns with the other agents of the class, and the class with the others; a first
// request goes within one round.
func (q *Queue) Ahead(class uint8, agent int32, cost int64) int64 {
	queued := q.queued - cost
	if queued <= 0 {
		return 0
	}
	if q.Mode == FIFO {
		return aheadScale
	}
	c := &q.classes[class]
	var own int64
	if m := q.findMember(class, agent); m != 0 {
		own = q.members.At(m).queued
	}
	ahead := max(min(own*int64(max(c.active, 1)), c.queued)-cost, 0)
	if q.Mode == Strict {
		for i := range int(class) {
			ahead += q.classes[i].queued
		}
	} else {
		var others, total int64
		for i := range q.classes {
			if q.classes[i].waiting > 0 {
				total += q.Weights[i]
				if i != int(class) {
					others += q.classes[i].queued
				}
			}
		}
		if c.waiting == 0 {
			total += q.Weights[class]
		}
		w := max(q.Weights[class], 1)
		ahead += min(ahead/w*(total-w), others)
	}
	return min(ahead, queued) * aheadScale / queued
}

// Share returns the part of amount that Ahead's fraction stands for.
func Share(amount, ahead int64) int64 {
	return amount/aheadScale*ahead + amount%aheadScale*ahead/aheadScale
}
