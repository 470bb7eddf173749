package sim

import "slices"

// named is a strategy with its name in reports.
type named struct {
	name string
	make func(*desk) strategy
}

// strategies lists all strategies to compare, from the naive ones to the gate.
var strategies = []named{
	{"fixed interval 5 s", newFixedInterval},
	{"exponential", newExponential},
	{"full jitter", newFullJitter},
	{"sdk default", newSDKDefault},
	{"limiter per process", newPerProcess},
	{"shared bucket, polled", newPolled},
	{"shared window at 80%", newSharedWindow},
	{gate, newSluice},
}

// compared returns the strategies that the scenario runs, and the names of those it leaves out.
func (s *Scenario) compared() (run []named, out []string) {
	for _, one := range strategies {
		if len(s.Compare) == 0 || one.name == gate || slices.Contains(s.Compare, one.name) {
			run = append(run, one)
		} else {
			out = append(out, one.name)
		}
	}
	return run, out
}

// gate is the name of Sluice's strategy. It always runs.
const gate = "sluice"

// Strategies returns the names of the strategies that [Simulate] compares.
func Strategies() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}
