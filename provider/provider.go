// Package provider reads what providers say about their limits. A dialect turns the status, headers and first bytes
// of a response into an [Observation]: what the response means for the quota, how long to wait, and which limits it
// states. A dialect also reads requests (see [Speaker]): their cost before they are sent, and their use while the
// response passes through. It knows the limits that its provider enforces, so that a configuration needs no numbers.
// [Prices] convert tokens into money.
//
// [Generic] and [GitHub] are types. The others, from "anthropic" to "xai", are data behind [Lookup].
//
// All functions are pure: they use no network and no clock. They compare absolute times with the Date of the
// response, so the two clocks need not agree.
//
// The package does not trust what providers write. It skips and counts fields that make no sense, and uses the
// others. Lengths, numbers and times are bounded. docs/providers.md lists what each dialect reads and how it
// resolves doubtful values.
package provider

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Bounds on what is read of a response.
const (
	MaxBody   = 64 << 10          // bytes of a body that are examined
	MaxReset  = retry.Implausible // a reset further away is a mistake
	maxLimits = store.MaxLimits   // limits that one response can state
	maxFields = 64                // header fields about limits
	maxValue  = 1024              // bytes in the value of a field
	maxName   = 64                // bytes in the name of a field, a policy or a unit
	longReset = store.LightFrom   // a quota that takes this long to come back is exhausted, not merely busy
	leastHint = time.Second       // a gate raises shorter hints to this
	unstated  = int64(store.NotStated)
)

// Response is the part of a response that dialects examine.
type Response struct {
	Status int
	// Header may have names in any case. An http.Header can be assigned to it.
	Header map[string][]string
	// Body has the first bytes, decompressed, or is nil if no body was read. Dialects examine at most MaxBody of it.
	Body []byte
	// Model is the requested model, or empty if it is unknown. Some limits apply only to some models.
	Model string
	// Received is when the header arrived. It stands in for a missing Date. If it is zero too, the now argument of
	// Observe is used.
	Received time.Time
}

// Observation is what a response says about the quota.
type Observation struct {
	Verdict store.Verdict
	// RetryAfter is how long to wait. If Hinted is set, the provider stated it, or its documentation fixes the end,
	// such as midnight. Otherwise it is the minimum that the documentation asks for, or 0 if it asks for none.
	RetryAfter time.Duration
	Hinted     bool
	// Scope is what a refusal proves to be limited.
	Scope sluice.Scope
	// Cause says why the request was refused, for people. It contains nothing from the body.
	Cause string
	// Limits are the limits that the response states. The binding one comes first if the response names it.
	Limits []Limit
	// Usage is what the request really used, if the response says so.
	Usage []sluice.Amount
	// Overage is set if requests beyond a subscription's windows are paid for and accepted.
	Overage bool
	// Ignored counts fields, or parts of fields, that made no sense.
	Ignored int
}

// Limit is what a response states about one limit.
type Limit struct {
	// Name is the provider's name for the limit, or empty if the provider has only one.
	Name string
	// Unit is what the limit counts.
	Unit string
	// Resource is the part of the API that the limit is about, or empty for all of it.
	Resource string
	// Kind is how use most likely comes back. Only Concurrency is certain.
	Kind      sluice.Kind
	Size      int64         // or NotStated
	Remaining int64         // or NotStated
	ResetIn   time.Duration // from the time the response was made, or NotStated
	Window    time.Duration // 0: not stated
	Slop      time.Duration // how far off ResetIn may be; 0: not known
}

// Dialect reads the responses of one provider.
type Dialect interface {
	// Name returns the dialect's name in a configuration.
	Name() string
	// Observe reads a response. now is the local time. It is used only if the response has neither a Date nor a time
	// of receipt.
	Observe(r *Response, now time.Time) Observation
}

// Coster is a dialect that knows the cost of a request before it is sent.
type Coster interface {
	Dialect
	// Cost returns what a request costs in the units of the dialect's preset, in addition to the one request itself.
	Cost(method, path string) []sluice.Amount
	// Part returns the part of the API that a path belongs to, if the provider limits parts separately. Put it into
	// Request.Model, so that a refusal can hold that part alone.
	Part(path string) string
}

// vendors are the dialects that are defined as data.
var vendors = [...]*vendor{
	&anthropic, &openAI, &gemini, &azure, &groq, &mistral, &openRouter, &xAI, &deepSeek, &cohere, &bedrock,
	&stripe, &slack, &notion, &jira, &adMob,
}

// dialects has all dialects by name.
var dialects = named()

func named() map[string]Speaker {
	all := map[string]Speaker{"generic": Generic{}, "github": GitHub{}}
	for _, v := range vendors {
		all[v.name] = v
	}
	return all
}

// Lookup finds a dialect by its name. Every dialect of this package is also a [Speaker].
func Lookup(name string) (Dialect, bool) {
	d, ok := dialects[name]
	return d, ok
}

// Names returns the names of all dialects, sorted.
func Names() []string {
	names := make([]string, 0, len(dialects))
	for name := range dialects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
