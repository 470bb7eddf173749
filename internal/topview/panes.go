package topview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

const (
	name  = 40 // cells, at most
	bar   = 8
	spark = 8
	chain = 6

	reasonWidth = 60
	anything    = 1 << 20 // rows, when there is no bound
)

// rows builds the table of a list, with at most n rows beginning at from.
func (m *Model) rows(p pane, from, n int) *show.Table {
	switch p {
	case resources:
		return m.resourceRows(window(m.resources(), from, n))
	case agents:
		return m.agentRows(window(m.agents(), from, n))
	default:
		return m.waitingRows(window(m.waiting(), from, n))
	}
}

func window[T any](list []T, from, n int) []T {
	from = min(max(from, 0), len(list))
	return list[from:min(from+n, len(list))]
}

func (m *Model) resourceRows(list []*inspect.ResourceStatus) *show.Table {
	s := m.style
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "resources", Least: 12}, {Head: "state"}, {Head: "", Drop: 4}, {Head: "full", Right: true}, {Head: "limit", Least: 5, Drop: 6},
		{Head: "", Drop: 5}, {Head: "per s", Right: true, Drop: 3}, {Head: "waiting", Right: true, Drop: 1}, {Head: "sent", Right: true, Drop: 7},
		{Head: "flight", Right: true, Drop: 2}, {Head: "", Least: 14},
	}}
	for _, r := range list {
		series := m.rates[r.Name]
		row := []show.Cell{
			{Text: s.Text(r.Name, name)}, {Text: r.State, Colour: show.Resource(r.State)}, {}, {}, {},
			{Text: s.Spark(series.rates, spark), Colour: show.Cyan}, {Text: show.Rate(series.mean())}, {Text: m.byClass(r)},
			{Text: show.Count(r.Sent)}, {Text: fmt.Sprint(r.InFlight)}, m.condition(r),
		}
		if r.Outage != nil { // unknown is not zero
			row[7].Text, row[8].Text, row[9].Text = "?", "?", "?"
		} else if l, part := fullest(r); l != nil {
			row[2] = show.Cell{Text: s.Bar(part, bar), Colour: show.Fullness(part)}
			row[3].Text, row[4].Text = show.Percent(part), s.Text(l.Name, name)
		}
		t.Add(row...)
	}
	return t
}

// byClass shows how many requests of each class wait, highest first: 0/2/5.
func (m *Model) byClass(r *inspect.ResourceStatus) string {
	if r.AllWaiting() == 0 {
		return "0"
	}
	var parts []string
	for _, class := range m.data.Classes {
		parts = append(parts, fmt.Sprint(r.Waiting[class]))
	}
	return strings.Join(parts, "/")
}

// condition shows what is unusual about a resource: first a light that holds classes back.
func (m *Model) condition(r *inspect.ResourceStatus) show.Cell {
	c := m.heldBy(r)
	if r.Outage != nil || !r.LightBinds || r.Light == "green" {
		return c
	}
	text := "light " + r.Light
	if c.Text != "" {
		text += ", " + c.Text
	}
	return show.Cell{Text: text, Colour: show.Amber}
}

// heldBy shows what is unusual besides the light.
func (m *Model) heldBy(r *inspect.ResourceStatus) show.Cell {
	if r.Outage != nil {
		return show.Cell{Text: "store lost", Colour: show.Amber}
	}
	if r.State == inspect.StateFailing || r.State == inspect.StateDegraded || r.BillingStop {
		return show.Cell{Text: m.style.Text(r.Reason, reasonWidth), Colour: show.Resource(r.State)}
	}
	if len(r.Gates) > 0 {
		g := &r.Gates[max(slices.IndexFunc(r.Gates, func(g inspect.PauseStatus) bool { return g.Phase == "paused" }), 0)]
		scope := ""
		if g.Scope != "" {
			scope = m.style.Text(g.Scope, name) + " "
		}
		if g.Phase == "paused" {
			return show.Cell{Text: scope + "paused " + show.For(g.Until, m.now), Colour: show.Amber}
		}
		return show.Cell{Text: scope + g.Phase, Colour: show.Amber}
	}
	for i := range r.Limits {
		if l := &r.Limits[i]; l.Breaker != "" && l.GoneAt != nil {
			return show.Cell{Text: m.style.Text(l.Name, name) + " gone " + show.In(l.GoneAt, m.now), Colour: show.Amber}
		}
	}
	if r.Mode == "observe" {
		return show.Cell{Text: "observed", Colour: show.Cyan}
	}
	return show.Cell{}
}

// limitRows builds the table of a resource's limits, at most n.
func (m *Model) limitRows(r *inspect.ResourceStatus, n int) *show.Table {
	s := m.style
	t := &show.Table{Indent: "    ", Columns: []show.Column{
		{Head: "limit", Least: 6}, {Head: "for", Least: 6}, {Head: "", Drop: 2}, {Head: "used", Right: true}, {Head: "of", Right: true},
		{Head: "unit", Least: 6, Drop: 3}, {Head: "others", Right: true, Drop: 4}, {Head: "resets in", Right: true, Drop: 1},
	}}
	for _, l := range foremost(r.Limits, n) {
		row := []show.Cell{
			{Text: s.Text(l.Name, name)}, {Text: s.Text(l.Scope, name)}, {}, {Text: show.Count(l.Used)}, {Text: "?"}, {Text: s.Text(l.Unit, name)}, {},
			{Text: show.Left(l.ResetAt, m.now)},
		}
		if l.Limit > 0 {
			part := float64(l.Used) / float64(l.Limit)
			row[2] = show.Cell{Text: s.Bar(part, bar+4), Colour: show.Fullness(part)}
			row[4].Text = show.Count(l.Limit)
		}
		if l.Outside > 0 {
			row[6] = show.Cell{Text: show.Count(l.Outside), Colour: show.Amber}
		}
		t.Add(row...)
	}
	return t
}

// foremost returns the n fullest limits; if there are no more than n, all in their order.
func foremost(limits []inspect.LimitStatus, n int) []inspect.LimitStatus {
	if len(limits) <= n {
		return limits
	}
	sorted := slices.Clone(limits)
	slices.SortStableFunc(sorted, func(a, b inspect.LimitStatus) int {
		return cmp.Compare(float64(b.Used)/float64(max(b.Limit, 1)), float64(a.Used)/float64(max(a.Limit, 1)))
	})
	return sorted[:n]
}

func (m *Model) waitingRows(list []*Waiting) *show.Table {
	s := m.style
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "waiting", Least: 12}, {Head: "class"}, {Head: "resource", Least: 6, Drop: 2}, {Head: "#", Right: true, Drop: 3},
		{Head: "goes in", Right: true}, {Head: "why", Least: 12, Drop: 1}, {Head: "held by", Least: 8, Drop: 4},
	}}
	for _, w := range list {
		expected := show.Cell{Text: show.Left(w.ExpectedAt, m.now)}
		if expected.Text == "" {
			expected = show.Cell{Text: "?", Colour: show.Dim}
		}
		t.Add(
			show.Cell{Text: s.Text(w.Agent, name)}, show.Cell{Text: s.Text(w.Class, 12)}, show.Cell{Text: s.Text(w.Resource, name)},
			show.Cell{Text: fmt.Sprint(w.Position)}, expected, show.Cell{Text: s.Text(show.Waits(w.Reason, w.Limit, w.Scope), 80)},
			show.Cell{Text: s.Names(w.HeldBy, ", ", 3, name)},
		)
	}
	return t
}
