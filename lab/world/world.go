// Package world is the outside of a program that is under test: a clock, a network and the engine of a shared log. What goes
// wrong in it, and when, is drawn from a seed.
//
// # Time
//
// A world takes its time from package time. Inside a bubble of testing/synctest that time is virtual: it stands still while
// any goroutine can run, and jumps when all wait. So the production code runs in it unchanged, with its goroutines, timers
// and contexts, an hour takes milliseconds, and a wait for 200 ms ends after exactly that. A scheduler of our own would need
// every goroutine and timer of that code to be its own. Outside of a bubble a world works too, in real time.
//
// # Chance
//
// Go does not run goroutines in the same order each time. So no two requests share a stream of random numbers: what happens
// to a request depends on the seed, on the connection and on how many requests that has sent before. Requests arrive in the
// order of their times, which delays in nanoseconds keep apart.
//
//	synctest.Test(t, func(t *testing.T) {
//		w := world.New(seed)
//		server := w.Server()
//		w.SetFaults(world.Faults{Delay: time.Millisecond, LoseReply: 0.01})
//		engine := server.Connect()
//		...
//	})
package world

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// World is what surrounds the programs under test. Make one with [New].
type World struct {
	seed   uint64
	faults atomic.Pointer[Faults]
	links  atomic.Uint64
}

// New returns a world in which nothing goes wrong until [World.SetFaults].
func New(seed uint64) *World {
	w := &World{seed: seed}
	w.SetFaults(Faults{})
	return w
}

// Faults say what goes wrong, and how often. A probability is that of one request. The zero value is a network without delay
// and without faults.
type Faults struct {
	Delay time.Duration // most that a request takes on its way, and its reply; at least half of it

	LoseRequest float64 // probability that the engine never gets a request
	LoseReply   float64 // probability that it carries a request out and the caller never hears of it
	LoseWake    float64 // probability that a wake-up does not arrive
	DelayWake   time.Duration

	// The engine itself, at the moment a request arrives, before it is carried out.
	Stall     Chance // it does nothing for up to that time
	LoseTail  Chance // it fails over to a replica that lacks what was written during up to that time
	StepClock Chance // its clock is set forward or back by up to that time
	Flush     float64
}

// Chance is a fault that has a size.
type Chance struct {
	Of   float64 // probability
	Most time.Duration
}

func (c Chance) draw(r *rand.Rand) time.Duration {
	happens, size := r.Float64() < c.Of, r.Float64()
	if !happens || c.Most <= 0 {
		return 0
	}
	return max(time.Duration(size*float64(c.Most)), 1)
}

// SetFaults replaces the faults, for requests that are sent from now on.
func (w *World) SetFaults(f Faults) { w.faults.Store(&f) }

// dice returns the random numbers of the nth request of a connection.
func (w *World) dice(link, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(w.seed, link<<40^n))
}

// delay draws how long a message takes.
func delay(r *rand.Rand, most time.Duration) time.Duration {
	half := most / 2
	return half + time.Duration(r.Float64()*float64(most-half))
}
