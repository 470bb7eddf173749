package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// gate is the name of Sluice's own row.
const gate = "sluice"

// simulated shows the report of a simulation.
func (s *screen) simulated(rep *sim.Report) {
	about := ""
	if rep.About != "" {
		about = ": " + rep.About
	}
	s.line("%s%s", s.Paint(show.Bold, rep.Scenario), about)
	s.line("\nLight tail (delays lognormal, median %v, sigma %.1f)", sim.LightTail.Median, sim.LightTail.Sigma)
	s.strategies(rep.Strategies)
	s.line("\nHeavy tail (median %v, sigma %.1f)", sim.HeavyTail.Median, sim.HeavyTail.Sigma)
	s.strategies(rep.HeavyTail)
	if len(rep.LeftOut) > 0 {
		s.line("\nLeft out by the scenario: %s.", strings.Join(rep.LeftOut, "; "))
	}
	s.line("\n%s", conclusion(rep.Strategies))
}

// strategies shows one row for each strategy, in full on any terminal.
func (s *screen) strategies(rows []sim.Figures) {
	t := &show.Table{Indent: "  "}
	for _, head := range []string{"strategy", "finished", "jobs", "sent", "refused", "retries", "peak/s", "quota used", "time", "ideal", "wasted", "starved"} {
		t.Columns = append(t.Columns, show.Column{Head: head, Right: head != "strategy" && head != "starved"})
	}
	gaveUp := false
	for i := range rows {
		t.Add(strategy(&rows[i])...)
		gaveUp = gaveUp || rows[i].GaveUp > 0
	}
	for _, line := range t.Lines(s.Style, 0) {
		s.line("%s", line)
	}
	if gaveUp {
		s.line("  * until it had finished or given up; not all calls were made")
	}
}

func strategy(f *sim.Figures) []show.Cell {
	name, short := show.Plain, redIf(f.Finished < f.Calls)
	if f.Name == gate {
		name = show.Green
	}
	took := span(f.Makespan)
	if f.GaveUp > 0 {
		took += "*"
	}
	return []show.Cell{
		{Text: f.Name, Colour: name},
		{Text: fmt.Sprintf("%d/%d", f.Finished, f.Calls), Colour: short},
		{Text: fmt.Sprintf("%d/%d", f.JobsFinished, f.Jobs), Colour: short},
		{Text: fmt.Sprint(f.Sent)},
		{Text: fmt.Sprint(f.Throttled), Colour: redIf(f.Throttled > 0)},
		{Text: fmt.Sprintf("%.1f%%", f.RetryShare*100)},
		{Text: fmt.Sprint(f.PeakRate)},
		{Text: fmt.Sprintf("%.1f%%", f.Utilization*100)},
		{Text: took},
		{Text: span(f.Ideal)},
		{Text: fmt.Sprintf("$%.2f", f.WastedUSD)},
		{Text: cmp.Or(strings.Join(f.Starved, " "), "none"), Colour: redIf(len(f.Starved) > 0)},
	}
}

// span formats seconds for people.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// conclusion returns the result in one line.
func conclusion(rows []sim.Figures) string {
	i := slices.IndexFunc(rows, func(f sim.Figures) bool { return f.Name == gate })
	if i < 0 {
		return ""
	}
	f := rows[i]
	line := fmt.Sprintf("sluice finished %d of %d calls in %s (ideal %s), %d refused, %.1f%% of the quota used.",
		f.Finished, f.Calls, span(f.Makespan), span(f.Ideal), f.Throttled, f.Utilization*100)
	var best *sim.Figures
	for i := range rows {
		if r := &rows[i]; r.Name != gate && r.Finished == r.Calls && (best == nil || r.Makespan < best.Makespan) {
			best = r
		}
	}
	switch {
	case best == nil && f.Finished < f.Calls:
		return line + " No strategy finished them all." + byClass(&f)
	case best == nil:
		return line + " No other strategy finished them all." + byClass(&f)
	}
	return line + fmt.Sprintf(" The fastest other that finished them all, %s, took %s and was refused %d times.",
		best.Name, span(best.Makespan), best.Throttled) + byClass(&f) + byClass(best)
}

// byClass describes how long each class took, if there are several.
func byClass(f *sim.Figures) string {
	if len(f.Classes) < 2 {
		return ""
	}
	var times []string
	for _, c := range f.Classes {
		times = append(times, c.Name+" "+span(c.Makespan))
	}
	return fmt.Sprintf("\n%s by class: %s.", f.Name, strings.Join(times, ", "))
}
