//go:build slow && (linux || darwin)

package agents_test

import (
	"testing"
	"time"
)

// The figures of docs/concepts.md.
func TestTwoHundredScriptsAtATime(t *testing.T) {
	b := burst{calls: 420, atOnce: 200, size: 60, window: 5 * time.Second, slack: time.Second}
	b.judge(t)
}
