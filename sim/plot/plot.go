// Package plot draws the report of a simulation as an SVG. Each strategy has a row, which shows the requests that the
// provider accepted and refused over time, and the key figures beside them.
//
// The picture needs no external files and follows the reader's light or dark mode. The same report gives the same
// bytes.
package plot

import (
	"fmt"
	"io"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// Positions and sizes, in pixels
const (
	width     = 1286
	margin    = 20
	left      = 226 // left end of the time axis
	right     = 868
	columns   = 892 // left edge of the figures
	rowHeight = 92
	upward    = 54 // height for accepted requests
	downward  = 22 // height for refused requests
)

// SVG writes the picture of a report, for the network with the light tail. The report must come from [sim.Simulate]
// with the same scenario.
func SVG(w io.Writer, sc *sim.Scenario, rep *sim.Report) error {
	where := fmt.Sprintf(", on a network with a light tail (median %v, sigma %.1f), seed %d", sim.LightTail.Median, sim.LightTail.Sigma, rep.Seed)
	return (&picture{sc: sc, rep: rep, title: "sluice simulate " + sc.Name, where: where}).draw(w)
}

// Measured writes the same picture for real runs, with one run for each strategy.
func Measured(w io.Writer, sc *sim.Scenario, rep *sim.Report) error {
	return (&picture{sc: sc, rep: rep, title: sc.Name}).draw(w)
}

func (p *picture) draw(w io.Writer) error {
	p.scale = newScale(p.sc, p.rep.Strategies)
	p.header()
	p.figureHeads()
	for i := range p.rep.Strategies {
		p.row(&p.rep.Strategies[i])
	}
	p.ideal()
	p.axis()
	return p.out.writeTo(w, width, p.y+margin, p.title, p.describe())
}

// picture is a picture being drawn, from the top down.
type picture struct {
	out   svg
	sc    *sim.Scenario
	rep   *sim.Report
	title string
	where string // network and seed of simulated runs
	scale scale
	y     float64 // bottom of the drawing so far
	top   float64 // top of the first row
}

// x returns the position of a time on the time axis.
func (p *picture) x(at time.Duration) float64 {
	part := min(float64(at)/float64(p.scale.end), 1)
	return left + part*(right-left)
}

// describe returns a text that says what the picture shows, for readers who cannot see it.
func (p *picture) describe() string {
	s := "Requests accepted and refused over time, one row for each strategy."
	for i := range p.rep.Strategies {
		f := &p.rep.Strategies[i]
		s += " " + f.Name + ": " + count(f.Finished) + " of " + count(f.Calls) + " calls finished, " +
			count(f.Throttled) + " refused, " + percent(f.Utilization) + " of the quota used, " + span(seconds(f.Makespan)) + "."
	}
	return s
}
