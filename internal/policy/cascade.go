package policy

import (
	"maps"
	"slices"
	"strings"
)

// MaxCycles bounds the number of reported cycles.
const MaxCycles = 100

// Graph says which agents wait for the work of which others, and which agents are limited. Agents that others wait
// for need not be in Waits: they may be dead or declare no dependencies.
type Graph struct {
	Waits   map[string][]string // the agents whose work an agent depends on
	Limited map[string]string   // why an agent is limited
}

// Hold says why an agent should start no new work.
type Hold struct {
	// Chain leads from the agent to a limited one; each waits for the next. It is the shortest chain, and the first
	// by name among those. An agent that is limited itself has a chain of one: its running work continues, and new
	// work would only queue.
	Chain  []string
	Reason string // why the last agent of the chain is limited
}

// Holds has the holds of all agents in a graph. Chains are built on request, because all chains together would grow
// with the square of their length.
type Holds struct {
	graph Graph
	next  map[string]string // the next agent in the chain; a limited agent has itself
}

// Len returns how many agents have to hold.
func (h Holds) Len() int { return len(h.next) }

// Agents returns the agents that have to hold, sorted by name.
func (h Holds) Agents() []string { return slices.Sorted(maps.Keys(h.next)) }

// Of returns why an agent has to hold. It returns false if it need not.
func (h Holds) Of(agent string) (Hold, bool) {
	next, held := h.next[agent]
	if !held {
		return Hold{}, false
	}
	chain := []string{agent}
	for next != agent {
		chain = append(chain, next)
		agent, next = next, h.next[next]
	}
	return Hold{Chain: chain, Reason: h.graph.Limited[agent]}, true
}

// Holds finds all agents that wait for a limited one, directly or not. It is a breadth-first search from all limited
// agents at once, against the direction of waiting.
func (g Graph) Holds() Holds {
	upstream := make(map[string][]string)
	for agent, waits := range g.Waits {
		for _, other := range waits {
			upstream[other] = append(upstream[other], agent)
		}
	}
	next := make(map[string]string, len(g.Limited))
	ring := slices.Sorted(maps.Keys(g.Limited))
	for _, agent := range ring {
		next[agent] = agent
	}
	for len(ring) > 0 {
		// Sorted by name, so that each agent is reached by way of the first name.
		var outer []string
		for _, agent := range ring {
			for _, up := range upstream[agent] {
				if _, found := next[up]; !found {
					next[up] = agent
					outer = append(outer, up)
				}
			}
		}
		slices.Sort(outer)
		ring = outer
	}
	return Holds{graph: g, next: next}
}

// HoldOf is Holds for one agent. It follows what that agent waits for, up to the first limited agent.
func (g Graph) HoldOf(agent string) (Hold, bool) {
	from := map[string]string{agent: agent}
	for queue := []string{agent}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if reason, limited := g.Limited[at]; limited {
			return Hold{Chain: trace(from, agent, at), Reason: reason}, true
		}
		for _, other := range slices.Sorted(slices.Values(g.Waits[at])) {
			if _, seen := from[other]; !seen {
				from[other] = at
				queue = append(queue, other)
			}
		}
	}
	return Hold{}, false
}

// trace returns the path from first to last. from has the predecessor of each step.
func trace(from map[string]string, first, last string) []string {
	way := []string{last}
	for last != first {
		last = from[last]
		way = append(way, last)
	}
	slices.Reverse(way)
	return way
}

// Cycles returns agents that wait for each other in a circle: each waits for the next, and the last for the first.
// In a group where every agent waits for every other, directly or not, it returns the shortest circle through the
// first name. So each group is reported once, however many circles it has. Cycles are sorted by name; there are at
// most MaxCycles.
func (g Graph) Cycles() [][]string {
	var cycles [][]string
	groups := g.groups()
	slices.SortFunc(groups, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	for _, group := range groups {
		if len(cycles) == MaxCycles {
			break
		}
		inside := make(map[string]bool, len(group))
		for _, agent := range group {
			inside[agent] = true
		}
		cycles = append(cycles, g.circle(group[0], func(agent string) bool { return inside[agent] }))
	}
	return cycles
}

// CycleOf returns the shortest circle that an agent is in, beginning with its first name. It returns nil if there is
// none. It may differ from the circle that Cycles returns for the agent's group.
func (g Graph) CycleOf(agent string) []string {
	circle := g.circle(agent, func(string) bool { return true })
	if len(circle) == 0 {
		return nil
	}
	first := slices.Index(circle, slices.Min(circle))
	return slices.Concat(circle[first:], circle[:first])
}

// circle returns the shortest path from an agent back to itself through agents that are inside. It returns nil if
// there is none.
func (g Graph) circle(first string, inside func(string) bool) []string {
	from := make(map[string]string)
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, other := range slices.Sorted(slices.Values(g.Waits[at])) {
			if other == first {
				return trace(from, first, at)
			}
			if _, seen := from[other]; !seen && inside(other) {
				from[other] = at
				queue = append(queue, other)
			}
		}
	}
	return nil
}

// visit is an agent on the search path of groups.
type visit struct {
	agent string
	waits []string // not visited yet
}

// groups returns the strongly connected components that contain a cycle, each with its first name first. It is
// Tarjan's algorithm with an explicit stack, because chains can be longer than a goroutine's stack allows.
func (g Graph) groups() [][]string {
	var (
		found  [][]string
		number = make(map[string]int, len(g.Waits)) // order of discovery, from 1
		low    = make(map[string]int, len(g.Waits)) // lowest number within reach; done: in a complete component
		open   []string                             // not in a component yet
		path   []visit
	)
	enter := func(agent string) {
		number[agent] = len(number) + 1
		low[agent] = number[agent]
		open = append(open, agent)
		path = append(path, visit{agent, g.Waits[agent]})
	}
	leave := func(agent string) {
		if low[agent] < number[agent] {
			return
		}
		start := len(open) - 1
		for open[start] != agent {
			start--
		}
		group := slices.Clone(open[start:])
		open = open[:start]
		for _, member := range group {
			low[member] = done
		}
		if len(group) > 1 || slices.Contains(g.Waits[agent], agent) {
			i := slices.Index(group, slices.Min(group))
			group[0], group[i] = group[i], group[0]
			found = append(found, group)
		}
	}
	for root := range g.Waits {
		if number[root] != 0 {
			continue
		}
		for enter(root); len(path) > 0; {
			top := &path[len(path)-1]
			agent := top.agent
			if len(top.waits) == 0 {
				path = path[:len(path)-1]
				if len(path) > 0 {
					up := path[len(path)-1].agent
					low[up] = min(low[up], low[agent])
				}
				leave(agent)
				continue
			}
			other := top.waits[0]
			top.waits = top.waits[1:]
			if number[other] == 0 {
				enter(other)
			} else {
				low[agent] = min(low[agent], low[other])
			}
		}
	}
	return found
}

// done is above every number. It marks agents of complete components, which no longer matter.
const done = int(^uint(0) >> 1)
