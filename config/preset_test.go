package config

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

func limitOf(t *testing.T, c sluice.Config, resource, name string) sluice.Limit {
	t.Helper()
	for _, l := range c.Resources[resource].Limits {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("%s has no limit %s", resource, name)
	return sluice.Limit{}
}

// A provider with known limits needs no numbers.
func TestProviderBringsItsLimits(t *testing.T) {
	t.Parallel()
	f := parse(t, "resources: {hub: {provider: github}, other: {provider: anthropic, limits: [{name: minute, size: 80/min}, {name: requests, size: 50/min}]}, plain: {limits: [{name: minute, size: 80/min}]}}")
	c := gate(t, f)
	preset, _ := provider.Preset("github")
	if got := len(c.Resources["hub"].Limits); got != len(preset.Limits) {
		t.Errorf("%d limits, want %d", got, len(preset.Limits))
	}
	if l := limitOf(t, c, "hub", "core"); l.Size != 5000 || !l.SizeIsDefault {
		t.Errorf("core is %+v", l)
	}
	if got := c.Resources["other"].Limits; len(got) != 8 { // requests, input_tokens, output_tokens, four windows of subscriptions, minute
		t.Errorf("anthropic has %+v", got)
	}
	if l := limitOf(t, c, "other", "requests"); l.Size != 50 || len(l.Per) != 1 || l.Per[0] != sluice.PerModel {
		t.Errorf("what is counted by model is so when it is configured too: %+v", l)
	}
	if got := c.Resources["plain"].Limits; len(got) != 1 {
		t.Errorf("a resource without a provider has %+v", got)
	}
	if f.Dialect("hub").Name() != "github" || f.Dialect("other").Name() != "anthropic" || f.Dialect("none").Name() != "generic" {
		t.Error("the wrong dialects")
	}
}

// A configured limit of the same name replaces the provider's, and caps the size that responses state.
func TestConfiguredLimitTakesThePresetsPlace(t *testing.T) {
	t.Parallel()
	f := parse(t, `
resources:
  hub:
    provider: github
    limits:
      - {name: core, size: 1000/h}
      - {name: inflight, concurrency: 5}
      - {name: graphql}
      - {name: mine, size: 5/s, per: [agent]}
`)
	c := gate(t, f)
	preset, _ := provider.Preset("github")
	if got := len(c.Resources["hub"].Limits); got != len(preset.Limits)+1 {
		t.Errorf("%d limits, want one more than %d", got, len(preset.Limits))
	}
	if l := limitOf(t, c, "hub", "core"); l.Size != 1000 || l.SizeIsDefault || l.Unit != "core" || l.Kind != sluice.Fixed || l.Window != time.Hour {
		t.Errorf("core is %+v", l)
	}
	if l := limitOf(t, c, "hub", "inflight"); l.Size != 5 || l.Kind != sluice.Concurrency || l.Unit != sluice.Requests {
		t.Errorf("inflight is %+v", l)
	}
	if l := limitOf(t, c, "hub", "graphql"); l.Size != 5000 || !l.SizeIsDefault {
		t.Errorf("graphql is %+v", l)
	}
	if l := limitOf(t, c, "hub", "mine"); l.Unit != sluice.Requests || l.Kind != sluice.Rolling {
		t.Errorf("mine is %+v", l)
	}
	opens(t, f)
	roundTrip(t, f)
}

func TestLimitThatIsNotThePresetsIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{name: core, size: 100/min}": "test.yaml:1:65: resources.hub.limits[0].size: the provider counts its limit core over 1h, not over 1m; call",
		"{name: a, size: 1/s}, {name: b, size: 1/s}, {name: c, size: 1/s}, {name: d, size: 1/s}, {name: e, size: 1/s}, {name: f, size: 1/s}, {name: g, size: 1/s}, {name: h, size: 1/s}": "test.yaml:1:45: resources.hub.limits: with those of the provider there are 17 limits, at most 16",
	} {
		if _, err := Parse("test.yaml", []byte("resources: {hub: {provider: github, limits: ["+text+"]}}"), environment); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestAddPresets(t *testing.T) {
	t.Parallel()
	f := Default()
	f.AddPresets()
	for _, name := range []string{"anthropic", "gemini", "github", "openai"} {
		if f.Resources[name].Provider != name {
			t.Errorf("there is no %s in %v", name, f.Resources)
		}
	}
	opens(t, f)
	f = parse(t, "resources: {github: {limits: [{name: minute, size: 1/min}]}}")
	f.AddPresets()
	if got := gate(t, f).Resources["github"].Limits; len(got) != 1 {
		t.Errorf("what is configured is overruled: %+v", got)
	}
}

func TestModeObserve(t *testing.T) {
	t.Parallel()
	f := parse(t, "resources: {api: {mode: observe, limits: [{name: minute, size: 1/min}]}}")
	c := gate(t, f)
	c.Store = "mem:"
	g, err := sluice.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for range 3 {
		if _, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"}); err != nil {
			t.Error(err)
		}
	}
}
