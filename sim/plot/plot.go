// Package plot draws the report of a simulation as an SVG: one row for each strategy,
// what the provider accepted and refused over time, and the key figures beside it.
//
// The picture refers to nothing outside of itself, is the same for the same report to
// the last byte, and follows the reader's choice of light or dark.
package plot

import (
	"io"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// Where things are, in pixels.
const (
	width     = 1286
	margin    = 20
	left      = 226 // of the time axis
	right     = 868
	columns   = 892 // of the figures
	rowHeight = 92
	upward    = 54 // height of what was accepted
	downward  = 22 // and of what was refused
)

// SVG writes the picture of a report, on the network with the light tail. The report has
// to be one of the scenario, from [sim.Simulate].
func SVG(w io.Writer, sc *sim.Scenario, rep *sim.Report) error {
	p := &picture{sc: sc, rep: rep, scale: newScale(sc, rep.Strategies)}
	p.header()
	p.figureHeads()
	for i := range rep.Strategies {
		p.row(&rep.Strategies[i])
	}
	p.ideal()
	p.axis()
	return p.out.writeTo(w, width, p.y+margin, "sluice simulate "+sc.Name, p.describe())
}

// picture is one being drawn, from the top down.
type picture struct {
	out   svg
	sc    *sim.Scenario
	rep   *sim.Report
	scale scale
	y     float64 // how far it has got
	top   float64 // of the first row
}

// x is where a moment is on the time axis.
func (p *picture) x(at time.Duration) float64 {
	part := min(float64(at)/float64(p.scale.end), 1)
	return left + part*(right-left)
}

// describe says in words what the picture shows, for those who cannot see it.
func (p *picture) describe() string {
	s := "Requests accepted and refused over time, one row for each strategy."
	for i := range p.rep.Strategies {
		f := &p.rep.Strategies[i]
		s += " " + f.Name + ": " + count(f.Finished) + " of " + count(f.Calls) + " calls finished, " +
			count(f.Throttled) + " refused, " + percent(f.Utilization) + " of the quota used, " + span(seconds(f.Makespan)) + "."
	}
	return s
}
