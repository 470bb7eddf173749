package sim_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/sim"
)

// A long run reports its progress, also within a strategy.
func TestProgressMovesWithinARun(t *testing.T) {
	var seen []sim.Progress
	if _, err := sim.Simulate(t.Context(), load(t, "research"), 1, func(p sim.Progress) { seen = append(seen, p) }); err != nil {
		t.Fatal(err)
	}
	within := false
	for i, p := range seen[1:] {
		before := seen[i]
		if p.Done < before.Done || p.Done == before.Done && p.Part < before.Part || p.Part < 0 || p.Part > 1 {
			t.Errorf("after %+v came %+v", before, p)
		}
		within = within || p.Part > 0.1 && p.Part < 0.9
	}
	if !within {
		t.Error("it never moved within a run")
	}
	var runs []int
	for _, p := range seen {
		runs = append(runs, p.Done)
	}
	if want := 2 * len(sim.Strategies()); len(slices.Compact(runs)) != want || seen[0].Runs != want {
		t.Errorf("%d runs seen of %d", len(slices.Compact(runs)), want)
	}
}

// A cancelled simulation ends early.
func TestSimulationsEndWithTheirContext(t *testing.T) {
	for name, simulate := range map[string]func(context.Context, func(sim.Progress)) error{
		"simulate": func(ctx context.Context, progress func(sim.Progress)) error {
			_, err := sim.Simulate(ctx, load(t, "squad"), 1, progress)
			return err
		},
		"ablate": func(ctx context.Context, progress func(sim.Progress)) error {
			_, err := sim.Ablate(ctx, load(t, "squad"), 1, progress)
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		after := 0
		err := simulate(ctx, func(p sim.Progress) {
			if ctx.Err() != nil {
				after++
			}
			if p.Part > 0.3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || after > 2 {
			t.Errorf("%s: %v, told %d more times", name, err, after)
		}
		cancel()
	}
}
