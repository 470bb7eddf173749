package order

import (
	"container/heap"

	"github.com/sluicehq/sluice/internal/flat"
)

// Listed is one waiter in the order in which all would go if everyone could.
type Listed struct {
	Ticket int32
	Class  int
	Parked bool
}

// List returns the first most waiters, in order. It plays the queue forward on
// copies of the tags; nothing changes.
func (q *Queue) List(strict bool, most int) []Listed {
	p := player{q: q, strict: strict}
	for i := range q.classes {
		p.classStart[i] = q.classes[i].start
	}
	agents := map[int32]*playedAgent{}
	for i := int32(1); i < q.flows.End(); i++ {
		fl := q.flows.At(i)
		if fl.first == 0 {
			continue
		}
		a := agents[fl.member]
		if a == nil {
			m := q.members.At(fl.member)
			a = &playedAgent{class: int(m.class), start: m.start}
			agents[fl.member] = a
			p.classes[a.class] = append(p.classes[a.class], a)
		}
		a.heads = append(a.heads, fl.first)
	}
	for c := range p.classes {
		heap.Init(&playedClass{&p, &p.classes[c]})
	}
	var list []Listed
	for len(list) < most {
		w, ok := p.next()
		if !ok {
			break
		}
		wt := q.waiters.At(w)
		fl := q.flows.At(wt.flow)
		list = append(list, Listed{Ticket: wt.ticket, Class: int(fl.key.Class), Parked: fl.spot != 0})
	}
	return list
}

// player replays grants on copied tags.
type player struct {
	q          *Queue
	strict     bool
	classStart [MaxClasses]int64
	classes    [MaxClasses][]*playedAgent
}

type playedAgent struct {
	class int
	start int64
	heads []int32 // the next waiter of each of its flows
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

func (p *player) rank(a *playedAgent) rank {
	q := p.q
	key := flat.Key{A: a.start, B: q.waiters.At(a.heads[a.oldest(q)]).seq}
	if q.Mode == FIFO {
		key.A = 0
	}
	r := q.rankOf(a.class, key, p.strict)
	if !p.strict && q.Mode == Fair {
		r.class = p.classStart[a.class]
	}
	return r
}

func (p *player) next() (int32, bool) {
	best := -1
	for c, agents := range p.classes {
		if len(agents) > 0 && (best < 0 || p.rank(agents[0]).compare(p.rank(p.classes[best][0])) < 0) {
			best = c
		}
	}
	if best < 0 {
		return 0, false
	}
	a := p.classes[best][0]
	i := a.oldest(p.q)
	w := a.heads[i]
	wt := p.q.waiters.At(w)
	p.classStart[best] += p.q.classCost(uint8(best), wt.cost)
	a.start += wt.cost
	h := &playedClass{p, &p.classes[best]}
	if wt.next != 0 {
		a.heads[i] = wt.next
	} else if a.heads = append(a.heads[:i], a.heads[i+1:]...); len(a.heads) == 0 {
		heap.Pop(h)
		return w, true
	}
	heap.Fix(h, 0)
	return w, true
}

// playedClass is the heap of a class's agents.
type playedClass struct {
	p      *player
	agents *[]*playedAgent
}

func (h *playedClass) Len() int { return len(*h.agents) }
func (h *playedClass) Less(i, j int) bool {
	return h.p.rank((*h.agents)[i]).compare(h.p.rank((*h.agents)[j])) < 0
}
func (h *playedClass) Swap(i, j int) { (*h.agents)[i], (*h.agents)[j] = (*h.agents)[j], (*h.agents)[i] }
func (h *playedClass) Push(any)      { panic("order: a played class never grows") }
func (h *playedClass) Pop() any {
	n := len(*h.agents) - 1
	a := (*h.agents)[n]
	*h.agents = (*h.agents)[:n]
	return a
}
