package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Scenario is a fleet, its work, and the provider that it calls.
type Scenario struct {
	Name  string
	About string // one line

	Limits  []Limit
	Policy  Policy
	Service Delay // from arrival to the first byte of a response
	Body    Delay // from the first to the last byte
	// Outside is the rate at which other users of the same key send requests, as a Poisson stream. Zero: no other
	// users.
	Outside Rate

	Price    float64       // list price of one call in dollars
	Attempts int           // most sends of one call, including the first; 0: no limit
	Deadline time.Duration // of a job, since its arrival; 0: none
	Horizon  time.Duration // when the run ends

	Fleet []Agent

	// Compare names the strategies that run besides the gate; empty: all of [Strategies].
	Compare []string

	// Recorded holds the calls of a log. If it is not empty, it replaces the jobs of the fleet.
	Recorded []Recorded
	// Classes are the priority classes, highest first; empty: [Classes].
	Classes []store.Class
	// Order is the order in which the gate serves waiting requests.
	Order store.Order
	// Use is the percentage of the limits that the gate uses; 0: all of them.
	Use int
}

// Agent is one caller, which is one process. It works on its jobs with a number of workers, each with one call at a
// time.
type Agent struct {
	Name, User string
	Machine    string // machine on which it runs
	Class      int    // index in the scenario's classes
	Jobs       int
	Calls      int           // per job
	Start      time.Duration // arrival of the first job
	Every      time.Duration // time between two jobs
	Workers    int
	Request    Request // request of each call
	Spread     float64 // sigma of the calls' token counts around those of Request
	// Joined is set for agents that hold a lease with heartbeats. They hold it from the duration Joins before their
	// first job until the end of their last call.
	Joined bool
	Joins  time.Duration
}

// Classes are the default priority classes, with their shares of a contended quota.
var Classes = []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}

// Rate is an amount per window, such as 80/min. The zero Rate means none.
type Rate struct {
	N      int64
	Window time.Duration
}

// window returns the longest window of the scenario's limits: the time after which each of them admits something again.
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

// classes returns the scenario's classes, or the default ones.
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
