package topview

import (
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

func (m *Model) agentRows(list []*inspect.AgentStatus) *show.Table {
	s := m.style
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "agents", Least: 12}, {Head: "class"}, {Head: "state"}, {Head: "", Drop: 6}, {Head: "used", Right: true, Drop: 1},
		{Head: "of", Right: true, Drop: 2}, {Head: "resource", Least: 9, Drop: 5}, {Head: "lease", Right: true, Drop: 4},
		{Head: "user", Least: 5, Drop: 7}, {Head: "machine", Least: 6, Drop: 8}, {Head: "why", Least: 16, Drop: 3},
	}}
	waits := m.firstWaits()
	for _, a := range list {
		row := []show.Cell{
			{Text: s.Text(a.Name, name)}, {Text: s.Text(a.Class, 12)}, {Text: a.State, Colour: show.OfState(a.State)}, {}, {Text: show.Count(a.Used)}, {},
			{Text: s.Text(a.Resource, name)}, show.Lease(a.Leased, a.LeaseExpiresAt, m.now), {Text: s.Text(a.User, name)}, {Text: s.Text(a.Machine, name)}, m.why(a, waits[a.Name]),
		}
		if a.Allocated >= 0 {
			part := float64(a.Used) / float64(max(a.Allocated, 1))
			row[3] = show.Cell{Text: s.Bar(part, bar), Colour: show.Fullness(part)}
			row[5].Text = show.Count(a.Allocated)
		}
		t.Add(row...)
	}
	return t
}

// firstWaits returns the first waiting request of each agent.
func (m *Model) firstWaits() map[string]*Waiting {
	first := map[string]*Waiting{}
	for i := range m.data.Waiting {
		w := &m.data.Waiting[i]
		if at := first[w.Agent]; at == nil || w.Position < at.Position {
			first[w.Agent] = w
		}
	}
	return first
}

// why shows what an agent waits for: agents that must go first, its turn, or else the agents that its work depends on.
func (m *Model) why(a *inspect.AgentStatus, w *Waiting) show.Cell {
	s := m.style
	switch {
	case len(a.PauseChain) > 0:
		return show.Cell{Text: s.Names(a.PauseChain, " > ", chain, name), Colour: show.Amber}
	case w != nil:
		text := s.Text(show.Waits(w.Reason, w.Limit, w.Scope), 80)
		if when := show.In(w.ExpectedAt, m.now); when != "" {
			text += ", goes " + when
		}
		return show.Cell{Text: text}
	case len(a.WaitsFor) > 0:
		return show.Cell{Text: "depends on " + s.Names(a.WaitsFor, ", ", chain, name), Colour: show.Dim}
	}
	return show.Cell{}
}

// agentDetails returns the lines about the selected agent.
func (m *Model) agentDetails(a *inspect.AgentStatus) (lines []string) {
	s := m.style
	add := func(c show.Colour, text string) { lines = append(lines, "    "+s.Paint(c, text)) }
	if len(a.PauseChain) > 0 {
		add(show.Amber, "no new work: "+s.Names(a.PauseChain, " > ", chain, name))
	}
	if w := m.firstWaits()[a.Name]; w != nil {
		text := "waits for " + s.Text(w.Resource, name) + ": " + s.Text(show.Waits(w.Reason, w.Limit, w.Scope), 80)
		if len(w.HeldBy) > 0 {
			text += ", held by " + s.Names(w.HeldBy, ", ", 3, name)
		}
		if left := show.Left(w.HeldUntil, m.now); left != "" {
			text += " for at most " + left
		}
		add(show.Plain, text)
	}
	if len(a.WaitsFor) > 0 {
		add(show.Dim, "depends on "+s.Names(a.WaitsFor, ", ", chain, name))
	}
	return lines
}
