// Package provider reads what providers say about their limits. A dialect turns the
// status, headers and first bytes of an answer into an [Observation]: what the answer
// means for the quota, how long to wait, and what it states of limits. It also reads requests (see
// [Speaker]): what they cost before they are sent, and what they have used while their answers pass by. And it
// knows the limits that its provider enforces, so that a configuration needs no numbers. [Prices] turn
// tokens into money.
//
// [Generic] and [GitHub] are types; the others, from "anthropic" to "xai", are data behind [Lookup].
//
// Everything here is a pure function: no network and no clock. Absolute times are
// compared with the answer's own Date, so that the two clocks need not agree.
//
// What providers write is not trusted. A field that makes no sense is left out and counted,
// the others still hold; lengths, numbers and times are bounded. docs/providers.md tells
// what each dialect reads and how doubtful values are resolved.
package provider

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Bounds on what is read of an answer.
const (
	MaxBody   = 64 << 10          // bytes of a body that are looked at
	MaxReset  = retry.Implausible // a reset further away than that is a mistake
	maxLimits = store.MaxLimits   // that one answer can state
	maxFields = 64                // header fields that speak of limits
	maxValue  = 1024              // bytes in the value of one
	maxName   = 64                // bytes in the name of a field, a policy or a unit
	longReset = store.LightFrom   // a quota that takes so long to come back is gone, not merely busy
	leastHint = time.Second       // what a gate makes of any shorter hint
	unstated  = int64(store.NotStated)
)

// Response is an answer, as far as it is looked at.
type Response struct {
	Status int
	// Header may have names in any case. An http.Header can be assigned to it.
	Header map[string][]string
	// Body are the first bytes, decompressed; nil if nobody has read any. Dialects look at no
	// more than MaxBody of it.
	Body []byte
	// Model is the model that was asked for, empty if nobody knows: some limits are of some models alone.
	Model string
	// Received is when the header arrived. It serves where the answer has no Date; if it is
	// zero too, Observe's now does.
	Received time.Time
}

// Observation is what an answer says.
type Observation struct {
	Verdict store.Verdict
	// RetryAfter is how long to wait. If Hinted is set it is the provider's own word, or the time to a moment
	// that its documentation fixes, such as midnight. If not, it is the least that the documentation asks
	// for, 0 if that asks for nothing.
	RetryAfter time.Duration
	Hinted     bool
	// Scope is what a refusal proves to be limited.
	Scope sluice.Scope
	// Cause is why it was refused, for people. It holds nothing of the body.
	Cause string
	// Limits are what the answer states of limits, the one that binds first if it says so.
	Limits []Limit
	// Usage is what the request really took, where the answer tells.
	Usage []sluice.Amount
	// Overage tells that requests beyond a subscription's windows are paid for, and pass.
	Overage bool
	// Ignored counts fields, or parts of them, that made no sense.
	Ignored int
}

// Limit is what an answer states of one limit.
type Limit struct {
	// Name is what the provider calls it, empty if it has only one.
	Name string
	// Unit is what is counted.
	Unit string
	// Resource is the part of the API that it is about, empty for all of it.
	Resource string
	// Kind is how it most likely comes back. Only Concurrency is certain.
	Kind      sluice.Kind
	Size      int64         // or NotStated
	Remaining int64         // or NotStated
	ResetIn   time.Duration // from the moment the answer was made, or NotStated
	Window    time.Duration // 0: not stated
}

// Dialect reads the answers of one provider.
type Dialect interface {
	// Name is what a configuration calls it.
	Name() string
	// Observe reads an answer. now is the local time; it counts only where the answer has
	// neither a Date nor a time of receipt.
	Observe(r *Response, now time.Time) Observation
}

// Coster is a dialect that knows what a request takes before it is sent.
type Coster interface {
	Dialect
	// Cost is what a request takes in the units of the dialect's preset, besides the one
	// request that it is.
	Cost(method, path string) []sluice.Amount
	// Part is the part of the API that a path belongs to, where the provider limits parts
	// apart. It belongs into Request.Model: a refusal can then hold that part alone.
	Part(path string) string
}

// vendors are the dialects that are data.
var vendors = [...]*vendor{
	&anthropic, &openAI, &gemini, &azure, &groq, &mistral, &openRouter, &xAI, &deepSeek, &cohere, &bedrock,
	&stripe, &slack, &notion, &jira, &adMob,
}

// dialects are those that there are, by name.
var dialects = named()

func named() map[string]Speaker {
	all := map[string]Speaker{"generic": Generic{}, "github": GitHub{}}
	for _, v := range vendors {
		all[v.name] = v
	}
	return all
}

// Lookup finds a dialect by its name. All that there are are [Speaker]s.
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
