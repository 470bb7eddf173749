package plot

import (
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// header draws the title, the description of the scenario, and the legend.
func (p *picture) header() {
	p.y = 38
	p.out.text("title", margin, p.y, p.sc.Name)
	for _, line := range wrapped(p.sc.About, 160) {
		p.y += 20
		p.out.text("about", margin, p.y, line)
	}
	p.y += 20
	p.out.text("about", margin, p.y, "Requests at the provider, one bar is "+span(p.scale.bin)+p.where)
	p.y += 26
	p.legend()
	p.y += 34
}

// legend explains the marks, from left to right and, if necessary, in a second line.
func (p *picture) legend() {
	x := float64(margin)
	entry := func(mark func(x, y float64), text string) {
		wide := 22 + 6.4*float64(len([]rune(text)))
		if x > margin && x+wide > width-margin {
			x = margin
			p.y += 20
		}
		mark(x, p.y)
		p.out.text("small", x+22, p.y, text)
		x += wide + 18
	}
	per := unit(p.scale.per)
	entry(func(x, y float64) { p.out.rect("accepted", x, y-9, 16, 9) }, "accepted a "+per+", upward")
	entry(func(x, y float64) { p.out.rect("refused", x, y-9, 16, 9) }, "refused a "+per+", downward")
	if i := p.scale.limit; i >= 0 {
		l := &p.sc.Limits[i]
		text := "limit: " + published(l)
		if l.Window != p.scale.per || math.Abs(p.scale.line-float64(l.Size)) > 0.5 {
			text += ", about " + amount(p.scale.line) + " calls a " + per
		}
		entry(func(x, y float64) { p.out.line("limit", x, y-4, x+16, y-4) }, text)
	}
	if i := p.scale.gauge; i >= 0 {
		entry(func(x, y float64) { p.out.line("left", x, y-4, x+16, y-4) }, "left of "+published(&p.sc.Limits[i]))
	}
	entry(func(x, y float64) { p.out.path("done", triangle(x+8, y-1)) }, "done")
	entry(func(x, y float64) { p.out.path("gave-up", triangle(x+8, y-1)) }, "done, calls given up")
}

// triangle returns the path of a triangle that points down at a position.
func triangle(x, y float64) string {
	return fmt.Sprintf("M%s %sh9l-4.5 8z", px(x-4.5), px(y-8))
}

// column is one of the figures beside the rows.
type column struct {
	head  string
	x     float64 // right edge
	value func(f *sim.Figures) (text, class string)
}

var figures = []column{
	{"finished", columns + 118, func(f *sim.Figures) (string, string) {
		return count(f.Finished) + "/" + count(f.Calls), worse(f.Finished < f.Calls)
	}},
	{"refused", columns + 204, func(f *sim.Figures) (string, string) { return count(f.Throttled), worse(f.Throttled > 0) }},
	{"quota used", columns + 278, func(f *sim.Figures) (string, string) { return percent(f.Utilization), "" }},
	{"time", columns + 374, func(f *sim.Figures) (string, string) {
		text := span(seconds(f.Makespan))
		if f.GaveUp > 0 {
			text += "*"
		}
		return text, ""
	}},
}

func worse(is bool) string {
	if is {
		return " bad"
	}
	return ""
}

func (p *picture) figureHeads() {
	for _, c := range figures {
		p.out.text("head end", c.x, p.y, c.head)
	}
	p.y += 10
	p.top = p.y
}

// ideal marks the best possible end in all rows.
func (p *picture) ideal() {
	if len(p.rep.Strategies) == 0 || p.rep.Strategies[0].Ideal <= 0 {
		return
	}
	at := seconds(p.rep.Strategies[0].Ideal)
	x := p.x(at)
	p.out.line("ideal", x, p.top-2, x, p.y)
	p.out.text("ideal-label", x, p.top-8, "ideal "+span(at))
}

// axis draws the time axis below all rows.
func (p *picture) axis() {
	p.y += 4
	p.out.line("rule", left, p.y, right, p.y)
	step := round(p.scale.end, 9)
	for at := time.Duration(0); at <= p.scale.end; at += step {
		x := p.x(at)
		p.out.line("rule", x, p.y, x, p.y+4)
		p.out.text("hour", x, p.y+17, span(at))
	}
	p.y += 34
	p.out.text("hour", (left+right)/2, p.y, "time since the start")
	for i := range p.rep.Strategies {
		if p.rep.Strategies[i].GaveUp > 0 {
			p.out.text("small end", width-margin, p.y, "* until it had finished or given up")
			break
		}
	}
}
