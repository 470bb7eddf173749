package inspect

import "strings"

// GatePool is appended to a pool's name if a resource of the same name is shown too. That happens when the
// configuration has the resource in mode observe, which uses another pool.
const GatePool = " (gate)"

// ObservedPool is appended to the name of a resource for the pool that it counts in while it is in mode observe.
const ObservedPool = " (observed)"

// ResourceOf returns the resource that the shown name of a pool belongs to.
func ResourceOf(pool string) string {
	return strings.TrimSuffix(strings.TrimSuffix(pool, GatePool), ObservedPool)
}
