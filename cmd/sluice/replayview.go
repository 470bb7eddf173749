package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

var formatNames = map[string]string{replay.Events: "event log", replay.Access: "access log", replay.LiteLLM: "LiteLLM spend log"}

// replay shows a log, and what the gate would have made of it.
func (s *screen) replay(r *replay.Report, plot bool) {
	s.line("%s: %s, %s", s.Paint(show.Bold, s.Text(r.File, 0)), formatNames[r.Format], period(r.From, r.To))
	for _, line := range s.replayNotes(r) {
		s.line("%s", line)
	}
	s.line("")
	s.table(replayTable(r))
	if plot {
		s.line("")
		s.replayPlot(r)
	}
	s.line("\nAssumptions")
	for _, a := range r.Assumptions {
		s.line("  %s", a)
	}
}

// period formats a time span in UTC. It repeats the date if the span ends on another day.
func period(from, to time.Time) string {
	layout := time.TimeOnly
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		layout = time.DateTime
	}
	return from.Format(time.DateTime) + " to " + to.Format(layout) + " UTC"
}

// some formats an exact number. A replay compares numbers, so it rounds none.
func some(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// replayNotes describes what was read, and what it was replayed against.
func (s *screen) replayNotes(r *replay.Report) []string {
	notes := []string{fmt.Sprintf("%s by %s: %s, %d of them again after a refusal",
		some(r.Log.Calls, "call", "calls"), some(r.Callers, "caller", "callers"), some(r.Log.Sent, "request", "requests"), r.Log.Sent-r.Log.Calls)}
	if r.Resource != "" {
		notes[0] = s.Text(r.Resource, nameWidth) + ": " + notes[0]
	}
	if len(r.Others) > 0 {
		notes = append(notes, "Not replayed: "+s.Names(r.Others, ", ", 20, nameWidth)+" (--resource)")
	}
	var left []string
	if r.Skipped > 0 {
		left = append(left, some(r.Skipped, "line that is not a request", "lines that are not requests"))
	}
	if r.Cached > 0 {
		left = append(left, some(r.Cached, "response from a cache", "responses from a cache"))
	}
	if len(left) > 0 {
		notes = append(notes, "Left out: "+strings.Join(left, ", "))
	}
	if len(r.Ignored) > 0 {
		notes = append(notes, s.Paint(show.Amber, ignoredText(r)))
	}
	var limits []string
	for _, l := range r.Limits {
		limits = append(limits, s.limitText(&l))
	}
	from := ""
	if r.LimitsFrom == "log" {
		from = ", which explain the log's refusals best"
	}
	notes = append(notes, "Limits: "+strings.Join(limits, "; ")+from)
	e := &r.Explained
	told := fmt.Sprintf("They agree with the log on %s of the requests: %d refused in the log, %d by the limits", show.Percent(e.Agree), e.Log, e.Model)
	if !e.Reliable {
		if e.Log > 0 {
			told += fmt.Sprintf(", %d by both", e.Both)
		}
		told = s.Paint(show.Amber, told+". The limits are not the provider's, or others use the same key: take the figures below with care")
	}
	return append(notes, told)
}

// ignoredText tells which values of the log were not used.
func ignoredText(r *replay.Report) string {
	var fields []string
	for _, f := range r.Ignored {
		fields = append(fields, fmt.Sprintf("%s of %s (first at line %d)", some(f.Values, "value", "values"), f.Field, f.Line))
	}
	return "Ignored, because negative, too large or not readable: " + strings.Join(fields, ", ")
}

func (s *screen) limitText(l *replay.Limit) string {
	text := s.Text(l.Name, nameWidth) + " " + l.Size
	if l.Kind == "concurrency" {
		return text + " at once"
	}
	if text += " (" + l.Kind; l.Burst > 0 {
		text += fmt.Sprintf(" of %d", l.Burst)
	}
	if l.PerModel {
		text += ", per model"
	}
	return text + ")"
}

// replayTable compares the log with the gate.
func replayTable(r *replay.Report) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{{}, {Head: "in the log", Right: true}, {Head: "with the gate", Right: true}}}
	row := func(what string, cell func(f *replay.Figures) show.Cell) {
		t.Add(show.Cell{Text: what}, cell(&r.Log), cell(&r.Gate))
	}
	row("calls finished", func(f *replay.Figures) show.Cell {
		return show.Cell{Text: fmt.Sprintf("%d/%d", f.Finished, f.Calls), Colour: redIf(f.Finished < f.Calls)}
	})
	row("requests sent", func(f *replay.Figures) show.Cell { return show.Cell{Text: fmt.Sprint(f.Sent)} })
	row("refused (429)", func(f *replay.Figures) show.Cell {
		c := show.Cell{Text: fmt.Sprint(f.Throttled), Colour: show.Green}
		if f.Throttled > 0 {
			c.Colour = show.Amber
		}
		return c
	})
	row("retries, of all requests", func(f *replay.Figures) show.Cell { return show.Cell{Text: show.Percent(f.RetryShare)} })
	if r.Log.Failed > 0 {
		row("failed for another reason", func(f *replay.Figures) show.Cell { return show.Cell{Text: fmt.Sprint(f.Failed)} })
	}
	row("peak rate, in any second", func(f *replay.Figures) show.Cell { return show.Cell{Text: fmt.Sprintf("%d/s", f.PeakRate)} })
	row("duration", func(f *replay.Figures) show.Cell { return show.Cell{Text: span(f.DurationS)} })
	for i, c := range r.Log.Classes {
		if len(r.Gate.Classes) != len(r.Log.Classes) {
			break
		}
		row(c.Name+" waits, mean", func(f *replay.Figures) show.Cell { return show.Cell{Text: span(f.Classes[i].MeanS)} })
		row(c.Name+" waits, 95% within", func(f *replay.Figures) show.Cell { return show.Cell{Text: span(f.Classes[i].P95S)} })
	}
	if r.Log.USD > 0 {
		row("cost of answers", func(f *replay.Figures) show.Cell { return show.Cell{Text: fmt.Sprintf("$%.2f", f.USD)} })
		row("price of refused requests", func(f *replay.Figures) show.Cell { return show.Cell{Text: fmt.Sprintf("$%.2f", f.WastedUSD)} })
	}
	return t
}

// replayPlot draws both over the same time.
func (s *screen) replayPlot(r *replay.Report) {
	width := 60
	if s.width > 0 {
		width = min(max(s.width-26, 10), 120)
	}
	whole := time.Duration(max(r.Log.DurationS, r.Gate.DurationS, 1) * float64(time.Second))
	for _, one := range []struct {
		name   string
		of     *sim.Counts
		colour show.Colour
	}{
		{"accepted, in the log", &r.Log.Accepted, show.Plain}, {"refused, in the log", &r.Log.Refused, show.Amber},
		{"accepted, with the gate", &r.Gate.Accepted, show.Plain}, {"refused, with the gate", &r.Gate.Refused, show.Amber},
	} {
		values, most := columns(one.of, whole, width)
		line := strings.Repeat(" ", width)
		if most > 0 {
			line = s.Spark(values, width)
		}
		s.line("  %-24s%s  %s", one.name, s.Paint(one.colour, line), fmt.Sprint(int64(most)))
	}
	s.line("  %-24s%-*s%s", "", width-len(span(whole.Seconds())), "0s", span(whole.Seconds()))
	s.line("  A column is %s. The number is the highest column of its line.", span((whole / time.Duration(width)).Seconds()))
}

// columns sums counts into width columns of a picture. It calculates in milliseconds, because centuries of nanoseconds
// times the width exceed 64 bits.
func columns(c *sim.Counts, whole time.Duration, width int) (values []float64, most float64) {
	values = make([]float64, width)
	for i, n := range c.N {
		at := min(int(int64(i)*c.Every.Milliseconds()*int64(width)/whole.Milliseconds()), width-1)
		values[at] += float64(n)
		most = max(most, values[at])
	}
	return values, most
}
