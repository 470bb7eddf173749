package plot

import (
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// scale holds the axes that all rows share, so that readers can compare the rows.
type scale struct {
	end      time.Duration // end of the time axis
	bin      time.Duration // width of a bar
	per      time.Duration // unit of rates: a second or a minute
	limit    int           // the limit whose line is drawn; -1: none
	line     float64       // height of the line, in calls per per
	accepted float64       // top of the axis
	refused  float64       // bottom of the axis; 0: nothing was refused
	gauge    int           // the limit whose remaining quota is drawn; -1: none
}

// Bounds of the picture
const (
	mostIdeals = 2.5 // of the ideal time: slower runs are cut off
	mostLines  = 4.0 // of the limit's line: higher bursts are cut off
)

func newScale(sc *sim.Scenario, rows []sim.Figures) scale {
	s := scale{limit: -1, per: time.Minute}
	for i := range rows {
		s.end = max(s.end, seconds(rows[i].Makespan))
		if ideal := rows[i].Ideal; ideal > 0 {
			s.end = min(s.end, seconds(mostIdeals*ideal))
		}
	}
	s.end = max(s.end+s.end/50, time.Second)
	s.gauge = gauge(rows, s.end)
	s.pickLimit(sc)
	s.pickBin(sc)
	for i := range rows {
		for _, n := range rebin(rows[i].Trace.Accepted, s.bin, s.end) {
			s.accepted = max(s.accepted, s.rate(n))
		}
		for _, n := range rebin(rows[i].Trace.Refused, s.bin, s.end) {
			s.refused = max(s.refused, s.rate(n))
		}
	}
	if s.line > 0 {
		s.accepted = min(max(s.accepted, 1.1*s.line), mostLines*s.line)
	}
	return s
}

// pickLimit chooses the limit whose line is drawn: the tightest of those with a short window compared to the run. A
// line for a long window would say little.
func (s *scale) pickLimit(sc *sim.Scenario) {
	short, least := false, 0.0
	for i := range sc.Limits {
		rate := sc.CallRate(i)
		if rate == 0 {
			continue
		}
		brief := sc.Limits[i].Window <= s.end/10
		if s.limit < 0 || brief && !short || brief == short && rate < least {
			s.limit, short, least = i, brief, rate
		}
	}
	if s.limit >= 0 {
		if sc.Limits[s.limit].Window < 30*time.Second {
			s.per = time.Second
		}
		s.line = least * s.per.Seconds()
	}
}

// pickBin chooses the width of bars. If possible, it is the window of the drawn limit. Then a bar within the limit
// stays below the limit's line.
func (s *scale) pickBin(sc *sim.Scenario) {
	if s.limit >= 0 {
		if l := &sc.Limits[s.limit]; l.Kind != store.Fixed && l.Window <= s.end/20 && l.Window >= s.end/160 {
			s.bin = l.Window
			return
		}
	}
	s.bin = round(s.end, 120)
}

// rate converts the count of a bar into calls per per.
func (s *scale) rate(n int) float64 { return float64(n) * float64(s.per) / float64(s.bin) }

// gauge chooses the limit with the least remaining quota, among those with enough samples for a curve.
func gauge(rows []sim.Figures, end time.Duration) int {
	best, least := -1, 1.0
	for i := range rows {
		for _, g := range rows[i].Trace.Left {
			if g.Every > end/50 {
				continue
			}
			for _, share := range g.Share {
				if share < least {
					best, least = g.Limit, share
				}
			}
		}
	}
	return best
}

// rebin counts in bars of the given width, up to end.
func rebin(c sim.Counts, width, end time.Duration) []int {
	bars := make([]int, int(end/width)+1)
	for i, n := range c.N {
		middle := time.Duration(i)*c.Every + c.Every/2
		if k := int(middle / width); n > 0 && k < len(bars) {
			bars[k] += n
		}
	}
	return bars
}

// steps are round lengths of time for axes.
var steps = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 48 * time.Hour, 96 * time.Hour, 7 * 24 * time.Hour,
}

// round returns the shortest step that fits into whole fewer than times times.
func round(whole time.Duration, times int) time.Duration {
	for _, step := range steps {
		if whole/step < time.Duration(times) {
			return step
		}
	}
	return whole
}
