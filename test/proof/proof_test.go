// Package proof_test holds the arrival guard against its proof: random pools, callers,
// networks and crashes are played in virtual time, and every request that was sent is judged by
// an exact model of the provider.
//
// SLUICE_TRACES multiplies the number of traces, see package tape; a failure names the seed.
package proof_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// traces scales a number of traces.
func traces(t *testing.T, n int) int {
	t.Helper()
	if testing.Short() {
		n /= 10
	}
	if s := os.Getenv("SLUICE_TRACES"); s != "" {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("SLUICE_TRACES: %v", err)
		}
		n = int(f * float64(n))
	}
	return max(n, 1)
}

// prove plays n traces of a shape and shows the smallest failure of the first seed that
// fails.
func (sh shape) prove(t *testing.T, n int) (played, kept int) {
	t.Helper()
	var sum tally
	for seed := range tape.Seeds(t, n) {
		played++
		w := play(sh.draw(seed), nil)
		if w.failure != nil {
			small := w.trace.shrink()
			var log strings.Builder
			again := play(small, &log)
			t.Fatalf("seed %d: %v\nshrunk to %d requests: %v\n%v%s", seed, w.failure, len(small.plans), again.failure, small, log.String())
		}
		if !w.tally.lost {
			kept++
		}
		sum.sent += w.tally.sent
		sum.refused += w.tally.refused
		sum.renewed += w.tally.renewed
		sum.granted += w.tally.granted
		sum.slow += w.tally.slow
	}
	t.Logf("%d traces: %+v, %d within the premise", played, sum, kept)
	return played, kept
}

func TestAutoHoldsWhileDelaysStayWithinTheSlack(t *testing.T) {
	t.Parallel()
	shape{guard: store.GuardAuto, premise: withinSlack, spent: true, judging: true}.prove(t, 8000)
}

// Fixed windows alone, where most can go wrong: a reset that has to be learned lies in
// every window.
func TestFixedWindowsHoldWhileTheirResetIsLearned(t *testing.T) {
	t.Parallel()
	fixed := []store.Kind{store.Fixed}
	shape{guard: store.GuardAuto, premise: withinSlack, spent: true, judging: true, kinds: fixed}.prove(t, 3000)
	shape{guard: store.GuardStrict, premise: withinTTL, spent: true, judging: true, kinds: fixed}.prove(t, 3000)
}

func TestStrictHoldsWithAnyDelayUpToTheTTL(t *testing.T) {
	t.Parallel()
	shape{guard: store.GuardStrict, premise: withinTTL, spent: true, judging: true}.prove(t, 8000)
}

func TestAutoHoldsWithAnyDelayUpToTheTTLWhileHeadersAreQuick(t *testing.T) {
	t.Parallel()
	played, kept := shape{guard: store.GuardAuto, premise: withinTTL, quick: true, judging: true}.prove(t, 8000)
	if kept < played*6/10 {
		t.Errorf("only %d of %d traces stayed quick", kept, played)
	}
}

// A judge that never finds anything proves nothing.
func TestWithoutAGuardViolationsAreFound(t *testing.T) {
	t.Parallel()
	for _, k := range []store.Kind{store.Bucket, store.Rolling, store.Fixed} {
		sh := shape{guard: store.GuardOff, premise: withinSlack, kinds: []store.Kind{k}}
		seed := uint64(0)
		for play(sh.draw(seed), nil).tally.refused == 0 {
			if seed++; seed == 200 {
				t.Fatalf("%v: no violation in %d traces", k, seed)
			}
		}
		t.Logf("%v: the first violation is in trace %d", k, seed)
	}
}

// Beyond its premise the guard promises nothing; how often it fails there is printed.
func TestSlowAnswersWithHeavyTails(t *testing.T) {
	t.Parallel()
	for _, d := range []sim.Delay{sim.LightTail, sim.HeavyTail, {Median: 100 * time.Millisecond, Sigma: 1.5}, {Median: 300 * time.Millisecond, Sigma: 1.5}} {
		sh := shape{guard: store.GuardAuto, premise: untruncated, plain: true, slow: true, request: d}
		n, sum := traces(t, 500), tally{}
		for seed := range uint64(n) {
			w := play(sh.draw(seed), nil)
			sum.sent += w.tally.sent
			sum.refused += w.tally.refused
		}
		t.Logf("requests take %v, sigma %.1f: %d of %d refused (%.4f%%)", d.Median, d.Sigma, sum.refused, sum.sent, 100*float64(sum.refused)/float64(sum.sent))
	}
}
