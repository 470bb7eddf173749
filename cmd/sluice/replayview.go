package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// agreeing is the part of the sends that the limits must explain.
const agreeing = 0.95

var formatNames = map[string]string{replay.Events: "event log", replay.Access: "access log", replay.LiteLLM: "LiteLLM spend log"}

// replay shows a log, and what the gate would have made of it.
func (s *screen) replay(r *replay.Report, plot bool) {
	s.line("%s: %s, %s to %s", s.Paint(show.Bold, s.Text(r.File, 0)), formatNames[r.Format], r.From.Format("2006-01-02 15:04:05"), r.To.Format("15:04:05 UTC"))
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

// replayNotes describes what was read, and what it was replayed against.
func (s *screen) replayNotes(r *replay.Report) []string {
	notes := []string{fmt.Sprintf("%s by %s: %s, %s of them again after a refusal",
		show.Some(int64(r.Log.Calls), "call", "calls"), show.Some(int64(r.Callers), "caller", "callers"),
		show.Some(int64(r.Log.Sent), "request", "requests"), show.Count(int64(r.Log.Sent-r.Log.Calls)))}
	if r.Resource != "" {
		notes[0] = s.Text(r.Resource, nameWidth) + ": " + notes[0]
	}
	if len(r.Others) > 0 {
		notes = append(notes, "Not replayed: "+s.Names(r.Others, ", ", 20, nameWidth)+" (--resource)")
	}
	if r.Skipped+r.Cached > 0 {
		notes = append(notes, fmt.Sprintf("Left out: %d lines that are no request, %d answers from a cache", r.Skipped, r.Cached))
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
	if e.Agree < agreeing {
		told = s.Paint(show.Amber, told+". The limits are not the provider's, or others use the same key: take the figures below with care")
	}
	return append(notes, told)
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
	row("requests sent", func(f *replay.Figures) show.Cell { return show.Cell{Text: show.Count(int64(f.Sent))} })
	row("refused (429)", func(f *replay.Figures) show.Cell {
		c := show.Cell{Text: show.Count(int64(f.Throttled)), Colour: show.Green}
		if f.Throttled > 0 {
			c.Colour = show.Amber
		}
		return c
	})
	row("retries, of all requests", func(f *replay.Figures) show.Cell { return show.Cell{Text: show.Percent(f.RetryShare)} })
	if r.Log.Failed > 0 {
		row("failed for another reason", func(f *replay.Figures) show.Cell { return show.Cell{Text: show.Count(int64(f.Failed))} })
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
		s.line("  %-24s%s  %s", one.name, s.Paint(one.colour, line), show.Count(int64(most)))
	}
	s.line("  %-24s%-*s%s", "", width-len(span(whole.Seconds())), "0s", span(whole.Seconds()))
	s.line("  A column is %s. The number is the highest column of its line.", span((whole / time.Duration(width)).Seconds()))
}

// columns sums counts into width columns of a picture.
func columns(c *sim.Counts, whole time.Duration, width int) (values []float64, most float64) {
	values = make([]float64, width)
	for i, n := range c.N {
		at := min(int(int64(i)*int64(c.Every)*int64(width)/int64(whole)), width-1)
		values[at] += float64(n)
		most = max(most, values[at])
	}
	return values, most
}
