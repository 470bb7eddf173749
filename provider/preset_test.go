package provider_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestLookup(t *testing.T) {
	for _, name := range provider.Names() {
		d, ok := provider.Lookup(name)
		if !ok || d.Name() != name {
			t.Errorf("%q finds %v, %v", name, d, ok)
		}
		if _, ok := provider.Preset(name); !ok {
			t.Errorf("%q has no preset", name)
		}
	}
	if _, ok := provider.Lookup("nobody"); ok {
		t.Error("there is a dialect of nobody")
	}
	if _, ok := provider.Preset("nobody"); ok {
		t.Error("there is a preset of nobody")
	}
}

func TestPresetsAreNotShared(t *testing.T) {
	a, _ := provider.Preset("github")
	a.Limits[0].Size = 1
	if b, _ := provider.Preset("github"); reflect.DeepEqual(a, b) {
		t.Error("changing a preset changes it for others")
	}
}

// names are those that a configuration may state.
var names = []string{
	"admob", "anthropic", "azure", "bedrock", "cohere", "deepseek", "gemini", "generic", "github", "groq", "jira", "mistral",
	"notion", "openai", "openrouter", "slack", "stripe", "xai",
}

func TestEveryProviderSpeaks(t *testing.T) {
	if got := provider.Names(); !reflect.DeepEqual(got, names) {
		t.Errorf("there are %v, want %v", got, names)
	}
	for _, name := range names {
		d, _ := provider.Lookup(name)
		if _, ok := d.(provider.Speaker); !ok {
			t.Errorf("%s does not read requests", name)
		}
	}
}

// All presets can be opened, and let one request through.
func TestPresetsOpen(t *testing.T) {
	resources := map[string]sluice.Resource{}
	for _, name := range names {
		resources[name], _ = provider.Preset(name)
	}
	g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: resources})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, name := range names {
		if _, err := g.Try(t.Context(), sluice.Request{Resource: name, Agent: "a", Model: "m"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A provider that states its limits needs no configuration: its first response is enough.
func TestAnthropicTeachesItsLimits(t *testing.T) {
	preset, _ := provider.Preset("anthropic")
	g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"a": preset}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	d, _ := provider.Lookup("anthropic")
	speaker := d.(provider.Speaker)
	ask := func(model string, tokens int64) (sluice.Ticket, error) {
		return g.Try(t.Context(), sluice.Request{
			Resource: "a", Agent: "x", Model: model, Cost: speaker.Spent(&provider.Usage{Input: tokens, Output: 1}),
		})
	}
	ticket, err := ask("opus-4", 100)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 15, 7, 0, 0, 0, time.UTC)
	o := d.Observe(&provider.Response{Status: 200, Header: map[string][]string{
		"Anthropic-Ratelimit-Requests-Limit": {"50"}, "Anthropic-Ratelimit-Requests-Remaining": {"49"}, "Anthropic-Ratelimit-Requests-Reset": {"2026-11-15T07:00:01Z"},
		"Anthropic-Ratelimit-Input-Tokens-Limit": {"30000"}, "Anthropic-Ratelimit-Input-Tokens-Remaining": {"10000"}, "Anthropic-Ratelimit-Input-Tokens-Reset": {"2026-11-15T07:00:40Z"},
	}}, now)
	if _, err := ticket.Answer(o.Answer(preset.Limits)); err != nil {
		t.Fatal(err)
	}
	if err := ticket.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask("opus-4", 40000); !errors.Is(err, sluice.ErrCapacity) {
		t.Errorf("more than the limit: %v", err)
	}
	if _, err := ask("opus-4", 20000); !errors.Is(err, sluice.ErrNotNow) {
		t.Errorf("more than is left: %v", err)
	}
	s, err := g.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, l := range s.Resources[0].Limits {
		found[l.Name+" "+l.Scope] = l.Limit
	}
	if want := map[string]int64{"requests model=opus-4": 50, "input_tokens model=opus-4": 30000, "output_tokens model=opus-4": 0}; !reflect.DeepEqual(found, want) {
		t.Errorf("limits are %v, want %v", found, want)
	}
}

// open opens a gate on GitHub's preset, and returns a function that asks for a ticket without
// waiting.
func open(t *testing.T) func(method, path string) (sluice.Ticket, error) {
	t.Helper()
	preset, _ := provider.Preset("github")
	g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"github": preset}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	d := provider.GitHub{}
	return func(method, path string) (sluice.Ticket, error) {
		return g.Try(t.Context(), sluice.Request{
			Resource: "github", Agent: "a", Key: "k", Model: d.Part(path), Cost: d.Cost(method, path),
		})
	}
}

func TestGitHubPresetHoldsPartsApart(t *testing.T) {
	acquire := open(t)
	for i := range 10 {
		if _, err := acquire("GET", "/search/code?q=x"); err != nil {
			t.Fatalf("code search %d: %v", i, err)
		}
	}
	if _, err := acquire("GET", "/search/code?q=x"); err == nil {
		t.Error("an eleventh code search in a minute is let through")
	}
	if _, err := acquire("GET", "/search/issues?q=x"); err != nil {
		t.Errorf("another search: %v", err)
	}
	if _, err := acquire("GET", "/repos/o/r"); err != nil {
		t.Errorf("core: %v", err)
	}
}

func TestGitHubPrimaryLimitPausesItsPartAlone(t *testing.T) {
	acquire := open(t)
	preset, _ := provider.Preset("github")
	ticket, err := acquire("GET", "/search/issues?q=x")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 15, 7, 0, 0, 0, time.UTC)
	o := provider.GitHub{}.Observe(&provider.Response{Status: 403, Header: map[string][]string{
		"X-Ratelimit-Resource": {"search"}, "X-Ratelimit-Limit": {"30"}, "X-Ratelimit-Remaining": {"0"},
		"X-Ratelimit-Reset": {fmt.Sprint(now.Add(40 * time.Second).Unix())},
	}}, now)
	if _, err := ticket.Answer(o.Answer(preset.Limits)); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire("GET", "/search/issues?q=x"); err == nil {
		t.Error("search goes on")
	}
	if _, err := acquire("GET", "/repos/o/r"); err != nil {
		t.Errorf("core is held: %v", err)
	}
}

func TestGitHubSecondaryLimitPausesTheKey(t *testing.T) {
	acquire := open(t)
	ticket, err := acquire("POST", "/repos/o/r/issues")
	if err != nil {
		t.Fatal(err)
	}
	o := provider.GitHub{}.Observe(&provider.Response{Status: 403, Body: []byte(`{"message":"You have exceeded a secondary rate limit."}`)}, time.Time{})
	if _, err := ticket.Answer(o.Answer(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := acquire("GET", "/search/issues?q=x"); err == nil {
		t.Error("search goes on")
	}
}

func ExampleGeneric() {
	d, _ := provider.Lookup("generic")
	o := d.Observe(&provider.Response{Status: 429, Header: map[string][]string{
		"RateLimit-Policy": {`"minute";q=100;w=60`},
		"RateLimit":        {`"minute";r=0;t=12`},
	}}, time.Now())
	fmt.Println(o.Verdict, o.RetryAfter)
	a := o.Answer([]sluice.Limit{{Name: "requests", Size: 80, Window: time.Minute}})
	fmt.Println(a.Limits[0].Limit, a.Limits[0].Size, a.Limits[0].Remaining)
	// Output:
	// throttled 12s
	// requests 100 0
}

func ExampleGitHub_Cost() {
	fmt.Println(provider.GitHub{}.Cost("POST", "/repos/o/r/issues"))
	// Output: [{core 1} {points 5} {content 1}]
}
