package sim

import (
	"math"

	"github.com/sluicehq/sluice/store"
)

// Never is the result of a rule that does not know when it will admit a request. Either that depends on the end of a
// response, or it will never happen.
const Never = store.Time(math.MaxInt64)

// Rule is one limit as a provider enforces it. The times of Take and Done must not go backwards. Earliest and State do
// not change the rule, and accept any time since the last Take.
type Rule interface {
	// Earliest returns the first time at or after t at which cost is admitted, if nothing else arrives before.
	Earliest(t store.Time, cost int64) store.Time
	// Take counts cost at t, even if there is no room. A negative cost gives back what an estimate took too much.
	Take(t store.Time, cost int64)
	// Done ends a request that took cost.
	Done(t store.Time, cost int64)
	// State returns what a provider's headers would state at t.
	State(t store.Time) State
}

// State is what a provider states about one of its limits.
type State struct {
	Size      int64
	Remaining int64
	Reset     store.Time // when Remaining will equal Size if nothing is sent; 0: unknown
}

// Admit counts a request of the given cost at t and returns true, if the rule has room for it. Otherwise it changes
// nothing and returns false.
func Admit(r Rule, t store.Time, cost int64) bool {
	if r.Earliest(t, cost) != t {
		return false
	}
	r.Take(t, cost)
	return true
}
