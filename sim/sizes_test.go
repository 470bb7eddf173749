package sim

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// No strategy knows what a call will use before it is sent. If the tokens of all calls that reach the provider after
// some time were different, everything up to that time would stay the same, under every strategy.
func TestNoStrategySeesWhatACallWillUse(t *testing.T) {
	sc, err := Load("research")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range strategies {
		t.Run(s.name, func(t *testing.T) {
			sends := func(from store.Time) []store.Time {
				r := newRun(sc, s.make, LightTail, 1)
				r.sizes.alter = func(_ *call, req *Request) {
					if r.now >= from {
						req.Input, req.Output = req.Input/3+1, req.Output*3
					}
				}
				var all []store.Time
				r.tally.sends.all = &all
				if err := r.finishAll(); err != nil {
					t.Fatal(err)
				}
				return all
			}
			plain := sends(Never)
			different := false
			for _, minutes := range []time.Duration{1, 3, 6, 11} {
				from := Epoch.Add(minutes * time.Minute)
				other := sends(from)
				until := func(all []store.Time) []store.Time {
					i, _ := slices.BinarySearch(all, from)
					return all[:i]
				}
				if !slices.Equal(until(plain), until(other)) {
					t.Errorf("sends before minute %d depend on what later calls use", minutes)
				}
				different = different || !slices.Equal(plain, other)
			}
			if !different {
				t.Error("what calls use changes nothing at all")
			}
		})
	}
}

// A call always costs the same, however often and in which order it is sent.
func TestACallAlwaysCostsTheSame(t *testing.T) {
	sc, err := Load("research")
	if err != nil {
		t.Fatal(err)
	}
	one, two := sizes{sc: sc, seed: 7}, sizes{sc: sc, seed: 8}
	var input, output, calls float64
	same := 0
	for _, c := range slices.Backward(allCalls(sc)) {
		req := one.of(c)
		if again := one.of(c); *again != *req {
			t.Fatalf("call %d costs %+v, then %+v", c.number, *req, *again)
		}
		if *two.of(c) == *req {
			same++
		}
		input, output, calls = input+float64(req.Input), output+float64(req.Output), calls+1
	}
	if same > 1 {
		t.Errorf("%d calls cost the same with another seed", same)
	}
	// An agent's usual size is the mean usage of its calls: 38,000 tokens for 32 of them.
	if got := 32 * (input + output) / calls; math.Abs(got/38_080-1) > 0.06 {
		t.Errorf("an agent uses %.0f tokens", got)
	}
}

// Sizes fit the limits, because a call that a limit can never hold would be refused forever.
func TestSizesFitTheirLimits(t *testing.T) {
	sc := &Scenario{
		Limits: []Limit{
			{Name: "input", Kind: store.Bucket, Unit: InputTokens, Size: 1000, Burst: 120, Window: time.Minute},
			{Name: "both", Kind: store.Rolling, Unit: Tokens, Size: 150, Window: time.Minute},
		},
		Fleet: []Agent{{Name: "a", Jobs: 1, Calls: 1000, Workers: 1, Spread: 2, Request: Request{Input: 100, Output: 50}}},
	}
	s := sizes{sc: sc, seed: 1}
	cut := 0
	for _, c := range allCalls(sc) {
		req := s.of(c)
		if req.Input > 120 || req.Input+req.Output > 150 {
			t.Fatalf("call %d costs %+v", c.number, *req)
		}
		if req.Input == 120 {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no call was larger than its limit")
	}
}

// allCalls returns the calls of the scenario in the order in which they arrive.
func allCalls(sc *Scenario) (calls []*call) {
	_, coming := demand(sc)
	for coming.next() != Never {
		for a := coming.pop(); a.n > 0; {
			calls = append(calls, a.take())
		}
	}
	return calls
}
