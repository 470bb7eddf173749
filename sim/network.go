package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Delay is a lognormal distribution of durations. A sigma of zero makes it constant.
type Delay struct {
	Median time.Duration
	Sigma  float64
}

// The two networks on which every scenario runs. Each message draws its own delay, so messages can overtake each other.
var (
	LightTail = Delay{Median: 80 * time.Millisecond, Sigma: 0.6}
	HeavyTail = Delay{Median: 100 * time.Millisecond, Sigma: 1.0}
)

// Mean returns the mean of the distribution.
func (d Delay) Mean() store.Time {
	return store.Time(float64(d.Median.Microseconds()) * math.Exp(d.Sigma*d.Sigma/2))
}

func (d Delay) draw(r *rand.Rand) store.Time {
	if d.Sigma == 0 {
		return store.Time(d.Median.Microseconds())
	}
	return store.Time(float64(d.Median.Microseconds()) * math.Exp(d.Sigma*r.NormFloat64()))
}

// Purposes of random numbers. Each has its own stream, so that a strategy that draws more of one kind does not change
// the others.
const (
	drawNetwork = iota + 1
	drawService
	drawJitter
	drawOutside
	drawSizes
)

func stream(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }
