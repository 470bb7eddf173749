package sim

import "github.com/sluicehq/sluice/store"

// fairQueue is weighted fair order in its simplest form, for the oracle: the
// class that has had least for its weight goes first, the agents of a class
// take turns. It is slow and easy to check.
type fairQueue struct {
	classes []store.Class
	served  map[int]float64 // by class: calls over weight
	turns   map[*agent]int  // by agent: calls let in
	waiting map[*agent][]*call
	agents  []*agent // in the order they first came
}

func (q *fairQueue) add(c *call) {
	if q.waiting == nil {
		q.served, q.turns, q.waiting = map[int]float64{}, map[*agent]int{}, map[*agent][]*call{}
	}
	a := c.agent
	if _, known := q.waiting[a]; !known {
		q.agents = append(q.agents, a)
	}
	if len(q.waiting[a]) == 0 {
		q.rejoin(a)
	}
	q.waiting[a] = append(q.waiting[a], c)
}

// rejoin brings one that had nothing to do level with those who had: idle time
// earns no credit.
func (q *fairQueue) rejoin(a *agent) {
	class, turn := -1.0, -1
	idle := true
	for _, b := range q.agents {
		if len(q.waiting[b]) == 0 {
			continue
		}
		if s := q.served[b.Class]; class < 0 || s < class {
			class = s
		}
		if b.Class == a.Class {
			idle = false
			if turn < 0 || q.turns[b] < turn {
				turn = q.turns[b]
			}
		}
	}
	if idle {
		q.served[a.Class] = max(q.served[a.Class], class)
	}
	q.turns[a] = max(q.turns[a], turn)
}

// each offers the first call of each agent in order; those that let returns true
// for leave the queue, and the order is taken anew.
func (q *fairQueue) each(let func(*call) bool) {
	refused := map[string]bool{} // by model: what holds one of them up holds up those behind
	for {
		var best *agent
		for _, a := range q.agents {
			if len(q.waiting[a]) == 0 || refused[q.waiting[a][0].asks.Model] {
				continue
			}
			if best == nil || q.before(a, best) {
				best = a
			}
		}
		if best == nil {
			return
		}
		c := q.waiting[best][0]
		if !let(c) {
			refused[c.asks.Model] = true
			continue
		}
		q.waiting[best] = q.waiting[best][1:]
		q.turns[best]++
		q.served[best.Class] += 1 / float64(q.classes[best.Class].Weight)
	}
}

func (q *fairQueue) before(a, b *agent) bool {
	if a.Class != b.Class {
		if sa, sb := q.served[a.Class], q.served[b.Class]; sa != sb {
			return sa < sb
		}
		return a.Class < b.Class
	}
	return q.turns[a] < q.turns[b]
}
