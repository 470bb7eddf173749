package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Trace records what happened at the provider over time, for plots. Times count from Epoch.
type Trace struct {
	Accepted, Refused Counts
	Left              []Gauge // of the limits with long windows; may be empty
}

// Counts are numbers of events over time: N[i] in the interval that starts at i x Every.
type Counts struct {
	Every time.Duration
	N     []int
}

// Gauge is the remaining quota over time: at i x Every, the fraction Share[i] was left.
type Gauge struct {
	Limit int // index
	Every time.Duration
	Share []float64
}

// maxBins bounds the length of a trace.
const maxBins = 1 << 15

func (c *Counts) add(t store.Time) { c.Add(t.Sub(Epoch)) }

// Add counts an event at the given time since the start. When the time exceeds the bins, Add doubles their width.
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

// longFrom is the shortest window whose remaining quota is recorded.
const longFrom = 10 * time.Minute

// watch records the remaining quota of long windows until the work is done.
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

// CallRate returns the number of the fleet's calls that limit i admits per second in the long run, for the fleet's mix
// of calls. 0: limit i does not bound the rate.
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
