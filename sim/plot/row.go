package plot

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// gate is the prefix of the names of Sluice's own rows.
const gate = "sluice"

func ours(f *sim.Figures) bool { return strings.HasPrefix(strings.ToLower(f.Name), gate) }

// row draws the row of one strategy.
func (p *picture) row(f *sim.Figures) {
	top := p.y
	zero := top + 8 + upward
	name := "name"
	if ours(f) {
		name += " strong"
		p.out.rect("band", 8, top+1, width-16, rowHeight-2)
	}
	p.out.text(name, margin, top+26, f.Name)
	p.classes(f, top+43)
	p.accepted(f, zero)
	p.refused(f, zero)
	p.out.line("rule", left, zero, right, zero)
	p.ticks(f, zero)
	p.done(f, zero)
	p.figures(f, zero)
	p.y += rowHeight
}

// accepted draws bars upward from zero, then the limit's line and the remaining quota over them.
func (p *picture) accepted(f *sim.Figures, zero float64) {
	bars := rebin(f.Trace.Accepted, p.scale.bin, p.scale.end)
	p.out.path("accepted", p.bars(bars, zero, -upward, p.scale.accepted))
	var cut strings.Builder
	for i, n := range bars {
		if p.scale.rate(n) > p.scale.accepted*1.001 {
			a, b := p.edges(i)
			fmt.Fprintf(&cut, "M%s %sL%s %sv2L%s %sz", px(a), px(zero-upward+5), px(b), px(zero-upward+2), px(a), px(zero-upward+7))
		}
	}
	p.out.path("cut", cut.String())
	if p.scale.line > 0 && p.scale.line <= p.scale.accepted {
		y := zero - upward*p.scale.line/p.scale.accepted
		p.out.line("limit", left, y, right, y)
	}
	for _, g := range f.Trace.Left {
		if g.Limit == p.scale.gauge {
			curve := p.curve(g, zero)
			p.out.path("halo", curve)
			p.out.path("left", curve)
		}
	}
}

// refused draws bars downward. Even a single refusal is visible.
func (p *picture) refused(f *sim.Figures, zero float64) {
	bars := rebin(f.Trace.Refused, p.scale.bin, p.scale.end)
	p.out.path("refused", p.bars(bars, zero, downward, p.scale.refused))
}

// edges returns the left and right edge of bar i.
func (p *picture) edges(i int) (a, b float64) {
	a = left + (right-left)*float64(i)*float64(p.scale.bin)/float64(p.scale.end)
	b = min(left+(right-left)*float64(i+1)*float64(p.scale.bin)/float64(p.scale.end), right)
	if b-a > 3 {
		b -= 0.6 // a gap, so that readers can count single bars
	}
	return a, b
}

// bars draws counts as one path. A count of most is as high as height; a negative height draws downward.
func (p *picture) bars(bars []int, zero, height, most float64) string {
	var d strings.Builder
	for i, n := range bars {
		if n == 0 || most == 0 {
			continue
		}
		h := height * min(p.scale.rate(n)/most, 1)
		if h > 0 {
			h = max(h, 1.5)
		} else {
			h = min(h, -1)
		}
		a, b := p.edges(i)
		fmt.Fprintf(&d, "M%s %sv%sH%sv%sz", px(a), px(zero), px(h), px(b), px(-h))
	}
	return d.String()
}

// curve draws the remaining quota. A full quota is as high as the highest bar. Of the points within one pixel, it keeps
// the lowest.
func (p *picture) curve(g sim.Gauge, zero float64) string {
	var d strings.Builder
	last := -10.0
	for i := 0; i < len(g.Share); i++ {
		at := time.Duration(i) * g.Every
		if at > p.scale.end {
			break
		}
		x, share := p.x(at), g.Share[i]
		if x-last < 1 && i < len(g.Share)-1 {
			continue
		}
		last = x
		verb := "L"
		if d.Len() == 0 {
			verb = "M"
		}
		fmt.Fprintf(&d, "%s%s %s", verb, px(x), px(zero-upward*share))
	}
	return d.String()
}

// classes shows the time of each class, if the fleet has several.
func (p *picture) classes(f *sim.Figures, y float64) {
	if len(f.Classes) < 2 {
		return
	}
	for i, c := range f.Classes {
		p.out.text("small", margin, y+13*float64(i), c.Name+"  "+span(seconds(c.Makespan)))
	}
}

// ticks draws the numbers beside the axis: the limit's line, and the top if there is room for both.
func (p *picture) ticks(f *sim.Figures, zero float64) {
	s := &p.scale
	at := s.line / s.accepted
	if at > 0 && at <= 1 {
		p.out.text("tick", left-6, zero-upward*at+3.5, amount(s.line))
	}
	if at < 0.75 {
		p.out.text("tick", left-6, zero-upward+3.5, amount(s.accepted))
	}
	if at <= 0 || at > 0.25 {
		p.out.text("tick", left-6, zero+3.5, "0")
	}
	if f.Throttled > 0 {
		p.out.text("tick refused", left-6, zero+downward+3.5, amount(s.refused))
	}
	if s.gauge >= 0 {
		p.out.text("tick share", right+5, zero-upward+3.5, "all")
		p.out.text("tick share", right+5, zero+3.5, "0")
	}
}

// done marks the end of the run.
func (p *picture) done(f *sim.Figures, zero float64) {
	class := "done"
	if f.GaveUp > 0 {
		class = "gave-up"
	}
	took := seconds(f.Makespan)
	if took > p.scale.end {
		p.out.text("small end over", right-4, zero+14, "until "+span(took)+" →")
		return
	}
	x := p.x(took)
	p.out.path(class, triangle(x, zero))
}

// figures draws the numbers of the row.
func (p *picture) figures(f *sim.Figures, zero float64) {
	y := zero - 18
	strong := ""
	if ours(f) {
		strong = " strong"
	}
	for _, c := range figures {
		text, class := c.value(f)
		p.out.text("end"+strong+class, c.x, y, text)
	}
	last := figures[len(figures)-1]
	if f.Ideal > 0 && f.GaveUp == 0 {
		p.out.text("small end", last.x, y+16, fmt.Sprintf("%.2f x ideal", f.Makespan/f.Ideal))
	}
	if len(f.Starved) > 0 {
		p.out.text("small end bad", figures[0].x, y+16, "starved: "+strings.Join(f.Starved, " "))
	}
}
