package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Scenario is a fleet, the provider it calls, and what there is to do.
type Scenario struct {
	Name  string
	About string // one line

	Limits  []Limit
	Policy  Policy
	Service Delay // from arrival to the first byte of an answer
	Body    Delay // from there to its end
	// Outside is how much others use the same key; it arrives as a Poisson
	// stream. Zero: nobody does.
	Outside Rate

	Price    float64       // list price of one call in dollars
	Attempts int           // sends of one call, the first included; 0: no wall
	Deadline time.Duration // of a job, from its arrival; 0: no wall
	Horizon  time.Duration // when the run is cut off

	Fleet []Agent

	// Compare names the strategies that are run beside the gate; empty: all of [Strategies].
	Compare []string

	// Recorded are the calls of a log. Where there are any, they are the work, and the jobs of the fleet are not.
	Recorded []Recorded
	// Classes are the priority classes, highest first; empty: [Classes].
	Classes []store.Class
	// Order is who goes first at the gate.
	Order store.Order
	// Use is the percentage of the limits that the gate uses; 0: all of them.
	Use int
}

// Agent is one caller, which is one process: it works on its jobs with a
// number of workers, each with one call at a time.
type Agent struct {
	Name, User string
	Machine    string // where it runs
	Class      int    // index in the scenario's classes
	Jobs       int
	Calls      int           // of each job
	Start      time.Duration // arrival of the first job
	Every      time.Duration // between the arrivals of two jobs
	Workers    int
	Request    Request // what each call asks for
	Spread     float64 // sigma of the calls' token counts around those of Request
	// Joined is set for agents that hold a lease by heartbeat, Joins before their
	// first job and until their last call is over.
	Joined bool
	Joins  time.Duration
}

// Classes are the priority classes and their shares of a contended quota.
var Classes = []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}

// Rate is an amount per window, such as 80/min. The zero Rate is none.
type Rate struct {
	N      int64
	Window time.Duration
}

// window is the longest window of the scenario's limits: the time after which
// any of them would admit something again.
func (s *Scenario) window() time.Duration {
	longest := time.Second
	for _, l := range s.Limits {
		longest = max(longest, l.Window)
	}
	return longest
}

func (s *Scenario) calls() int {
	if len(s.Recorded) > 0 {
		return len(s.Recorded)
	}
	n := 0
	for _, a := range s.Fleet {
		n += a.Jobs * a.Calls
	}
	return n
}

// classes are the scenario's own, or the usual ones.
func (s *Scenario) classes() []store.Class {
	if len(s.Classes) > 0 {
		return s.Classes
	}
	return Classes
}

func (s *Scenario) jobs() int {
	if len(s.Recorded) > 0 {
		return len(s.Recorded)
	}
	n := 0
	for _, a := range s.Fleet {
		n += a.Jobs
	}
	return n
}
