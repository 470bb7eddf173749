package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

const (
	nameWidth = 40 // cells of a name, at most
	textWidth = 120

	reasonWidth = 240
	adviceWidth = 500
	barWidth    = 16
	maxScopes   = 8  // listed meters of one limit
	fewAgents   = 20 // listed by status
	chainNames  = 6
	fewNames    = 3 // of a model
)

// status shows the state of all resources and agents.
func (s *screen) status(st *inspect.Status, classes []string) {
	s.line("store %s", s.Text(st.Store, textWidth))
	var idle []string
	for i := range st.Resources {
		r := &st.Resources[i]
		if isIdle(r) {
			idle = append(idle, r.Name)
			continue
		}
		s.line("")
		s.resource(r, classes)
	}
	if len(idle) > 0 {
		s.line("\nidle: %s", s.Names(idle, ", ", 20, nameWidth))
	}
	if len(st.Agents) > 0 {
		s.line("\n%s", s.Paint(show.Bold, "agents"))
		s.table(s.agents(st.Agents[:min(len(st.Agents), fewAgents)]))
		if more := len(st.Agents) - fewAgents; more > 0 {
			s.line("  and %d more: sluice agents lists them all", more)
		}
	}
	s.cycles(st.Cycles)
	s.budgets(st.Budgets)
	if len(idle) == len(st.Resources) && len(st.Agents) == 0 {
		s.nothing(st)
	}
}

// nothing shows how to begin, if nothing has happened yet.
func (s *screen) nothing(st *inspect.Status) {
	s.line("\nNothing has passed this gate yet. To begin:")
	example := "github"
	if there := slices.ContainsFunc(st.Resources, func(r inspect.ResourceStatus) bool { return r.Name == example }); !there && len(st.Resources) > 0 {
		example = st.Resources[0].Name
	}
	t := &show.Table{Indent: "  ", Columns: make([]show.Column, 2)}
	t.Add(show.Cell{Text: "sluice run -- COMMAND"}, show.Cell{Text: "runs a command when it is its turn", Colour: show.Dim})
	t.Add(show.Cell{Text: "sluice acquire " + s.Text(example, nameWidth)}, show.Cell{Text: "waits for one request's turn", Colour: show.Dim})
	t.Add(show.Cell{Text: "sluice config init FILE"}, show.Cell{Text: "starts a configuration with resources of your own", Colour: show.Dim})
	for _, line := range t.Lines(s.Style, s.width)[1:] { // it needs no head
		s.line("%s", line)
	}
}

// isIdle reports whether there is nothing to show of a resource.
func isIdle(r *inspect.ResourceStatus) bool {
	if slices.ContainsFunc(r.Limits, func(l inspect.LimitStatus) bool { return l.Used > 0 }) {
		return false
	}
	return r.State == inspect.StateIdle && r.Sent == 0 && len(r.PastHosts) == 0 && r.InFlight == 0 && r.AllWaiting() == 0 && !slices.ContainsFunc(r.Gates, holds) && r.Last429 == nil && r.PausedUntil == nil &&
		r.Outage == nil && r.SilentMembers == 0
}

// holds reports whether a pause status has a cause. An unused resource also begins with a ramp, which does not count.
func holds(g inspect.PauseStatus) bool { return g.Phase != "ramping" }

func (s *screen) resource(r *inspect.ResourceStatus, classes []string) {
	head := s.Paint(show.Bold, s.Text(r.Name, nameWidth))
	head += "  " + s.Paint(show.Resource(r.State), r.State)
	if r.Outage == nil && r.LightBinds && r.Light != "green" {
		head += "  " + s.Paint(show.Amber, "light "+r.Light)
	}
	if r.Key != "" {
		head += "  key " + s.Text(r.Key, 12)
	}
	if r.Mode == "observe" {
		head += "  " + s.Paint(show.Cyan, "observed: counted, never held")
	}
	if !r.Configured {
		head += "  " + s.Paint(show.Dim, "not in this configuration")
	}
	s.line("%s", head)
	if r.Outage != nil { // nothing else is known
		if r.State == inspect.StateFailing {
			s.reason(r)
		}
		s.line("  %s", s.outage(r.Outage))
		return
	}
	if r.State != inspect.StatePaused || r.BillingStop { // otherwise its pauses follow
		s.reason(r)
	}
	for _, g := range r.Gates {
		s.line("  %s", s.pause(&g))
	}
	s.line("  %s", strings.Join(s.facts(r, classes), ", "))
	if len(r.PastHosts) > 0 {
		s.line("  %s", s.Paint(show.Amber, "past the gate: "+pastText(r.PastHosts)+" in 1h"))
	}
	if silence := s.silence(r); silence != "" {
		s.line("  %s", silence)
	}
	if r.Advice != nil {
		s.line("  %s", s.Paint(show.Amber, "advice: "+s.Text(r.Advice.Text, adviceWidth)))
	}
	s.models(r.Models)
	if len(r.Limits) == 0 {
		s.line("  no limit is known yet: none is configured, and no answer has stated one")
		return
	}
	defer s.calmLights(r.Limits)
	plan := planOf(r.Limits)
	for i := range plan {
		s.line("  %s", s.window(&plan[i]))
	}
	if len(plan) == len(r.Limits) {
		return
	}
	s.table(s.limits(otherLimits(r.Limits)))
	hidden := hiddenScopes(otherLimits(r.Limits))
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		s.line("  and %d more of the limit %s: sluice status --json lists them", hidden[name], s.Text(name, nameWidth))
	}
}

// calmLights says why lights are calmer than their percentages suggest.
func (s *screen) calmLights(all []inspect.LimitStatus) {
	for _, l := range all {
		if l.LightReason != "" {
			s.line("  %s", s.Paint(show.Dim, s.Text("light on "+l.Name+": "+l.LightReason, reasonWidth)))
		}
	}
}

// reason shows why a resource is in an unusual state, and until when. A calm one has a reason with an end if a limit is
// used up.
func (s *screen) reason(r *inspect.ResourceStatus) {
	if calm := r.State == inspect.StateFlowing || r.State == inspect.StateIdle; !calm {
		s.line("  %s", s.Paint(show.Resource(r.State), s.because(r)))
	} else if r.UsedUp {
		s.line("  %s", s.Paint(show.Amber, s.because(r)))
	}
}

// because returns the reason of a state, and when it is expected to end.
func (s *screen) because(r *inspect.ResourceStatus) string {
	text := s.Text(r.Reason, reasonWidth)
	if r.Until == nil || !r.Until.After(s.now) {
		return text
	}
	return text + ", until " + show.Clock(*r.Until, s.now)
}

// models shows each model, the name that a client last used for it, and how many requests wait for it.
func (s *screen) models(all []inspect.ModelStatus) {
	var shown []string
	for _, m := range all {
		text := s.named(m.Model, m.Requested)
		if m.Waiting > 0 {
			text += fmt.Sprintf(" %d waiting", m.Waiting)
		}
		shown = append(shown, text)
	}
	s.listModels(shown, "sluice status --json lists them")
}

// named returns a model with the names that clients used for it.
func (s *screen) named(model string, requested ...string) string {
	text := s.Text(model, nameWidth)
	if names := s.Names(requested, ", ", fewNames, nameWidth); names != "" {
		text += " (" + names + ")"
	}
	return text
}

// listModels lists models in one line; if there are many, only the first ones.
func (s *screen) listModels(all []string, more string) {
	if len(all) == 0 {
		return
	}
	text := "  models: " + strings.Join(all[:min(len(all), maxScopes)], ", ")
	if n := len(all) - maxScopes; n > 0 {
		text += fmt.Sprintf(", and %d more: %s", n, more)
	}
	s.line("%s", text)
}

// facts describes a resource's figures in words.
func (s *screen) facts(r *inspect.ResourceStatus, classes []string) []string {
	waiting := fmt.Sprintf("%d waiting", r.AllWaiting())
	if by := byClassNames(r.Waiting, classes); by != "" {
		waiting += " (" + s.Text(by, textWidth) + ")"
	}
	sent := " sent"
	if r.State == inspect.StateFailing { // requests that did not reach the provider are not charged, and do not count as sent
		sent = " reached the provider"
	}
	facts := []string{waiting, fmt.Sprintf("%d in flight", r.InFlight), show.Count(r.Sent) + sent}
	refused := show.Count(r.Throttled) + " refused"
	if r.Last429 != nil {
		refused += " (last " + show.Ago(*r.Last429, s.now) + ")"
	}
	if r.Throttled > 0 || r.Last429 != nil {
		refused = s.Paint(show.Amber, refused)
	}
	facts = append(facts, refused)
	if n := s.turnedAway[r.Name]; n > 0 {
		facts = append(facts, s.Paint(show.Amber, fmt.Sprintf("%d turned away by the gate in 1h", n)))
	}
	if r.Retried > 0 {
		facts = append(facts, show.Count(r.Retried)+" retried")
	}
	return facts
}

// byClassNames lists how many requests of each class wait, highest class first, without empty classes.
func byClassNames(waiting map[string]int, classes []string) string {
	var parts []string
	known := len(classes)
	for class := range waiting { // another configuration may have other classes
		if !slices.Contains(classes, class) {
			classes = append(slices.Clip(classes), class)
		}
	}
	slices.Sort(classes[known:])
	for _, class := range classes {
		if n := waiting[class]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", class, n))
		}
	}
	return strings.Join(parts, ", ")
}

// pause describes a pause of a resource, or of a part of it.
func (s *screen) pause(g *inspect.PauseStatus) string {
	text := g.Phase
	switch {
	case g.Phase == "paused" && g.Until != nil:
		text = "paused, " + show.For(g.Until, s.now) + " left"
	case g.Phase == "probing":
		text = "probing: one request finds out whether the pause is over"
	case g.Phase == "ramping":
		text = "ramping up"
	}
	if g.Scope != "" {
		text = s.Text(g.Scope, nameWidth) + " " + text
	}
	if g.Cause != "" && g.Phase == "paused" {
		text += ": " + s.Text(g.Cause, textWidth)
	}
	if g.ProbeAt != nil {
		text += "; one request tries again " + show.In(g.ProbeAt, s.now)
	}
	if n := g.Consecutive429; n > 1 {
		text += fmt.Sprintf(" (%d refusals in a row)", n)
	}
	return s.Paint(show.Amber, text)
}

func (s *screen) limits(all []inspect.LimitStatus) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "limit", Least: 6}, {Head: "for", Least: 8}, {Head: "kind", Drop: 4}, {Head: "unit", Drop: 3, Least: 6},
		{Head: "", Drop: 2}, {Head: "used", Right: true}, {Head: "of", Right: true}, {Head: "others", Right: true, Drop: 5},
		{Head: "resets", Right: true}, {Head: "", Drop: 1},
	}}
	for _, l := range listedScopes(all) {
		row := []show.Cell{
			{Text: s.Text(l.Name, nameWidth)}, {Text: s.Text(l.Scope, nameWidth)}, {Text: l.Kind, Colour: show.Dim}, {Text: s.Text(l.Unit, nameWidth)},
			{}, {Text: show.Count(l.Used)}, {Text: "?", Colour: show.Dim}, {}, {}, {},
		}
		if l.Limit > 0 {
			part := float64(l.Used) / float64(l.Limit)
			row[4] = show.Cell{Text: s.Bar(part, barWidth), Colour: show.Fullness(part)}
			row[6] = show.Cell{Text: show.Count(l.Limit)}
		}
		if l.Outside > 0 {
			row[7] = show.Cell{Text: show.Count(l.Outside), Colour: show.Amber}
		}
		row[8].Text = show.Left(l.ResetAt, s.now)
		row[9] = s.remark(&l)
		t.Add(row...)
	}
	return t
}

// remark describes what is special about a limit.
func (s *screen) remark(l *inspect.LimitStatus) show.Cell {
	switch {
	case l.Limit == 0:
		return show.Cell{Text: "size not known yet", Colour: show.Dim}
	case l.Remaining <= 0 && (l.Binds || l.ResetAt != nil): // whatever its light
		return show.Cell{Text: "nothing left", Colour: show.Amber}
	case l.Breaker != "" && l.GoneAt != nil:
		return show.Cell{Text: fmt.Sprintf("gone %s, %s", show.In(l.GoneAt, s.now), l.Breaker), Colour: show.Amber}
	case l.DiffersFrom != "":
		return show.Cell{Text: s.Text(l.DiffersFrom, nameWidth) + " states this size, not this configuration", Colour: show.Amber}
	case !l.Binds:
	case l.Light == "amber":
		return show.Cell{Text: "for the highest class only", Colour: show.Amber}
	case l.Light == "red":
		return show.Cell{Text: "for emergencies only", Colour: show.Amber}
	}
	return show.Cell{}
}

// listedScopes keeps only the fullest meters of limits that have many.
func listedScopes(all []inspect.LimitStatus) []inspect.LimitStatus {
	var list []inspect.LimitStatus
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].Name == all[i].Name {
			j++
		}
		same := slices.Clone(all[i:j])
		if len(same) > maxScopes {
			slices.SortStableFunc(same, func(a, b inspect.LimitStatus) int { return cmp.Compare(fullness(&b), fullness(&a)) })
			same = same[:maxScopes]
		}
		list, i = append(list, same...), j
	}
	return list
}

func fullness(l *inspect.LimitStatus) float64 { return float64(l.Used) / float64(max(l.Limit, 1)) }

// hiddenScopes counts the meters that listedScopes leaves out, by limit.
func hiddenScopes(all []inspect.LimitStatus) map[string]int {
	hidden := map[string]int{}
	for _, l := range all {
		hidden[l.Name]++
	}
	for name, n := range hidden {
		if hidden[name] = n - maxScopes; n <= maxScopes {
			delete(hidden, name)
		}
	}
	return hidden
}

// agents returns a table of agents.
func (s *screen) agents(list []inspect.AgentStatus) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "agent", Least: 10}, {Head: "class"}, {Head: "state"}, {Head: "uses", Right: true, Drop: 2}, {Head: "of", Right: true, Drop: 3},
		{Head: "", Least: 8, Drop: 4}, {Head: "lease", Right: true, Drop: 1}, {Head: "held for", Right: true, Drop: 8}, {Head: "user", Least: 6, Drop: 6},
		{Head: "machine", Least: 6, Drop: 7}, {Head: "waits for", Least: 12, Drop: 5},
	}}
	for i := range list {
		a := &list[i]
		row := []show.Cell{
			{Text: s.Text(a.Name, nameWidth)}, {Text: s.Text(a.Class, 12)}, {Text: a.State, Colour: show.OfState(a.State)}, {}, {}, {},
			show.Lease(a.Leased, a.LeaseExpiresAt, s.now), s.heldFor(a.Leased, a.LeaseStartedAt), {Text: s.Text(a.User, nameWidth)},
			{Text: s.Text(a.Machine, nameWidth)}, {},
		}
		if a.Resource != "" {
			row[3].Text, row[5].Text = show.Count(a.Used), s.Text(a.Resource, nameWidth)
			if row[4].Text = "?"; a.Allocated >= 0 {
				row[4].Text = show.Count(a.Allocated)
			}
		}
		switch {
		case len(a.PauseChain) > 0:
			row[10] = show.Cell{Text: s.Names(a.PauseChain, " > ", chainNames, nameWidth), Colour: show.Amber}
		case len(a.WaitsFor) > 0:
			row[10] = show.Cell{Text: s.Names(a.WaitsFor, ", ", chainNames, nameWidth), Colour: show.Dim}
		}
		t.Add(row...)
	}
	return t
}

// heldFor shows how long a lease has been held; empty for an agent that only asks and has none.
func (s *screen) heldFor(leased bool, since *time.Time) show.Cell {
	if !leased || since == nil {
		return show.Cell{}
	}
	return show.Cell{Text: show.Span(max(s.now.Sub(*since), 0).Truncate(time.Second)), Colour: show.Dim}
}

func (s *screen) cycles(cycles [][]string) {
	for _, c := range cycles {
		if len(c) > 0 {
			circle := append(slices.Clone(c[:min(len(c), chainNames)]), c[0])
			s.line("%s", s.Paint(show.Amber, "agents wait for each other in a circle: "+s.Names(circle, " > ", chainNames+1, nameWidth)))
		}
	}
}
