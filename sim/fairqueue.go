package sim

import (
	"container/heap"

	"github.com/sluicehq/sluice/store"
)

// fairQueue orders calls by weighted fairness for the oracle. The class that was served least for its weight goes
// first, and the agents of a class take turns.
type fairQueue struct {
	classes []store.Class
	served  []float64 // by class: accepted calls divided by the weight
	agents  []*turn   // by agent index; nil: it has not come yet
	came    int       // number of agents that have come
	lines   []*line   // one for each class and model
}

// line holds the agents of one class whose next call is for one model, in the order of their turns.
type line struct {
	class   int
	model   string
	turns   []*turn // a heap
	refused bool
}

// turn is one agent in the queue.
type turn struct {
	agent   *agent
	order   int // rank of its first call among all agents
	had     int // accepted calls
	waiting []*call
}

func (q *fairQueue) add(c *call) {
	if q.served == nil {
		q.served = make([]float64, len(q.classes))
	}
	for len(q.agents) <= c.agent.index {
		q.agents = append(q.agents, nil)
	}
	t := q.agents[c.agent.index]
	if t == nil {
		t = &turn{agent: c.agent, order: q.came}
		q.agents[c.agent.index] = t
		q.came++
	}
	t.waiting = append(t.waiting, c)
	if len(t.waiting) == 1 {
		q.rejoin(t)
		heap.Push(q.line(t), t)
	}
}

// line returns the line that t belongs to.
func (q *fairQueue) line(t *turn) *line {
	class, model := t.agent.Class, t.waiting[0].asks.Model
	refused := false
	for _, l := range q.lines {
		if l.model != model {
			continue
		}
		if l.class == class {
			return l
		}
		refused = l.refused
	}
	l := &line{class: class, model: model, refused: refused}
	q.lines = append(q.lines, l)
	return l
}

// rejoin raises the counts of an agent that was idle to those of the others, because idle time earns no credit.
func (q *fairQueue) rejoin(t *turn) {
	class, had := -1.0, -1
	for _, l := range q.lines {
		if len(l.turns) == 0 {
			continue
		}
		if s := q.served[l.class]; class < 0 || s < class {
			class = s
		}
		if first := l.turns[0].had; l.class == t.agent.Class && (had < 0 || first < had) {
			had = first
		}
	}
	if had < 0 {
		q.served[t.agent.Class] = max(q.served[t.agent.Class], class)
	}
	t.had = max(t.had, had)
}

// each offers the first call of each agent to let, in order. If let accepts a call, it leaves the queue, and the order
// is computed again.
func (q *fairQueue) each(let func(*call) bool) {
	for _, l := range q.lines {
		l.refused = false
	}
	for {
		best := q.best()
		if best == nil {
			return
		}
		t := best.turns[0]
		if !let(t.waiting[0]) {
			q.refuse(best.model)
			continue
		}
		t.had++
		q.served[best.class] += 1 / float64(q.classes[best.class].Weight)
		t.waiting = t.waiting[1:]
		if len(t.waiting) > 0 && t.waiting[0].asks.Model == best.model {
			heap.Fix(best, 0)
			continue
		}
		heap.Pop(best)
		if len(t.waiting) > 0 {
			heap.Push(q.line(t), t)
		}
	}
}

// refuse skips a model. The limit that delays one of its calls also delays the calls behind it.
func (q *fairQueue) refuse(model string) {
	for _, l := range q.lines {
		l.refused = l.refused || l.model == model
	}
}

// best returns the line whose first agent is next, or nil if there is none.
func (q *fairQueue) best() *line {
	var best *line
	for _, l := range q.lines {
		if len(l.turns) > 0 && !l.refused && (best == nil || q.before(l, best)) {
			best = l
		}
	}
	return best
}

func (q *fairQueue) before(a, b *line) bool {
	if a.class != b.class {
		if sa, sb := q.served[a.class], q.served[b.class]; sa != sb {
			return sa < sb
		}
		return a.class < b.class
	}
	return a.turns[0].before(b.turns[0])
}

func (t *turn) before(other *turn) bool {
	if t.had != other.had {
		return t.had < other.had
	}
	return t.order < other.order
}

func (l *line) Len() int           { return len(l.turns) }
func (l *line) Less(i, j int) bool { return l.turns[i].before(l.turns[j]) }
func (l *line) Swap(i, j int)      { l.turns[i], l.turns[j] = l.turns[j], l.turns[i] }
func (l *line) Push(x any)         { l.turns = append(l.turns, x.(*turn)) }
func (l *line) Pop() any {
	last := len(l.turns) - 1
	t := l.turns[last]
	l.turns[last] = nil
	l.turns = l.turns[:last]
	return t
}
