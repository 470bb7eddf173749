package provider

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// modelAndKey is what most providers of models prove to be limited: the model, or its class, for those
// who share the key.
const modelAndKey = sluice.PerModel | sluice.PerKey

var anthropic = vendor{
	name:    "anthropic",
	address: "https://api.anthropic.com",
	keys:    []string{"x-api-key", "authorization"},
	models:  true,
	free:    true,
	part:    anthropicClass,
	fields: []field{
		{about: "requests", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Bucket, window: time.Minute},
		{about: "input-tokens", name: unitInput, unit: unitInput, kind: sluice.Bucket, window: time.Minute},
		{about: "output-tokens", name: unitOutput, unit: unitOutput, kind: sluice.Bucket, window: time.Minute},
		{about: "tokens"}, // whichever of the others is the tightest, once more
	},
	refine: unified,
	rules: []rule{
		{word: "enforced_spend_limit_reached", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the spend limit of the organization is reached"},
		{says: "specified api usage limits", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the spend limit that was set for the organization is reached"},
		{says: "credit balance is too low", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the credit is used up"},
		{says: "extra usage is required", verdict: store.VerdictBilling, scope: modelAndKey, cause: "the plan does not cover the request"},
		{word: "billing_error", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "billing error"},
		{word: "overloaded_error", verdict: store.VerdictOverloaded, cause: "the provider is overloaded"},
		{status: 429, word: "rejected", verdict: store.VerdictExhausted, scope: sluice.PerKey, cause: "the limit of the subscription is reached"},
	},
	refused: modelAndKey,
	limits: []sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Bucket, Window: time.Minute, Unit: sluice.Requests, Per: perModel},
		{Name: unitInput, Kind: sluice.Bucket, Window: time.Minute, Unit: unitInput, Per: perModel},
		{Name: unitOutput, Kind: sluice.Bucket, Window: time.Minute, Unit: unitOutput, Per: perModel},
	},
	refusal: refusalForm{
		body: `{"type":"error","error":{"type":"$type","message":$message}}`,
		types: map[int]string{
			400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
			413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
		},
		other: "api_error",
	},
}

var perModel = []sluice.Scope{sluice.PerModel}

// unifiedWindows are those that subscriptions are limited over.
var unifiedWindows = [...]struct {
	name   string
	window time.Duration
}{{"5h", 5 * time.Hour}, {"7d", 7 * 24 * time.Hour}}

// unifiedSize is what a subscription's quota counts as: only the used part of it is ever stated.
const unifiedSize = 10_000

// unified reads the limits of a subscription. They are not documented, and no request's part in them
// is known: they are shown, and the preset has none of them.
func unified(rd *reader, all []Limit) []Limit {
	const prefix = "anthropic-ratelimit-unified"
	known := all[:0]
	for _, l := range all {
		if !strings.HasPrefix(l.Name, "unified") {
			known = append(known, l)
		}
	}
	for _, w := range unifiedWindows {
		text := rd.first(prefix + "-" + w.name + "-utilization")
		if text == "" || len(known) >= maxLimits {
			continue
		}
		used, err := strconv.ParseFloat(text, 64)
		if err != nil || !isDecimal(text) {
			rd.ignored++
			continue
		}
		l := newLimit("unified-" + w.name)
		l.Unit, l.Kind, l.Window = "unified_"+w.name, sluice.Fixed, w.window
		l.Size, l.Remaining = unifiedSize, int64(unifiedSize*(1-min(used, 1)))
		if reset := rd.first(prefix + "-" + w.name + "-reset"); reset != "" {
			l.ResetIn = rd.reset(reset)
		}
		known = append(known, l)
	}
	return known
}
