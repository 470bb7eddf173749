package main

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// replayPage returns a replay as a page for a browser.
func replayPage(r *replay.Report) *page {
	s := &screen{now: r.To}
	p := &page{
		Title: "Sluice replay", Since: r.From.Format("2006-01-02 15:04:05 UTC"), Until: r.To.Format("2006-01-02 15:04:05 UTC"),
		Lead: "The same requests in the log, and with the gate in virtual time.",
		Foot: append(s.replayNotes(r), r.Assumptions...),
		Figures: []pageFigure{
			{Name: "refused (429) in the log", Value: fmt.Sprint(r.Log.Throttled), Note: fmt.Sprintf("of %d requests", r.Log.Sent), Bad: r.Log.Throttled > 0},
			{Name: "refused (429) with the gate", Value: fmt.Sprint(r.Gate.Throttled), Note: fmt.Sprintf("of %d requests", r.Gate.Sent), Bad: r.Gate.Throttled > 0},
			{Name: "duration in the log", Value: span(r.Log.DurationS), Note: fmt.Sprintf("%d of %d calls finished", r.Log.Finished, r.Log.Calls)},
			{Name: "duration with the gate", Value: span(r.Gate.DurationS), Note: fmt.Sprintf("%d of %d calls finished; at best %s", r.Gate.Finished, r.Gate.Calls, span(r.IdealS))},
		},
		Against: []pageComparison{{Name: "The log and the gate", Figures: asPageTable(replayTable(r))}},
	}
	axis := replayAxis(r)
	callers := &show.Table{Columns: []show.Column{
		{Head: "caller"}, {Head: "class"}, {Head: "calls", Right: true}, {Head: "sent", Right: true}, {Head: "429s", Right: true}, {Head: "gave up", Right: true}, {Head: "at once", Right: true},
	}}
	for _, c := range r.ByCaller[:min(len(r.ByCaller), manyCallers)] {
		callers.Add(show.Cell{Text: s.Text(c.Name, nameWidth)}, show.Cell{Text: s.Text(c.Class, nameWidth)}, show.Cell{Text: fmt.Sprint(c.Calls)},
			show.Cell{Text: fmt.Sprint(c.Sent)}, show.Cell{Text: fmt.Sprint(c.Throttled)}, show.Cell{Text: fmt.Sprint(c.GaveUp)}, show.Cell{Text: fmt.Sprint(c.AtOnce)})
	}
	for _, one := range []struct {
		name    string
		figures *replay.Figures
		callers *show.Table
	}{{"In the log", &r.Log, callers}, {"With the gate", &r.Gate, &show.Table{}}} {
		plot := axis.plot(moments(r.From, &one.figures.Accepted), moments(r.From, &one.figures.Refused))
		if plot != nil {
			plot.Caption = "Up: accepted. Down: refused with 429."
		}
		p.Resources = append(p.Resources, pageResource{Name: one.name, Plot: plot, Callers: asPageTable(one.callers)})
	}
	return p
}

// replayAxis returns an axis as long as the longer of the two runs.
func replayAxis(r *replay.Report) *pageAxis {
	whole := time.Duration(max(r.Log.DurationS, r.Gate.DurationS) * float64(time.Second))
	step := stepFor(whole, time.Second, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)
	return &pageAxis{start: r.From, step: step, bars: max(int(whole/step)+1, 12)}
}

// moments returns counts by the time at which each interval begins.
func moments(start time.Time, c *sim.Counts) map[time.Time]int64 {
	all := map[time.Time]int64{}
	for i, n := range c.N {
		if n > 0 {
			all[start.Add(time.Duration(i)*c.Every)] += int64(n)
		}
	}
	return all
}
