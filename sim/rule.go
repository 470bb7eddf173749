package sim

import (
	"math"

	"github.com/sluicehq/sluice/store"
)

// Never is the answer of a rule that cannot say when it will admit a request,
// because that depends on a response ending or because it never will.
const Never = store.Time(math.MaxInt64)

// Rule is one limit as a provider enforces it. Moments handed to a rule must
// not go backwards in Take and Done; Earliest and State only look, at any
// moment from the last Take on.
type Rule interface {
	// Earliest returns the first moment at or after t at which cost is admitted,
	// provided that nothing else arrives before.
	Earliest(t store.Time, cost int64) store.Time
	// Take counts cost at t whether or not there was room. A negative cost gives
	// back what an estimate had taken too much.
	Take(t store.Time, cost int64)
	// Done tells that a request that took cost is over.
	Done(t store.Time, cost int64)
	// State returns what a provider's headers would say at t.
	State(t store.Time) State
}

// State is what a provider says of one of its limits.
type State struct {
	Size      int64
	Remaining int64
	Reset     store.Time // when Remaining will be Size again if nobody sends; 0: not known
}

// Admit lets a request of the given cost arrive at t: it is counted and true is
// returned if the rule has room, else nothing changes.
func Admit(r Rule, t store.Time, cost int64) bool {
	if r.Earliest(t, cost) != t {
		return false
	}
	r.Take(t, cost)
	return true
}
