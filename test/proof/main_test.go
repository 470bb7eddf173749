package proof_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// Traces are many and small: the collector would run all the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1000)
	os.Exit(m.Run())
}
