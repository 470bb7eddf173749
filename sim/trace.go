package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Trace is what happened at the provider over time, for pictures. All of it counts
// from Epoch.
type Trace struct {
	Accepted, Refused Counts
	Left              []Gauge // of the limits that last longest; may be empty
}

// Counts are events over time: N[i] of them from i x Every on.
type Counts struct {
	Every time.Duration
	N     []int
}

// Gauge is a quota over time: at i x Every, Share[i] of it was left.
type Gauge struct {
	Limit int // index
	Every time.Duration
	Share []float64
}

// maxBins bounds a trace, however long the run.
const maxBins = 1 << 15

func (c *Counts) add(t store.Time) { c.Add(t.Sub(Epoch)) }

// Add counts one event at a time from the start. When a run has got too long for its bins, two become one.
func (c *Counts) Add(at time.Duration) {
	if c.Every == 0 {
		c.Every = 100 * time.Millisecond
	}
	i := int(max(at, 0) / c.Every)
	for i >= maxBins {
		c.widen()
		i /= 2
	}
	for len(c.N) <= i {
		c.N = append(c.N, 0)
	}
	c.N[i]++
}

func (c *Counts) widen() {
	half := make([]int, (len(c.N)+1)/2)
	for i, n := range c.N {
		half[i/2] += n
	}
	c.N, c.Every = half, 2*c.Every
}

// longFrom is the length from which it is worth seeing what is left of a window.
const longFrom = 10 * time.Minute

// watch notes what is left of the long windows, for as long as there is work.
func (r *run) watch() {
	for i, l := range r.sc.Limits {
		if l.Window < longFrom || l.PerModel {
			continue
		}
		g := Gauge{Limit: i, Every: max(l.Window/1024, r.sc.Horizon/32768, time.Millisecond)}
		k := len(r.tally.trace.Left)
		r.tally.trace.Left = append(r.tally.trace.Left, g)
		var look func()
		look = func() {
			if r.tally.left == 0 {
				return
			}
			s := r.provider.rule(i, &Request{}).State(r.now)
			left := &r.tally.trace.Left[k]
			left.Share = append(left.Share, float64(s.Remaining)/float64(l.capacity()))
			r.after(micros(left.Every), look)
		}
		r.after(0, look)
	}
}

// CallRate returns how many of the fleet's calls limit i admits per second in the long
// run, if they come in the mix in which they are demanded; 0: it does not tell.
func (s *Scenario) CallRate(i int) float64 {
	l := &s.Limits[i]
	if l.Kind == store.Concurrency {
		return 0
	}
	var cost, calls float64
	models := map[string]bool{}
	for k := range s.Fleet {
		a := &s.Fleet[k]
		one := a.Request.cost(l)
		if l.late() {
			one = a.Request.Output
		}
		n := float64(a.Jobs) * float64(a.Calls)
		cost += n * float64(one)
		calls += n
		if one > 0 {
			models[a.Request.Model] = true
		}
	}
	if cost == 0 {
		return 0
	}
	rate := float64(l.Size) / l.Window.Seconds() * calls / cost
	if l.PerModel {
		rate *= float64(len(models))
	}
	return rate
}
