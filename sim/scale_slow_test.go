//go:build slow

package sim

import "testing"

// TestScale runs the scenario at full size, which takes a minute or two on a busy machine.
func TestScale(t *testing.T) {
	sc := loadScale(t)
	for _, net := range []Delay{LightTail, HeavyTail} {
		holdsAtScale(t, sc, net, 1)
	}
}
