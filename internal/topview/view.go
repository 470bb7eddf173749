package topview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// View draws everything.
func (m Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen = true
	v.WindowTitle = "sluice top"
	return v
}

const (
	fewRows    = 12 // with fewer lines one list is shown at a time
	maxDetails = 6  // limits of the selected resource
	fewCauses  = 2  // of its pauses
)

// Frame returns the screen as text, with exactly as many lines as it is high.
func (m Model) Frame() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	lines := []string{m.header()}
	if trouble := m.trouble(); trouble != "" {
		lines = append(lines, trouble)
	}
	if round := m.circle(); round != "" {
		lines = append(lines, round)
	}
	room := m.height - len(lines) - 1
	switch {
	case m.help:
		lines = append(lines, m.helpLines()...)
	case m.at.IsZero():
	default:
		lines = append(lines, m.body(room)...)
	}
	lines = lines[:min(len(lines), max(m.height-1, 0))]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.footer())
	for i := range lines {
		if show.Width(lines[i]) > m.width {
			lines[i] = m.style.Fit(lines[i], m.width)
		}
	}
	return strings.Join(lines[len(lines)-min(len(lines), m.height):], "\n")
}

// header shows the store, the counts and the time.
func (m *Model) header() string {
	s := m.style
	st := &m.data.Status
	left := s.Paint(show.Bold, "sluice")
	counts := fmt.Sprintf("%s  %s  %d waiting", counted(len(st.Resources), "resource"), counted(len(st.Agents), "agent"), queued(st))
	clock := m.now.Format("15:04:05")
	if m.at.IsZero() {
		counts = "reading the store"
	}
	room := m.width - show.Width(left) - show.Width(counts) - show.Width(clock) - 6
	if room >= 8 && st.Store != "" {
		left += "  " + s.Paint(show.Dim, s.Text(st.Store, room))
	}
	left += "  " + counts
	if gap := m.width - show.Width(left) - show.Width(clock); gap >= 2 {
		left += strings.Repeat(" ", gap) + s.Paint(show.Dim, clock)
	}
	return left
}

// queued returns how many requests wait in all: of a long queue only the first are listed.
func queued(st *inspect.Status) (n int) {
	for i := range st.Resources {
		n += st.Resources[i].AllWaiting()
	}
	return n
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// trouble warns that the data is out of date.
func (m *Model) trouble() string {
	s := m.style
	age := ""
	if !m.at.IsZero() {
		age = ", shown is what was " + show.Ago(m.at, m.now)
	}
	switch {
	case m.err != nil:
		return s.Paint(show.Amber, s.Text("the store fails: "+m.err.Error(), max(m.width-show.Width(age), 20))+age)
	case m.reading && m.now.Sub(m.begun) >= staleFrom:
		return s.Paint(show.Amber, fmt.Sprintf("the store has not answered for %s%s", show.Span(m.now.Sub(m.begun).Truncate(time.Second)), age))
	}
	return ""
}

// circle warns that agents wait for each other, which only a person can resolve.
func (m *Model) circle() string {
	cycles := m.data.Status.Cycles
	if len(cycles) == 0 || len(cycles[0]) == 0 {
		return ""
	}
	s := m.style
	text := "agents wait for each other: " + s.Names(append(slices.Clone(cycles[0]), cycles[0][0]), " > ", chain, name)
	if len(cycles) > 1 {
		text += fmt.Sprintf(", and %s more", counted(len(cycles)-1, "circle"))
	}
	return s.Paint(show.Amber, text)
}

// body draws the lists in room lines.
func (m *Model) body(room int) []string {
	if room < fewRows {
		return m.list(m.focus, room)
	}
	heights := m.heights(room)
	var lines []string
	for p := range panes {
		if p > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, m.list(p, heights[p])...)
	}
	return lines
}

// heights divides the lines among the lists. Each gets what it wants if there is room; lists that want less leave the
// rest to others.
func (m *Model) heights(room int) (heights [panes]int) {
	room -= int(panes) - 1 // blank lines
	var want [panes]int
	for p := range panes {
		want[p] = 1 + max(len(m.keys(p)), 1) + len(m.detailsOf(p))
	}
	open := int(panes)
	for done := [panes]bool{}; open > 0; {
		share, before := room/open, open
		for p := range panes {
			if !done[p] && want[p] <= share {
				heights[p], done[p] = want[p], true
				room -= want[p]
				open--
			}
		}
		if open < before {
			continue
		}
		for p := range panes { // all remaining lists want more than there is
			if !done[p] {
				heights[p] = room / open
				room -= heights[p]
				open--
			}
		}
	}
	return heights
}

// detailsOf returns the lines about a list's selection; none if the list is not focused.
func (m *Model) detailsOf(p pane) []string {
	if p != m.focus {
		return nil
	}
	switch p {
	case resources:
		if list := m.resources(); len(list) > 0 {
			return m.details(list[m.index(p, m.keys(p))])
		}
	case agents:
		if list := m.agents(); len(list) > 0 {
			return m.agentDetails(list[m.index(p, m.keys(p))])
		}
	}
	return nil
}

// details returns the lines about the selected resource.
func (m *Model) details(r *inspect.ResourceStatus) (lines []string) {
	if o := r.Outage; o != nil {
		return []string{"    " + m.style.Paint(show.Amber, m.style.Text("the store cannot be reached: "+o.Why, max(m.width-4, 10)))}
	}
	if r.State == inspect.StateFailing || r.State == inspect.StateDegraded || r.State == inspect.StateQueueing || r.BillingStop || r.State != inspect.StatePaused && r.UsedUp {
		lines = append(lines, "    "+m.style.Paint(show.Resource(r.State), m.style.Text(r.Reason, max(m.width-4, 10))))
	}
	for _, g := range r.Gates {
		if g.Phase == "paused" && g.Cause != "" {
			lines = append(lines, "    "+m.style.Paint(show.Amber, m.style.Text(strings.TrimSpace(g.Scope+" paused: "+g.Cause), max(m.width-4, 10))))
		}
		if len(lines) == fewCauses {
			break
		}
	}
	if len(r.Limits) > 0 {
		lines = append(lines, m.limitRows(r, maxDetails).Lines(m.style, m.width)...)
	}
	return lines
}

var empty = [panes]string{"none is configured", "none is live", "none waits"}

// list draws one list with its head, in at most height lines.
func (m *Model) list(p pane, height int) []string {
	keys := m.keys(p)
	if len(keys) == 0 {
		text := empty[p]
		if m.filter != "" {
			text = "none matches the filter"
		}
		return []string{m.title(p, [...]string{"resources", "agents", "waiting"}[p]), "  " + m.style.Paint(show.Dim, text)}
	}
	details := m.detailsOf(p)
	if height < 2+len(details) {
		details = nil
	}
	visible := max(height-1-len(details), 1)
	at := m.index(p, keys)
	from := min(max(at-visible/2, 0), max(len(keys)-visible, 0))
	lines := m.rows(p, from, visible).Lines(m.style, m.width)
	lines[0] = m.title(p, lines[0])
	if i := at - from + 1; p == m.focus && i < len(lines) {
		lines[i] = m.style.Paint(show.Bold, ">") + strings.TrimPrefix(lines[i], " ")
		lines = slices.Insert(lines, i+1, details...)
	}
	return lines
}

// title marks the head of the focused list.
func (m *Model) title(p pane, head string) string {
	head = strings.TrimLeft(head, " ")
	if p != m.focus {
		return "  " + head
	}
	return m.style.Paint(show.Bold, "* ") + head
}

// footer shows the question, the filter, a note, or the keys.
func (m *Model) footer() string {
	s := m.style
	switch {
	case m.asked != nil && m.asked.resume:
		return s.Paint(show.Invert, fmt.Sprintf("resume %s now?  y yes  n no", s.Text(m.asked.resource, name)))
	case m.asked != nil:
		return s.Paint(show.Invert, fmt.Sprintf("pause %s for %s?  y yes  n no  + longer  - shorter", s.Text(m.asked.resource, name), show.Span(m.asked.length())))
	case m.typing:
		return "filter: " + s.Text(m.filter, name) + "_  enter keeps it, esc clears it"
	case m.note != "" && m.now.Before(m.noteTill):
		return s.Paint(show.Bold, s.Text(m.note, m.width))
	}
	keys := "q quit  tab list  s sort: " + orders[m.focus][m.sorts[m.focus]] + "  / filter"
	if m.filter != "" {
		keys += ": " + s.Text(m.filter, 12)
	}
	return s.Paint(show.Dim, keys+"  p pause  r resume  ? help")
}

func (m *Model) helpLines() []string {
	return []string{
		"",
		"  q, ctrl+c            quit",
		"  tab, left, right     go to another list",
		"  up, down, pgup ...   select",
		"  s                    sort the list by something else",
		"  /                    show only what has a text in its name; esc shows all",
		"  p                    pause the selected resource, or the selected row's, once confirmed",
		"  r                    end its pause, once confirmed",
		"  ?                    this page; any key leaves it",
		"",
		"  State: failing (the provider cannot be reached, answers 5xx, or rejects most",
		"  requests), degraded (the store is away), paused, queueing, flowing, idle. Only",
		"  failing is red.",
		"  Waiting: by class, highest first. Full: the limit that is used most.",
		"  Lease: how long it lasts unless it is renewed; none: it only asks.",
		"  Why: what an agent waits for, or the chain of agents that holds its new work.",
	}
}

// Once returns the whole state as plain lines, for output that is not a terminal.
func Once(data Data, style show.Style, now time.Time) string {
	m := Model{style: style, now: now, at: now, data: data, rates: map[string]series{}, focus: panes}
	lines := []string{fmt.Sprintf("sluice  %s  %s  %s  %d waiting", style.Text(data.Status.Store, 100),
		counted(len(data.Status.Resources), "resource"), counted(len(data.Status.Agents), "agent"), queued(&data.Status))}
	for p := range panes {
		lines = append(lines, "")
		if keys := m.keys(p); len(keys) == 0 {
			lines = append(lines, m.list(p, 2)...)
			continue
		}
		lines = append(lines, m.rows(p, 0, anything).Lines(style, 0)...)
	}
	return strings.Join(lines, "\n") + "\n"
}
