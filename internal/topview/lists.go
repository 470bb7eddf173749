package topview

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/inspect"
)

// orders lists the sort orders of each list, the default first.
var orders = [panes][]string{
	resources: {"name", "fullness", "rate", "waiting"},
	agents:    {"name", "use", "state", "class"},
	waiting:   {"turn", "time", "agent"},
}

// keys returns the keys of a list's rows, in order.
func (m *Model) keys(p pane) (keys []string) {
	switch p {
	case resources:
		for _, r := range m.resources() {
			keys = append(keys, r.Name)
		}
	case agents:
		for _, a := range m.agents() {
			keys = append(keys, a.Name)
		}
	case waiting:
		for _, w := range m.waiting() {
			keys = append(keys, w.Ticket)
		}
	}
	return keys
}

// resources returns the resources that pass the filter, sorted.
func (m *Model) resources() (list []*inspect.ResourceStatus) {
	for i := range m.data.Status.Resources {
		if r := &m.data.Status.Resources[i]; m.matches(r.Name) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b *inspect.ResourceStatus) int {
		order := 0
		switch orders[resources][m.sorts[resources]] {
		case "fullness":
			_, x := fullest(a)
			_, y := fullest(b)
			order = cmp.Compare(y, x)
		case "rate":
			order = cmp.Compare(m.rates[b.Name].mean(), m.rates[a.Name].mean())
		case "waiting":
			order = cmp.Compare(b.AllWaiting(), a.AllWaiting())
		}
		return cmp.Or(order, cmp.Compare(a.Name, b.Name))
	})
	return list
}

// urgency orders states, the most urgent first.
var urgency = map[string]int{"limited": 0, "held": 1, "waiting": 2}

func (m *Model) agents() (list []*inspect.AgentStatus) {
	for i := range m.data.Status.Agents {
		if a := &m.data.Status.Agents[i]; m.matches(a.Name, a.User, a.Machine, a.Resource, a.Class, a.State) {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b *inspect.AgentStatus) int {
		order := 0
		switch orders[agents][m.sorts[agents]] {
		case "use":
			order = cmp.Compare(b.Used, a.Used)
		case "state":
			order = cmp.Compare(rank(a.State), rank(b.State))
		case "class":
			order = cmp.Compare(slices.Index(m.data.Classes, a.Class), slices.Index(m.data.Classes, b.Class))
		}
		return cmp.Or(order, cmp.Compare(a.Name, b.Name))
	})
	return list
}

func rank(state string) int {
	if u, ok := urgency[state]; ok {
		return u
	}
	return len(urgency)
}

func (m *Model) waiting() (list []*Waiting) {
	for i := range m.data.Waiting {
		if w := &m.data.Waiting[i]; m.matches(w.Agent, w.Resource) {
			list = append(list, w)
		}
	}
	slices.SortStableFunc(list, func(a, b *Waiting) int {
		order := 0
		switch orders[waiting][m.sorts[waiting]] {
		case "time":
			order = compareTimes(a, b)
		case "agent":
			order = cmp.Compare(a.Agent, b.Agent)
		}
		return cmp.Or(order, cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Position, b.Position))
	})
	return list
}

// compareTimes puts requests that go soon first, and requests with an unknown time last.
func compareTimes(a, b *Waiting) int {
	switch x, y := a.ExpectedAt, b.ExpectedAt; {
	case x == nil && y == nil:
		return 0
	case x == nil:
		return 1
	case y == nil:
		return -1
	default:
		return x.Compare(*y)
	}
}
