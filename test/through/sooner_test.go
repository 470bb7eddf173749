package through_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sim/mock"
)

// saturate has workers send calls without a pause until the test calls the function that it returns.
func (p *preset) saturate(workers int) (stop func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				p.send(i, false)
			}
		})
	}
	return func() {
		cancel()
		_ = p.gate.Close() // the waiting calls end
		wg.Wait()
	}
}

// advice returns what doctor says about the provider.
func (p *preset) advice() string {
	p.t.Helper()
	d, err := p.gate.Diagnose(p.t.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprint(d.Resources[0].Advice)
}

// Of 40 in 10 s, of which each response states one as used and back in 250 ms, the gate gave out 12, because the preset says
// a minute.
func TestALimitThatComesBackSoonerIsUsed(t *testing.T) {
	const size = 40 // requests
	for _, c := range []struct {
		provider, unit         string
		window                 time.Duration
		bucket, rolling, fixed float64 // part of the limit that is reached
	}{
		{"openai", "requests", 10 * time.Second, 0.95, 0.9, 0.95},
		{"openai", "requests", 30 * time.Second, 0.95, 0.9, 0.95},
		{"openai", "requests", time.Second, 0.95, 0.9, 0.95},
		{"openai", "tokens", 10 * time.Second, 0.95, 0.88, 0.88},
		// Resets are in whole seconds.
		{"anthropic", "requests", 10 * time.Second, 0.9, 0.8, 0.9},
		{"anthropic", "tokens", 10 * time.Second, 0.9, 0.75, 0.85},
		{"anthropic", "requests", time.Second, 0.4, 0.25, 0.4},
	} {
		for _, algorithm := range mock.Algorithms {
			t.Run(fmt.Sprint(c.provider, " ", c.unit, " ", algorithm, " ", c.window), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := mock.Options{Provider: c.provider, Algorithm: algorithm, Latency: 20 * time.Millisecond, Tail: 10 * time.Millisecond, Seed: 1}
					perWindow := int64(size)
					if c.unit == "requests" {
						o.Requests = rate(size, c.window)
					} else {
						o.InputTokens = rate(20*size, c.window)
						if c.provider == "anthropic" {
							perWindow *= 2 // a request has 10 input tokens; max_tokens, 20, does not count
						}
					}
					p := presetFor(t, o)
					stop := p.saturate(2*size + 20)
					time.Sleep(30 * time.Second)
					if c.unit == "tokens" {
						time.Sleep(time.Minute) // the estimate is learned as well
					}
					before := p.mock.Stats()
					span := min(12*c.window, 4*time.Minute)
					time.Sleep(span)
					after := p.mock.Stats()
					stop()
					part := float64(after.Accepted-before.Accepted) / float64(perWindow) * float64(c.window) / float64(span)
					least := map[string]float64{"bucket": c.bucket, "rolling": c.rolling, "fixed": c.fixed}[algorithm]
					t.Logf("%.0f%% used", 100*part)
					if part < least || after.Throttled > 0 {
						t.Errorf("%.0f%% of the limit used, at least %.0f%% can be; %d turned away", 100*part, 100*least, after.Throttled)
					}
				})
			})
		}
	}
}

// A configured limit stays as it is. doctor says what responses state, what the gate counts, and what to configure.
func TestDoctorTellsThatResponsesStateMoreRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := presetWith(t, mock.Options{Provider: "openai", Requests: rate(40, 10*time.Second), Latency: 20 * time.Millisecond},
			func(r *sluice.Resource) { r.Limits[0].Size = 40 }, nil)
		stop := p.saturate(60)
		time.Sleep(2 * time.Minute)
		said := p.advice()
		stop()
		for _, want := range []string{"Responses state 39 of 40 free", "while the gate counts", "a bucket that refills in a minute", "size: 40/10s"} {
			if !strings.Contains(said, want) {
				t.Errorf("doctor does not say %q: %s", want, said)
			}
		}
	})
}

// Where the contradiction is resolved, doctor says how the limit is counted now.
func TestDoctorTellsHowASoonerLimitIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := presetFor(t, mock.Options{Provider: "openai", Requests: rate(40, 10*time.Second), Latency: 20 * time.Millisecond})
		stop := p.saturate(60)
		time.Sleep(time.Minute)
		said := p.advice()
		stop()
		if !strings.Contains(said, "counted as a bucket that refills in 10s") || strings.Contains(said, "while the gate counts") {
			t.Errorf("doctor says %s", said)
		}
	})
}

// A forecast counts on the resets that responses state, before the window that the gate assumes is shorter. With windows
// of a minute the last of 300 calls at 40 in 10 s was expected in 7 minutes, and calls that could wait for 5 were refused.
func TestForecastsCountOnStatedResets(t *testing.T) {
	for _, name := range []string{"openai", "anthropic"} {
		synctest.Test(t, func(t *testing.T) {
			p := presetFor(t, mock.Options{Provider: name, Algorithm: "rolling", Requests: rate(40, 10*time.Second), Latency: 20 * time.Millisecond})
			stop := p.saturate(300)
			time.Sleep(5 * time.Second)
			waiting, err := p.gate.Why(t.Context(), name)
			if err != nil || len(waiting) < 250 || waiting[len(waiting)-1].ExpectedAt == nil {
				t.Errorf("%s: %d wait (%v)", name, len(waiting), err)
			} else if d := time.Until(*waiting[len(waiting)-1].ExpectedAt); d < time.Minute || d > 2*time.Minute {
				t.Errorf("%s: the last of %d calls is expected in %v, and can go in a minute or two", name, len(waiting), d)
			}
			stop()
		})
	}
}
