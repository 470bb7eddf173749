package estimate

import (
	"fmt"
	"testing"
)

func TestPlanLearnsWhatCallsTake(t *testing.T) {
	var p Plan
	if _, known := p.Cost("w", "m", 1000); known {
		t.Error("a window that was never stated is known")
	}
	// A call of 10,000 tokens takes 700 millionths; the figure is in whole percent, rounded down.
	real := int64(123_456)
	p.State("w", real/10_000*10_000, false)
	for i := range 200 {
		_, known := p.Cost("w", "m", 10_000)
		if i < 5 && known {
			t.Errorf("known after %d calls, before the figure has moved twice", i)
		}
		p.Use("w", "m", 10_000)
		real += 700
		p.State("w", real/10_000*10_000, false)
	}
	n, known := p.Cost("w", "m", 10_000)
	if !known || n < 620 || n > 780 {
		t.Errorf("a call takes %d (%v), want about 700", n, known)
	}
	if other, known := p.Cost("w", "other", 20_000); !known || other < 2*n-1 || other > 2*n+1 {
		t.Errorf("another model takes %d (%v), want what all do", other, known)
	}
	if most, _ := p.Cost("w", "m", 1<<40); most != mostOfWindow {
		t.Errorf("a huge call takes %d, want the bound", most)
	}
	if least, _ := p.Cost("w", "m", 0); least != 1 {
		t.Errorf("a call of nothing takes %d", least)
	}
}

// Other users of the subscription make single samples larger, but not the estimate.
func TestPlanIsNotFooledByOthers(t *testing.T) {
	var p Plan
	real := int64(0)
	p.State("w", 0, false)
	for i := range 60 {
		p.Use("w", "m", 1000)
		real += 1000
		if i%15 == 14 {
			real += 40_000 // somebody else
		}
		p.State("w", real, false)
	}
	if n, _ := p.Cost("w", "m", 1000); n < 900 || n > 1300 {
		t.Errorf("a call takes %d, want about 1000", n)
	}
}

func TestPlanBeginsAnewAfterAReset(t *testing.T) {
	var p Plan
	for used := int64(0); used < 300_000; used += 10_000 {
		p.State("w", used, false)
		p.Use("w", "m", 1000)
	}
	before, _ := p.Cost("w", "m", 1000)
	p.State("w", 0, true)
	p.Use("w", "m", 1) // next to nothing since
	p.State("w", 10_000, true)
	if after, known := p.Cost("w", "m", 1000); !known || after != before {
		t.Errorf("a call takes %d after the reset, %d before", after, before)
	}
	if used, paid, ok := p.Stated("w"); !ok || used != 10_000 || !paid {
		t.Errorf("stated: %d, paid %v, %v", used, paid, ok)
	}
}

func TestPlanIsBounded(t *testing.T) {
	var p Plan
	for i := range 10 * MaxWindows {
		p.State(fmt.Sprint(i), int64(i), false)
		p.State("kept", int64(i)*6000, false)
		p.Use("kept", fmt.Sprint("model", i), 1000)
	}
	w := p.windows["kept"]
	if len(p.windows) > MaxWindows || w == nil || len(w.sums) > maxPerWindow+1 || len(w.rates) > maxPerWindow {
		t.Errorf("%d windows, %+v", len(p.windows), w)
	}
}
