package sim

import (
	"fmt"

	"github.com/sluicehq/sluice/store"
)

// Concurrency admits requests while fewer than n are in progress.
type Concurrency struct {
	n, used int64
}

// NewConcurrency returns a rule with n places. It panics if n is not positive.
func NewConcurrency(n int64) *Concurrency {
	if n < 1 {
		panic(fmt.Sprintf("sim: concurrency of %d", n))
	}
	return &Concurrency{n: n}
}

// Earliest implements [Rule]. While all places are taken it returns [Never]. Ask again when a request ends.
func (c *Concurrency) Earliest(t store.Time, cost int64) store.Time {
	if c.used+max(cost, 0) > c.n {
		return Never
	}
	return t
}

// Take implements [Rule].
func (c *Concurrency) Take(_ store.Time, cost int64) { c.used += cost }

// Done implements [Rule].
func (c *Concurrency) Done(_ store.Time, cost int64) { c.used = max(c.used-cost, 0) }

// State implements [Rule].
func (c *Concurrency) State(store.Time) State {
	return State{Size: c.n, Remaining: max(c.n-c.used, 0)}
}
