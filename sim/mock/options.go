package mock

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Providers lists the providers that can be served.
var Providers = []string{"anthropic", "openai", "gemini", "github", "generic"}

// Algorithms lists the ways to enforce limits.
var Algorithms = []string{"bucket", "rolling", "fixed"}

// Bounds of the options
const (
	MaxDelay       = time.Hour
	maxConcurrency = 1_000_000
)

// Options configure a server. Only Provider is required.
type Options struct {
	// Provider is one of [Providers].
	Provider string
	// Requests, InputTokens and OutputTokens are limits for each API key. The zero Rate means no limit. OpenAI has
	// one limit on tokens, which is the sum of the two.
	Requests, InputTokens, OutputTokens sim.Rate
	// Burst is the size of the bucket of Requests; 0: one window's worth.
	Burst int64
	// Concurrency is how many requests of a key can be in progress; 0: unlimited.
	Concurrency int64
	// Plan lists the windows of a subscription for each API key, from the shortest to the longest. Provider anthropic
	// states them as Claude's subscriptions do, openai as ChatGPT's do.
	Plan []Window
	// Overage accepts requests beyond the windows, and says so in the headers.
	Overage bool
	// Published selects the limits that the provider publishes. It excludes all other limits.
	Published bool
	// Algorithm is one of [Algorithms]; empty: the provider's own. A bucket holds one window's worth.
	Algorithm string
	// Latency is the time to the first byte of an accepted request. Tail is the mean of an additional, exponentially
	// distributed time.
	Latency, Tail time.Duration
	// Pace is the time between two pieces of a stream; 0: 2 ms; negative: none.
	Pace time.Duration
	// Says is the text of every answer that calls no tool; empty: words that a hash of the request chooses.
	Says string
	// Seed is the seed for the draws of Tail.
	Seed uint64
	// Log receives an [Entry] as a line of JSON for each request that counts against a limit; nil: none. Writes come
	// one at a time.
	Log io.Writer
	// Now is the clock for the limits; nil: time.Now. Latency uses the system's clock, which is virtual in a
	// testing/synctest bubble.
	Now func() time.Time
}

// ErrOptions is the error of [New] for invalid options.
var ErrOptions = errors.New("mock: options that make no sense")

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...)
}

// own is the algorithm that each provider uses.
var own = map[string]string{"anthropic": "bucket", "openai": "bucket", "gemini": "rolling", "github": "fixed", "generic": "rolling"}

func (o *Options) check() error {
	if !slices.Contains(Providers, o.Provider) {
		return bad("provider %.80q is not one of %s", o.Provider, strings.Join(Providers, ", "))
	}
	if o.Algorithm == "" {
		o.Algorithm = own[o.Provider]
	}
	if !slices.Contains(Algorithms, o.Algorithm) {
		return bad("algorithm %.80q is not one of %s", o.Algorithm, strings.Join(Algorithms, ", "))
	}
	none := sim.Rate{}
	tokens := o.InputTokens != none || o.OutputTokens != none
	switch {
	case o.Provider == "gemini" && o.OutputTokens != none:
		return bad("gemini limits no output tokens")
	case tokens && o.Provider != "anthropic" && o.Provider != "openai" && o.Provider != "gemini":
		return bad("%s counts no tokens", o.Provider)
	case o.Provider == "openai" && o.InputTokens != none && o.OutputTokens != none && o.InputTokens.Window != o.OutputTokens.Window:
		return bad("openai has one limit on tokens: input and output need the same window")
	case o.Published && (tokens || o.Requests != none || o.Concurrency != 0):
		return bad("limits of one's own do not go with the published ones")
	case o.Concurrency < 0 || o.Concurrency > maxConcurrency:
		return bad("concurrency %d is not between 0 and %d", o.Concurrency, maxConcurrency)
	}
	if o.Burst != 0 && (o.Burst < 0 || o.Algorithm != "bucket" || o.Requests == none || !sim.BucketFits(max(o.Burst, o.Requests.N), o.Requests.N, o.Requests.Window)) {
		return bad("a burst is that of a bucket of requests, and positive")
	}
	if err := o.checkPlan(); err != nil {
		return err
	}
	for _, d := range []time.Duration{o.Latency, o.Tail} {
		if d < 0 || d > MaxDelay {
			return bad("a delay of %v is not between 0 and %v", d, MaxDelay)
		}
	}
	for _, r := range []sim.Rate{o.Requests, o.InputTokens, o.OutputTokens} {
		if r != none && !sim.BucketFits(r.N, r.N, r.Window) { // all kinds stay within what a bucket can count
			return bad("%v cannot be counted exactly", r)
		}
	}
	if o.Pace == 0 {
		o.Pace = 2 * time.Millisecond
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// kinds maps the names in Algorithms to kinds of limits.
var kinds = map[string]store.Kind{"bucket": store.Bucket, "rolling": store.Rolling, "fixed": store.Fixed}

// limit returns a limit with the algorithm that the options select.
func (o *Options) limit(name, unit string, r sim.Rate) sim.Limit {
	return sim.Limit{
		Name: name, Unit: unit, Kind: kinds[o.Algorithm], Size: r.N, Burst: r.N, Window: r.Window,
		PerModel: o.Provider == "anthropic" || o.Provider == "openai" || o.Provider == "gemini",
	}
}

// limits returns all limits that the server enforces.
func (o *Options) limits() []sim.Limit {
	var all []sim.Limit
	add := func(name, unit string, r sim.Rate) {
		if r.N > 0 {
			all = append(all, o.limit(name, unit, r))
		}
	}
	asked := *o
	if o.Published {
		asked.Requests, asked.InputTokens, asked.OutputTokens = published(o.Provider)
	}
	add("requests", sim.Requests, asked.Requests)
	if o.Burst > 0 {
		all[0].Burst = o.Burst
	}
	switch o.Provider {
	case "anthropic":
		add("input-tokens", sim.InputTokens, asked.InputTokens)
		add("output-tokens", sim.OutputTokens, asked.OutputTokens)
		if asked.Requests.N > 0 { // counting tokens has a separate limit of the same size
			l := o.limit("count-tokens", unitCount, asked.Requests)
			l.PerModel = false
			all = append(all, l)
		}
	case "openai":
		total := asked.InputTokens
		total.N += asked.OutputTokens.N
		total.Window = max(total.Window, asked.OutputTokens.Window)
		add("tokens", sim.Tokens, total)
	case "gemini":
		add("input-tokens", sim.InputTokens, asked.InputTokens)
	case "github":
		all = o.github(all)
	}
	if o.Concurrency > 0 {
		all = append(all, sim.Limit{Name: "concurrency", Unit: places, Kind: store.Concurrency, Size: o.Concurrency, Hidden: o.Provider != "generic"})
	}
	return all
}

// published returns the limits of the lowest paid tier. GitHub's other limits are in [Options.github].
func published(provider string) (requests, input, output sim.Rate) {
	switch provider {
	case "anthropic":
		return sim.Rate{N: 1000, Window: time.Minute}, sim.Rate{N: 2_000_000, Window: time.Minute}, sim.Rate{N: 400_000, Window: time.Minute}
	case "openai":
		return sim.Rate{N: 1000, Window: time.Minute}, sim.Rate{N: 500_000, Window: time.Minute}, sim.Rate{}
	case "gemini":
		return sim.Rate{N: 1000, Window: time.Minute}, sim.Rate{N: 1_000_000, Window: time.Minute}, sim.Rate{}
	}
	return sim.Rate{}, sim.Rate{}, sim.Rate{}
}

// github adds GitHub's other limits: those on search, GraphQL and concurrent requests. It adds the other secondary
// limits only if Published is set.
func (o *Options) github(all []sim.Limit) []sim.Limit {
	all = append(all,
		sim.Limit{Name: "search", Unit: unitSearch, Kind: store.Fixed, Size: 30, Window: time.Minute},
		sim.Limit{Name: "graphql", Unit: unitGraph, Kind: store.Fixed, Size: 5000, Window: time.Hour, Phase: 17 * time.Minute},
	)
	preset, _ := sim.GitHub()
	for _, l := range preset {
		switch {
		case l.Kind == store.Concurrency && o.Concurrency == 0:
			l.Unit = places
			all = append(all, l)
		case l.Kind != store.Concurrency && o.Published:
			if l.Unit == sim.Requests {
				l.Kind, l.Burst = kinds[o.Algorithm], l.Size
			}
			all = append(all, l)
		}
	}
	return all
}
