package main

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/show"
)

// Layout of a plot, in pixels.
const (
	plotLeft   = 56
	plotWidth  = 880
	plotUp     = 120 // height of the bars for sends
	plotDown   = 40  // height of the bars for refusals
	plotBottom = 26  // for the times
)

// pageAxis is the time axis that all plots of a page share.
type pageAxis struct {
	start time.Time
	step  time.Duration
	bars  int
}

// pagePlot shows what was sent and refused over time.
type pagePlot struct {
	About         string
	Caption       string // what the bars up and down mean
	Width, Height int
	Zero, Left    int // positions of the axes
	Right         int
	Most, Worst   string // labels of the highest bars, up and down
	WorstY        int
	Bars          []pageBar
	Times         []pageTime
}

// pageBar is one bar with its title.
type pageBar struct {
	X, Y, W, H string
	Class      string
	Title      string
}

type pageTime struct {
	X      string
	Y      int
	Anchor string
	Text   string
}

// axisOf returns an axis over all minutes with any traffic. A bar stands for whole minutes, so that there are not too
// many bars.
func axisOf(resources []*resourceReportJSON) *pageAxis {
	var first, last time.Time
	see := func(minutes map[time.Time]int64) {
		for at := range minutes {
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
	}
	for _, r := range resources {
		see(r.Total.Minutes)
		see(r.throttled)
	}
	if first.IsZero() {
		return nil
	}
	a := &pageAxis{step: stepFor(last.Sub(first), time.Minute, 1, 2, 5, 10, 15, 30, 60, 2*60, 6*60, 12*60, 24*60)}
	a.start = first.UTC().Truncate(a.step)
	a.bars = max(int(last.Sub(a.start)/a.step)+1, 12) // a single minute must not fill the whole width
	return a
}

// stepFor returns the shortest of these multiples of a unit of which not too many bars fill the whole time.
func stepFor(whole, unit time.Duration, multiples ...time.Duration) (step time.Duration) {
	for _, n := range multiples {
		if step = n * unit; whole/step < pageBars-1 {
			return step
		}
	}
	for whole/step >= pageBars-1 { // years
		step *= 2
	}
	return step
}

// plot draws one resource on the axis, or returns nil if there is nothing to draw.
func (a *pageAxis) plot(sent, refused map[time.Time]int64) *pagePlot {
	if a == nil || len(sent)+len(refused) == 0 {
		return nil
	}
	up, down := a.sums(sent), a.sums(refused)
	most, worst, all, bad := int64(1), int64(1), int64(0), int64(0)
	for i := range up {
		most, worst = max(most, up[i]), max(worst, down[i])
		all, bad = all+up[i], bad+down[i]
	}
	p := &pagePlot{
		Width: plotLeft + plotWidth + 8, Height: plotUp + plotDown + plotBottom + 12, Zero: plotUp + 12, Left: plotLeft, Right: plotLeft + plotWidth,
		Caption: "Up: sent. Down: refused with 429, as the event log has them.", Most: show.Count(most), WorstY: plotUp + 12 + plotDown,
		About: fmt.Sprintf("%s requests sent and %s refused, in steps of %s", show.Count(all), show.Count(bad), stepText(a.step)),
	}
	if bad > 0 {
		p.Worst = show.Count(worst)
	}
	width := float64(plotWidth) / float64(a.bars)
	bar := func(i int, class string, y, height float64, what string, n int64) {
		p.Bars = append(p.Bars, pageBar{
			X: pixels(plotLeft + float64(i)*width), Y: pixels(y), W: pixels(max(width-min(1, width/4), 0.5)), H: pixels(height), Class: class,
			Title: fmt.Sprintf("%s, %s: %d %s", a.label(i), stepText(a.step), n, what),
		})
	}
	for i := range up {
		if n := up[i]; n > 0 {
			h := max(float64(n)/float64(most)*plotUp, 1)
			bar(i, "sent", float64(p.Zero)-h, h, "sent", n)
		}
		if n := down[i]; n > 0 {
			bar(i, "refused", float64(p.Zero)+1, max(float64(n)/float64(worst)*plotDown, 2), "refused (429)", n)
		}
	}
	for _, at := range []struct {
		bar    int
		anchor string
	}{{0, "start"}, {a.bars / 2, "middle"}, {a.bars, "end"}} {
		p.Times = append(p.Times, pageTime{X: pixels(plotLeft + float64(at.bar)*width), Y: p.Height - 8, Anchor: at.anchor, Text: a.label(at.bar)})
	}
	return p
}

// label returns the time at which a bar begins.
func (a *pageAxis) label(bar int) string {
	if a.step < time.Minute {
		return a.at(bar).UTC().Format("15:04:05 UTC")
	}
	return moment(a.at(bar))
}

func (a *pageAxis) at(bar int) time.Time { return a.start.Add(time.Duration(bar) * a.step) }

func (a *pageAxis) sums(minutes map[time.Time]int64) []int64 {
	sums := make([]int64, a.bars)
	for at, n := range minutes {
		if i := int(at.Sub(a.start) / a.step); i >= 0 && i < a.bars {
			sums[i] += n
		}
	}
	return sums
}

func stepText(step time.Duration) string {
	switch {
	case step < time.Minute:
		return fmt.Sprintf("%d s", step/time.Second)
	case step < time.Hour:
		return fmt.Sprintf("%d min", step/time.Minute)
	case step < 24*time.Hour:
		return fmt.Sprintf("%d h", step/time.Hour)
	}
	return fmt.Sprintf("%d d", step/(24*time.Hour))
}

func pixels(x float64) string { return fmt.Sprintf("%.1f", x) }
