package estimate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestBeforeAnythingIsKnown(t *testing.T) {
	var b Book
	if n := b.Input("a", "m", 1000); n < 300 || n > 301 {
		t.Errorf("input of 1000 bytes is %d, want 0.3 tokens a byte", n)
	}
	for most, want := range map[int64]int64{0: 1024, -5: 1024, 100: 100, 64000: 1024} {
		if n := b.Output("a", "m", most); n != want {
			t.Errorf("output of at most %d is %d, want %d", most, n, want)
		}
	}
	if b.Input("a", "m", 0) != 0 || b.Input("a", "m", -1) != 0 {
		t.Error("no text has tokens")
	}
	if b.Error("a", "m") != (Miss{}) || b.Overall() != (Miss{}) || len(b.models.entries) != 0 || b.Len() != 0 {
		t.Error("asking has left something")
	}
}

// Estimates fall back from the agent to other agents with the same model, and then to all calls.
func TestFallsBackFromAgentToModelToAll(t *testing.T) {
	var b Book
	for range 200 {
		b.Learn("a", "dense", 1000, 1000, 50)
		b.Learn("b", "sparse", 1000, 100, 5000)
	}
	near := func(what string, got, want int64) {
		t.Helper()
		if got < want*9/10 || got > want*12/10 {
			t.Errorf("%s is %d, want about %d", what, got, want)
		}
	}
	near("own input", b.Input("a", "dense", 1000), 1000)
	near("own output", b.Output("a", "dense", 0), 50)
	near("the model's input", b.Input("new", "sparse", 1000), 100)
	near("the model's output", b.Output("new", "sparse", 0), 5000)
	near("everybody's input", b.Input("new", "new", 1000), 550)
	near("everybody's output", b.Output("new", "new", 0), 5000)
}

func TestFewAnswersLeaveAMargin(t *testing.T) {
	var b Book
	last := int64(1 << 40)
	for range 9 {
		b.Learn("a", "m", 0, 0, 1000)
		n := b.Output("a", "m", 0)
		if n < 1000 || n > last {
			t.Fatalf("the estimate is %d after %d", n, last)
		}
		last = n
	}
	if last != 1000 {
		t.Errorf("after nine equal answers the estimate is %d", last)
	}
}

// Calls that refer to content at the provider have more tokens than text. They spoil no estimate.
func TestAbsurdRatioIsBounded(t *testing.T) {
	var b Book
	for range 100 {
		b.Learn("a", "m", 10, 1_000_000, 10)
	}
	if n := b.Input("a", "m", 100_000); n > 200_000 {
		t.Errorf("100,000 bytes are %d tokens", n)
	}
}

func TestOldCallsAreForgotten(t *testing.T) {
	var b Book
	for range 100 {
		b.Learn("a", "m", 4000, 4000, 9000)
	}
	for range 250 {
		b.Learn("a", "m", 4000, 800, 100)
	}
	if in, out := b.Input("a", "m", 4000), b.Output("a", "m", 0); in < 800 || in > 830 || out != 100 {
		t.Errorf("after many other calls the estimate is still %d and %d", in, out)
	}
}

func TestEstimatesAreBoundedAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b Book
		name := rapid.SampledFrom([]string{"", "x", "y", strings.Repeat("long", 200)})
		amount := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1, 5000))
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			agent, model := name.Draw(t, "agent"), name.Draw(t, "model")
			text, in, out := amount.Draw(t, "text"), amount.Draw(t, "in"), amount.Draw(t, "out")
			a.Learn(agent, model, text, in, out)
			b.Learn(agent, model, text, in, out)
			most := amount.Draw(t, "most")
			ask := func(b *Book) [4]int64 {
				return [4]int64{b.Input(agent, model, text), b.Input("other", model, text), b.Output(agent, model, most), b.Output("other", "other", most)}
			}
			got := ask(&a)
			if again := ask(&b); got != again {
				t.Fatalf("the same calls gave %v and %v", got, again)
			}
			if slices.Min(got[:]) < 0 || slices.Max(got[:]) > 2*maxAmount {
				t.Fatalf("out of range: %v", got)
			}
			if most > 0 && (got[2] > most || got[3] > most) {
				t.Fatalf("the call allows %d, the estimate is %v", most, got[2:])
			}
			m := a.Error(agent, model)
			if m.Input < 0 || m.Input > mostMiss || m.Output < 0 || m.Output > mostMiss || m.Calls < 1 {
				t.Fatalf("the error is %+v", m)
			}
		}
		if a.Overall() != b.Overall() {
			t.Fatal("the errors differ")
		}
	})
}

// For any ratio and any lengths of responses, the estimates converge.
func TestConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Book
		ratio := rapid.Float64Range(0.05, 1.5).Draw(t, "ratio")
		longest := rapid.Int64Range(1, 100_000).Draw(t, "longest")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		text := func() int64 { return 200 + random.Int64N(200_000) }
		var outputs []int64
		for range 300 {
			n, out := text(), random.Int64N(longest+1)
			b.Learn("a", "m", n, int64(float64(n)*ratio), out)
			outputs = append(outputs, out)
		}
		n := text()
		want := float64(n) * ratio
		if got := float64(b.Input("a", "m", n)); got < want*0.95-2 || got > want*1.05+2 {
			t.Fatalf("%d bytes are %.0f tokens, the estimate is %.0f", n, want, got)
		}
		last := outputs[len(outputs)-recent:]
		above := 0
		for _, out := range last {
			if out > b.Output("a", "m", 0) {
				above++
			}
		}
		if above > recent/10 {
			t.Fatalf("%d of %d answers are above the estimate", above, recent)
		}
		if miss := b.Error("a", "m"); miss.Input > 0.2 {
			t.Fatalf("the error of the input is still %.2f", miss.Input)
		}
	})
}

func TestForgetsTheLeastRecentlyUsed(t *testing.T) {
	var b Book
	b.Learn("kept", "m", 100, 100, 77)
	for i := range 3 * MaxPairs {
		b.Learn(fmt.Sprint("agent", i), fmt.Sprint("model", i), 100, 10, 5)
		if i%1000 == 0 && b.Output("kept", "m", 0) != 77+77/2 {
			t.Fatal("one that is used was forgotten")
		}
	}
	if n := b.Len(); n != MaxPairs {
		t.Errorf("%d pairs are remembered, want %d", n, MaxPairs)
	}
	if n := len(b.models.entries); n > MaxModels {
		t.Errorf("%d models are remembered, want %d", n, MaxModels)
	}
	if b.Error("agent0", "model0").Calls != 0 || b.Error("kept", "m").Calls != 1 {
		t.Error("the wrong one was forgotten")
	}
	if b.Overall().Calls != 3*MaxPairs+1 {
		t.Errorf("%d calls in all", b.Overall().Calls)
	}
}

func TestConcurrentUse(t *testing.T) {
	var b Book
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			agent := fmt.Sprint("agent", i%3)
			for range 500 {
				b.Learn(agent, "m", 100, 30, b.Output(agent, "m", 10))
				b.Input(agent, "m", 100)
				b.Error(agent, "m")
			}
		})
	}
	wg.Wait()
	if n := b.Overall().Calls; n != 4000 {
		t.Errorf("%d calls, want 4000", n)
	}
}

// Error returns the error of the estimates for an agent's calls of a model. It is zero if none is remembered.
func (b *Book) Error(agent, model string) Miss {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.pairs.entries[key{cut(agent), cut(model)}]; e != nil {
		return e.miss
	}
	return Miss{}
}

// Len returns how many pairs of agent and model are remembered.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pairs.entries)
}
