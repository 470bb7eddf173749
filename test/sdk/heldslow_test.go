//go:build slow && (linux || darwin)

package sdk_test

import (
	"testing"
	"time"
)

// TestStreamHeldForThreeMinutes is TestHeldStreamArrives with the times of a real load balancer and the default interval.
func TestStreamHeldForThreeMinutes(t *testing.T) {
	t.Parallel()
	heldStreams(t, 30*time.Second, time.Minute, 3*time.Minute)
}
