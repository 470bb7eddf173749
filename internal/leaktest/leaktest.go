// Package leaktest checks that tests leave no goroutines behind. It waits for those that are about to end, however slow the
// machine is.
package leaktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a goroutine may take to end: much longer than a busy machine needs. Connections that rueidis has given
// up end after five seconds.
const patience = 30 * time.Second

// Main runs the tests of a package and ends the process, for TestMain. It fails if all pass and goroutines are left.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Find waits until no goroutine is left but those to ignore. Its error lists those that do not end.
func Find(ignore ...goleak.Option) error { return find(patience, ignore...) }

func find(within time.Duration, ignore ...goleak.Option) (err error) {
	for end := time.Now().Add(within); ; {
		// It waits by itself for about half a second.
		if err = goleak.Find(ignore...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
