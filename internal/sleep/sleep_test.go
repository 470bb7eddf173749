package sleep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		for _, step := range []struct {
			d      time.Duration
			slept  bool
			passed time.Duration // since the beginning
		}{{0, true, 0}, {-time.Second, true, 0}, {40 * time.Second, true, 40 * time.Second}, {40 * time.Second, false, time.Minute}, {0, false, time.Minute}} {
			if slept := sleep.For(ctx, step.d); slept != step.slept || time.Since(began) != step.passed {
				t.Errorf("%v: %v after %v, want %v after %v", step.d, slept, time.Since(began), step.slept, step.passed)
			}
		}
	})
}
