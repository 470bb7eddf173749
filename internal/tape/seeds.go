package tape

import (
	"fmt"
	"iter"
	"os"
	"strconv"
	"testing"
	"time"
)

// Environment variables that turn the tests that use Seeds into a campaign
const (
	tracesVar = "SLUICE_TRACES"    // multiplies the number of traces
	timeVar   = "SLUICE_PROOFTIME" // plays traces for this long per test, instead of a number
	seedVar   = "SLUICE_SEED"      // the first seed; the others follow
)

// every is how often a campaign reports progress.
const every = 30 * time.Second

// Seeds returns the seeds of n traces, always the same ones. SLUICE_TRACES multiplies n. SLUICE_PROOFTIME plays for
// a time instead and prints progress. SLUICE_SEED sets the first seed.
func Seeds(t testing.TB, n int) iter.Seq[uint64] {
	t.Helper()
	var first uint64
	var long time.Duration
	factor := 1.0
	read(t, seedVar, func(s string) (err error) { first, err = strconv.ParseUint(s, 10, 64); return err })
	read(t, timeVar, func(s string) (err error) { long, err = time.ParseDuration(s); return err })
	read(t, tracesVar, func(s string) (err error) { factor, err = strconv.ParseFloat(s, 64); return err })
	if testing.Short() {
		factor /= 10
	}
	count := uint64(max(factor*float64(n), 1))
	return func(yield func(uint64) bool) {
		began, played := time.Now(), uint64(0)
		told := began
		defer func() { t.Logf("%d traces from seed %d on", played, first) }()
		for long > 0 || played < count {
			if long > 0 && played%64 == 0 {
				now := time.Now()
				if now.Sub(told) >= every {
					told = now
					fmt.Fprintf(os.Stderr, "%s %s: %d traces in %v, the next seed is %d\n",
						now.UTC().Format(time.TimeOnly), t.Name(), played, now.Sub(began).Round(time.Second), first+played)
				}
				if now.Sub(began) >= long {
					break
				}
			}
			played++
			if !yield(first + played - 1) {
				break
			}
		}
		if long > 0 {
			fmt.Fprintf(os.Stderr, "%s: %d traces from seed %d on in %v\n", t.Name(), played, first, time.Since(began).Round(time.Second))
		}
	}
}

// read parses an environment variable, if it is set.
func read(t testing.TB, name string, parse func(string) error) {
	t.Helper()
	if s := os.Getenv(name); s != "" {
		if err := parse(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}
