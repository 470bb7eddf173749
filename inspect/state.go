package inspect

// The states of a resource, worst first. A resource is in the first that applies.
const (
	StateFailing  = "failing"  // the last sends did not reach the provider, or came back 5xx, or most were rejected as wrong
	StateDegraded = "degraded" // the store is unreachable or lost its memory
	StatePaused   = "paused"   // a pause holds the resource or one of its models
	StateQueueing = "queueing" // requests wait for room, or are refused because there is none
	StateFlowing  = "flowing"  // requests were sent in the last minute, and none waits
	StateIdle     = "idle"     // no request was sent in the last minute
)

// States lists the states of a resource, worst first.
func States() []string {
	return []string{StateFailing, StateDegraded, StatePaused, StateQueueing, StateFlowing, StateIdle}
}

// IsTrouble reports whether a state needs attention: the resource is failing, degraded or paused.
func IsTrouble(state string) bool {
	return state == StateFailing || state == StateDegraded || state == StatePaused
}
