package demo

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/sim"
)

func scenario(t *testing.T, text string) *sim.Scenario {
	t.Helper()
	sc, err := sim.Parse("s.yaml", strings.NewReader("name: s\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func TestScenariosThatCanBeRunLive(t *testing.T) {
	sc := scenario(t, `
provider:
  limits: [{name: minute, size: 60/min, burst: 10}, {name: tokens, size: 90000/min, burst: 90000, unit: input_tokens, per: [model]}, {name: places, concurrency: 9}]
  service: {median: 200ms}
agents:
  - {name: web, class: p0, jobs: 3, calls: 2, every: 2s, start: 1s, workers: 2, model: m, input_tokens: 500}
  - {name: batch, class: p2, calls: 20, workers: 4, model: n, input_tokens: 100}
`)
	p, err := FromScenario(sc)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Provider, " "); got != "--requests 60/min --burst 10 --input-tokens 90000/min --concurrency 9 --algorithm bucket" {
		t.Errorf("the provider is %s", got)
	}
	if p.Gate != `[{name: "minute", size: 60/min, unit: requests, burst: 10}, {name: "tokens", size: 90000/min, unit: input_tokens, burst: 90000, per: [model]}, {name: "places", concurrency: 9}]` {
		t.Errorf("the gate is told %s", p.Gate)
	}
	if want := (Agent{Name: "web", Class: "p0", Calls: 6, Workers: 2, PerJob: 2, Start: time.Second, Every: 2 * time.Second, Model: "m", Tokens: 500}); p.Agents[0] != want {
		t.Errorf("%+v, want %+v", p.Agents[0], want)
	}
	// 26 calls on a bucket of 10 that gets one a second: the last comes in after 16 s.
	if p.Calls() != 26 || p.Ideal() < 15*time.Second || p.Ideal() > 18*time.Second || p.Latency != 200*time.Millisecond || p.Tail != 0 {
		t.Errorf("%d calls in %v, latency %v and %v", p.Calls(), p.Ideal(), p.Latency, p.Tail)
	}
	if p.Limits() != "60/min, 90000/min input tokens, 9 at once" {
		t.Errorf("limits %q", p.Limits())
	}
	if p.Unstated {
		t.Error("the gate does not learn limits per minute")
	}
	if short, err := FromScenario(scenario(t, "provider: {limits: [{name: m, size: 20/5s}]}\nagents: [{name: a, calls: 3}]")); err != nil || !short.Unstated {
		t.Errorf("the gate takes 20 in 5 s for a limit per minute: %v", err)
	}
	for what, text := range map[string]string{
		"hidden":         "provider: {limits: [{name: m, size: 60/min, hidden: true}]}\nagents: [{name: a, calls: 3}]",
		"on points":      "provider: {limits: [{name: m, size: 60/min, unit: points}]}\nagents: [{name: a, calls: 3}]",
		"second of its":  "provider: {limits: [{name: m, size: 60/min}, {name: h, size: 600/h}]}\nagents: [{name: a, calls: 3}]",
		"all its limits": "provider: {limits: [{name: m, size: 60/min}, {name: i, size: 600/h, unit: input_tokens, kind: fixed}]}\nagents: [{name: a, calls: 3, input_tokens: 1}]",
		"one minute":     "provider: {limits: [{name: m, size: 60/min}, {name: i, size: 600/h, unit: input_tokens}]}\nagents: [{name: a, calls: 3, input_tokens: 1}]",
		"33 agents":      "provider: {limits: [{name: m, size: 60/min}]}\nagents: [{name: a, count: 33}]",
		"at best":        "provider: {limits: [{name: m, size: 60/min}]}\nagents: [{name: a, calls: 6000, workers: 9}]",
	} {
		if _, err := FromScenario(scenario(t, text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Calls of a job begin when the job does, and have about the requested number of tokens.
func TestJobsComeUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &caller{Agent: Agent{PerJob: 2, Start: time.Second, Every: 3 * time.Second}}
		began := time.Now()
		var at []time.Duration
		for i := range int64(5) {
			if !c.due(t.Context(), began, i+1) {
				t.Fatal("there is no more time")
			}
			at = append(at, time.Since(began))
		}
		if want := []time.Duration{1e9, 1e9, 4e9, 4e9, 7e9}; !slices.Equal(at, want) {
			t.Errorf("%v, want %v", at, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if c.due(ctx, began, 100) {
			t.Error("it waits for nobody")
		}
	})
	if c := (&caller{Agent: Agent{Tokens: 1000}}); len(c.text()) < 3900 || len(c.text()) > 4000 {
		t.Errorf("%d bytes for 1000 tokens", len(c.text()))
	}
}
