package sluice_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
)

func launch(tb testing.TB, g *sluice.Gate, window time.Duration) time.Duration {
	tb.Helper()
	wait, err := g.StartDelay(context.Background(), "api", window)
	if err != nil {
		tb.Fatal(err)
	}
	return wait
}

func TestLaunchesAreSpreadOverTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		var got []time.Duration
		for range 8 {
			got = append(got, launch(t, g, 8*time.Minute))
		}
		want := []time.Duration{0, 4, 2, 6, 1, 5, 3, 7}
		for i := range want {
			want[i] *= time.Minute
		}
		if !slices.Equal(got, want) {
			t.Errorf("launches wait %v, want %v", got, want)
		}
		wantUntouched(t, g)
	})
}

// A job that asks later gets the time that is left until its position in the window.
func TestLaunchCountsFromNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		launch(t, g, time.Hour)
		time.Sleep(10 * time.Minute)
		if got := launch(t, g, time.Hour); got != 20*time.Minute {
			t.Errorf("the second waits %v, want until half of the window has passed", got)
		}
		time.Sleep(10 * time.Minute)
		if got := launch(t, g, time.Hour); got >= time.Hour || got < 0 {
			t.Errorf("the third, whose place has passed, waits %v", got)
		}
		time.Sleep(3 * time.Hour)
		if got := launch(t, g, time.Hour); got != 0 {
			t.Errorf("the first of a new window waits %v", got)
		}
	})
}

func TestLaunchesOfTwoProcessesAreSpreadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		one, two := s.open(t, sluice.Config{}, roomy()), s.open(t, sluice.Config{}, roomy())
		if a, b := launch(t, one, time.Minute), launch(t, two, time.Minute); a != 0 || b != 30*time.Second {
			t.Errorf("they wait %v and %v", a, b)
		}
	})
}

func TestResourcesLaunchApart(t *testing.T) {
	g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {}, "other": {}}})
	launch(t, g, time.Minute)
	if wait, err := g.StartDelay(t.Context(), "other", time.Minute); err != nil || wait != 0 {
		t.Errorf("the first of another resource waits %v, %v", wait, err)
	}
}

// Jobs without a resource are spread together, whatever resources their processes have.
func TestLaunchesWithoutAResourceAreSpreadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		var got []time.Duration
		for _, name := range []string{"api", "other"} {
			g := s.open(t, sluice.Config{Resources: map[string]sluice.Resource{name: {}}})
			wait, err := g.StartDelay(t.Context(), "", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, wait)
		}
		if want := []time.Duration{0, 30 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("they wait %v, want %v", got, want)
		}
	})
}

func TestLaunchWithoutAWindowIsNow(t *testing.T) {
	g := open(t, roomy())
	for range 3 {
		if got := launch(t, g, 0); got != 0 {
			t.Errorf("it waits %v", got)
		}
	}
	if got := launch(t, g, 24*time.Hour); got != 0 {
		t.Errorf("the first in a day waits %v", got)
	}
}

func TestLaunchThatMakesNoSense(t *testing.T) {
	g := open(t, roomy())
	for _, window := range []time.Duration{-1, 24*time.Hour + 1} {
		_, err := g.StartDelay(t.Context(), "api", window)
		if e := wantError(t, err, sluice.ErrInvalid); !strings.Contains(e.Error(), window.String()) || e.Resource != "api" {
			t.Errorf("the error is %q about %q", e, e.Resource)
		}
	}
	_, err := g.StartDelay(t.Context(), "mars", time.Minute)
	wantError(t, err, sluice.ErrUnknownResource)
}

// However many jobs ask at once, no two start together.
func TestNoTwoLaunchesCoincide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		const jobs, window = 500, time.Hour
		var mu sync.Mutex
		var starts []time.Duration
		var wg sync.WaitGroup
		for range jobs {
			wg.Go(func() {
				time.Sleep(launch(t, g, window))
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, time.Since(bubbleStart))
			})
		}
		wg.Wait()
		slices.Sort(starts)
		for i := 1; i < jobs; i++ {
			if gap := starts[i] - starts[i-1]; gap < window/1024 || gap > window/128 {
				t.Fatalf("two starts are %v apart, want a window of %v spread evenly over %d", gap, window, jobs)
			}
		}
		if starts[jobs-1] >= window {
			t.Errorf("the last starts after %v", starts[jobs-1])
		}
	})
}
