// Package demo shows what a gate is good for, with real processes: a model of a provider, and six agents
// that share one key of it; first each of them backs off on its own, then the same work goes through the
// gate. Everything happens on this machine.
//
// The processes are the program itself: see [Options.Self].
package demo

import (
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Model is what the agents ask for.
const Model = "claude-sonnet-5-5"

// Agent is one of the fleet.
type Agent struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Calls   int    `json:"calls"`
	Workers int    `json:"workers"` // calls that it has under way at once
	// Of an agent whose calls come in jobs: as many in each, the first after Start, the next Every after it. PerJob is 0
	// for one that has all its calls from the start.
	PerJob int           `json:"per_job,omitempty"`
	Start  time.Duration `json:"start,omitempty"`
	Every  time.Duration `json:"every,omitempty"`
	// Model and Tokens are what its calls ask for; empty: those of the demo.
	Model  string `json:"model,omitempty"`
	Tokens int64  `json:"tokens,omitempty"`
}

// Plan is what both phases have in common.
type Script struct {
	Agents []Agent
	// Limit is the provider's, on requests: a bucket that holds one window's worth.
	Limit sim.Rate
	// Latency and Tail are how long an answer takes, as of [mock.Options].
	Latency, Tail time.Duration
	// Patience is the most that a phase may take.
	Patience time.Duration

	// Of a fleet of one's own, see [FromScenario]. Provider are flags of the mock beside those for latency, About says
	// them to people, and Best is how long the work takes at best. Empty: Limit says it.
	Provider []string
	About    string
	// Gate are the limits that the gate is told, as a list of YAML; empty: it learns them.
	Gate string
	Best time.Duration
}

// Limits are the provider's, for people.
func (p *Script) Limits() string {
	if p.About != "" {
		return p.About
	}
	return p.Limit.String()
}

// Minute is the demo itself: it takes about a minute.
//
// After the first 120 calls, which the provider lets in at once, the others come in at two a second, for 24
// seconds. Callers whose waits double come back 16 to 20 seconds after they began, and then after 32 to 40:
// work that ends between the two is late, as most is. Work of 21 seconds would be done in time, by luck.
func Minute() Script {
	return Script{
		Agents: fleet(28, 6), Limit: sim.Rate{N: 120, Window: time.Minute},
		Latency: 300 * time.Millisecond, Tail: 100 * time.Millisecond, Patience: 4 * time.Minute,
	}
}

// Fast is the same with few calls left when the provider begins to refuse.
func Fast() Script {
	p := Minute()
	p.Agents, p.Latency, p.Tail, p.Patience = fleet(22, 8), 50*time.Millisecond, 0, time.Minute
	return p
}

// fleet is six agents of three classes.
func fleet(calls, workers int) []Agent {
	var all []Agent
	for _, a := range [...][2]string{{"chat", "p0"}, {"review", "p0"}, {"docs", "p1"}, {"tests", "p1"}, {"index", "p2"}, {"crawl", "p2"}} {
		all = append(all, Agent{Name: a[0], Class: a[1], Calls: calls, Workers: workers})
	}
	return all
}

// Calls are those of all agents.
func (p *Script) Calls() (n int) {
	for _, a := range p.Agents {
		n += a.Calls
	}
	return n
}

// Ideal is how long it takes if every call is sent at the very moment at which the provider's rule has
// room for it, and is answered as quickly as it can be.
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
