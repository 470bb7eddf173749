package sim

// named is a strategy and what it is called in reports.
type named struct {
	name string
	make func(*desk) strategy
}

// strategies lists everything that is compared, from the naive to the gate.
var strategies = []named{
	{"fixed interval 5 s", newFixedInterval},
	{"exponential", newExponential},
	{"full jitter", newFullJitter},
	{"sdk default", newSDKDefault},
	{"limiter per process", newPerProcess},
	{"shared bucket, polled", newPolled},
	{"shared window at 80%", newSharedWindow},
	{"sluice", newSluice},
}

// Strategies returns the names of the strategies that [Simulate] compares.
func Strategies() []string {
	var names []string
	for _, s := range strategies {
		names = append(names, s.name)
	}
	return names
}
