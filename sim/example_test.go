package sim_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// A rule judges a trace of arrivals.
func ExampleNewRolling() {
	rule := sim.NewRolling(2, time.Minute)
	for _, second := range []time.Duration{0, 10, 20, 60} {
		fmt.Println(int(second), sim.Admit(rule, sim.Epoch.Add(second*time.Second), 1))
	}
	// Output:
	// 0 true
	// 10 true
	// 20 false
	// 60 true
}

func ExampleSimulate() {
	sc, err := sim.Parse("two.yaml", strings.NewReader(`
name: two
provider:
  limits:
    - {name: minute, size: 60/min, burst: 10}
agents:
  - {name: a, class: p0, calls: 40, workers: 5}
  - {name: b, class: p2, calls: 40, workers: 5}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rep, err := sim.Simulate(context.Background(), sc, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range rep.Strategies {
		if f.Name == "sluice" {
			fmt.Printf("%d of %d finished, %d refused\n", f.Finished, f.Calls, f.Throttled)
		}
	}
	// Output: 80 of 80 finished, 0 refused
}
