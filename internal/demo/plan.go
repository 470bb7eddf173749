// Package demo compares a fleet without and with the gate, using real processes on this machine: a mock provider, and
// six agents that share one of its keys. In the first phase each agent backs off on its own. In the second, the same
// work goes through the gate.
//
// All processes run this program; see [Options.Self].
package demo

import (
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Model is the model that the agents ask for.
const Model = "claude-sonnet-5-5"

// Agent is one agent of the fleet.
type Agent struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Calls   int    `json:"calls"`
	Workers int    `json:"workers"` // calls in progress at once
	// PerJob, Start and Every describe calls that come in jobs of PerJob calls: the first job after Start, the next
	// ones at intervals of Every. If PerJob is 0, all calls are due from the start.
	PerJob int           `json:"per_job,omitempty"`
	Start  time.Duration `json:"start,omitempty"`
	Every  time.Duration `json:"every,omitempty"`
	// Model and Tokens are the model and the input tokens of its calls. Zero values mean the demo's defaults.
	Model  string `json:"model,omitempty"`
	Tokens int64  `json:"tokens,omitempty"`
}

// Script describes the work that both phases do.
type Script struct {
	Agents []Agent
	// Limit is the provider's limit on requests: a bucket that holds one window's worth.
	Limit sim.Rate
	// Latency and Tail are how long a response takes, as in [mock.Options].
	Latency, Tail time.Duration
	// Patience is the longest time that a phase may take.
	Patience time.Duration

	// Provider, About, Gate and Best describe a fleet from a scenario; see [FromScenario]. Provider holds flags of the
	// mock, besides those for latency, and About describes them for people. Best is the shortest time that the work can
	// take. If they are empty, Limit applies.
	Provider []string
	About    string
	// Gate lists the limits in the gate's configuration, as YAML. If it is empty, the gate learns the limits.
	Gate string
	// Unstated is set if the gate must not learn from the mock's headers: a gate takes the limits that Anthropic states as
	// limits per minute, and these are not.
	Unstated bool
	Best     time.Duration
}

// Limits describes the provider's limits for people.
func (p *Script) Limits() string {
	if p.About != "" {
		return p.About
	}
	return p.Limit.String()
}

// Minute returns the standard demo, which takes about a minute.
//
// The provider accepts the first 120 calls at once and the others at two a second, for 24 seconds. Clients that double
// their waits return 16 to 20 seconds after they began, and next after 32 to 40. Work that could end in between ends
// late, which is the typical case. Work of 21 seconds would end in time by luck.
func Minute() Script {
	return Script{
		Agents: fleet(28, 6), Limit: sim.Rate{N: 120, Window: time.Minute},
		Latency: 300 * time.Millisecond, Tail: 100 * time.Millisecond, Patience: 4 * time.Minute,
	}
}

// Fast returns the same demo with fewer calls after the provider begins to refuse.
func Fast() Script {
	p := Minute()
	p.Agents, p.Latency, p.Tail, p.Patience = fleet(22, 8), 50*time.Millisecond, 0, time.Minute
	return p
}

// fleet returns six agents of three classes.
func fleet(calls, workers int) []Agent {
	var all []Agent
	for _, a := range [...][2]string{{"chat", "p0"}, {"review", "p0"}, {"docs", "p1"}, {"tests", "p1"}, {"index", "p2"}, {"crawl", "p2"}} {
		all = append(all, Agent{Name: a[0], Class: a[1], Calls: calls, Workers: workers})
	}
	return all
}

// Calls returns the number of calls of all agents.
func (p *Script) Calls() (n int) {
	for _, a := range p.Agents {
		n += a.Calls
	}
	return n
}

// Ideal returns how long the work takes if each call is sent as soon as the provider's limit has room, and is answered
// as fast as possible.
func (p *Script) Ideal() time.Duration {
	if p.Best > 0 {
		return p.Best
	}
	limit := sim.Limit{Name: "requests", Unit: sim.Requests, Kind: store.Bucket, Size: p.Limit.N, Burst: p.Limit.N, Window: p.Limit.Window}
	rule, at := limit.Rule(), store.Time(0)
	for range p.Calls() {
		at = rule.Earliest(at, 1)
		rule.Take(at, 1)
	}
	return at.Sub(0) + p.Latency
}
