package order

import (
	"container/heap"
	"math"

	"github.com/sluicehq/sluice/internal/flat"
)

// Listed is one entry of List: a waiting ticket and its class.
type Listed struct {
	Ticket int32
	Class  int
}

// List returns up to most waiters, in the order in which they would be granted if every one had room. costs returns
// what a ticket takes. List plays the queue forward on copies of the tags and changes nothing.
func (q *Queue) List(strict Strictness, most int, costs func(ticket int32) Costs) []Listed {
	p := player{q: q, strict: strict, least: map[int32]int64{}}
	p.load()
	var list []Listed
	for len(list) < most {
		w, ok := p.next(costs)
		if !ok {
			break
		}
		wt := q.waiters.At(w)
		fl := q.flows.At(wt.flow)
		list = append(list, Listed{Ticket: wt.ticket, Class: int(fl.key.Class)})
	}
	return list
}

// player replays grants on copied tags.
type player struct {
	q      *Queue
	strict Strictness
	parts  []*playedPart
	least  map[int32]int64 // by domain
}

type playedPart struct {
	p      *player
	lane   *lane
	class  int
	start  [MaxMeters]int64
	agents []*playedAgent // a heap
}

type playedAgent struct {
	start int64
	heads []int32 // the next waiter of each of its flows
}

func (p *player) load() {
	type place struct {
		lane  int32
		class uint8
	}
	q := p.q
	parts := map[place]*playedPart{}
	agents := map[int32]*playedAgent{}
	for i := int32(1); i < q.flows.End(); i++ {
		fl := q.flows.At(i)
		if fl.first == 0 {
			continue
		}
		at := place{fl.lane, fl.key.Class}
		pt := parts[at]
		if pt == nil {
			pt = &playedPart{p: p, lane: q.lanes.At(fl.lane), class: int(fl.key.Class)}
			for k := range pt.lane.n {
				pt.start[k] = pt.lane.parts[at.class].tags[k].start
			}
			parts[at] = pt
			p.parts = append(p.parts, pt)
		}
		a := agents[fl.member]
		if a == nil {
			a = &playedAgent{start: q.members.At(fl.member).start}
			agents[fl.member] = a
			pt.agents = append(pt.agents, a)
		}
		a.heads = append(a.heads, fl.first)
	}
	for _, pt := range p.parts {
		heap.Init(pt)
	}
}

// next plays the next grant.
func (p *player) next(costs func(int32) Costs) (int32, bool) {
	clear(p.least)
	for _, pt := range p.parts {
		for k := range pt.lane.n {
			d := pt.lane.domains[k]
			if least, seen := p.least[d]; len(pt.agents) > 0 && (!seen || pt.start[k] < least) {
				p.least[d] = pt.start[k]
			}
		}
	}
	var best *playedPart
	bestRank := rank{math.MaxInt64}
	for _, pt := range p.parts {
		if len(pt.agents) == 0 {
			continue
		}
		if r := p.rank(pt); r.compare(bestRank) < 0 {
			best, bestRank = pt, r
		}
	}
	if best == nil {
		return 0, false
	}
	return best.grant(costs), true
}

func (p *player) rank(pt *playedPart) rank {
	var lead int64
	for k := range pt.lane.n {
		lead = max(lead, pt.start[k]-p.least[pt.lane.domains[k]])
	}
	return p.q.rankOf(pt.class, lead, pt.key(0).B, p.strict.in(pt.lane.key))
}

// grant plays the grant of a part's first waiter.
func (pt *playedPart) grant(costs func(int32) Costs) int32 {
	q, a := pt.p.q, pt.agents[0]
	i := a.oldest(q)
	w := a.heads[i]
	wt := q.waiters.At(w)
	c := costs(wt.ticket)
	for k := range pt.lane.n {
		pt.start[k] += q.partCost(pt.lane, uint8(pt.class), k, c.Cost[k])
	}
	a.start += wt.cost
	if wt.next != 0 {
		a.heads[i] = wt.next
	} else if a.heads = append(a.heads[:i], a.heads[i+1:]...); len(a.heads) == 0 {
		heap.Pop(pt)
		return w
	}
	heap.Fix(pt, 0)
	return w
}

// oldest returns the index of the head that has waited longest.
func (a *playedAgent) oldest(q *Queue) (best int) {
	for i := range a.heads {
		if q.waiters.At(a.heads[i]).seq < q.waiters.At(a.heads[best]).seq {
			best = i
		}
	}
	return best
}

// key returns the sort key of agent i within its part.
func (pt *playedPart) key(i int) flat.Key {
	a, q := pt.agents[i], pt.p.q
	k := flat.Key{A: a.start, B: q.waiters.At(a.heads[a.oldest(q)]).seq}
	if q.Mode == FIFO {
		k.A = 0
	}
	return k
}

func (pt *playedPart) Len() int           { return len(pt.agents) }
func (pt *playedPart) Less(i, j int) bool { return pt.key(i).Less(pt.key(j)) }
func (pt *playedPart) Swap(i, j int)      { pt.agents[i], pt.agents[j] = pt.agents[j], pt.agents[i] }
func (pt *playedPart) Push(any)           { panic("order: a played part never grows") }
func (pt *playedPart) Pop() any {
	n := len(pt.agents) - 1
	a := pt.agents[n]
	pt.agents = pt.agents[:n]
	return a
}
