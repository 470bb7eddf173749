package provider

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// modelAndKey is the usual scope of a refusal by a model provider: the model, or its class, for all callers that
// share the key.
const modelAndKey = sluice.PerModel | sluice.PerKey

var anthropic = vendor{
	name:    "anthropic",
	address: "https://api.anthropic.com",
	keys:    []string{"x-api-key", "authorization"},
	places: places{
		prefixes: version1, calls: []string{"messages", "complete", "models", "files", "skills", "chat"},
		asides: []string{"/api", "/v1/oauth", "/v1/organizations"}, // Claude Code's settings and telemetry, login, administration
	},
	models: true,
	free:   true,
	part:   anthropicClass,
	fields: []field{
		{about: "requests", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Bucket, window: time.Minute},
		{about: "input-tokens", name: unitInput, unit: unitInput, kind: sluice.Bucket, window: time.Minute},
		{about: "output-tokens", name: unitOutput, unit: unitOutput, kind: sluice.Bucket, window: time.Minute},
		{about: "tokens"}, // repeats the tightest of the others
	},
	refine: unified,
	rules: []rule{
		{word: "enforced_spend_limit_reached", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the spend limit of the organization is reached"},
		{says: "specified api usage limits", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the spend limit that was set for the organization is reached"},
		{says: "credit balance is too low", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the credit is used up"},
		{says: "extra usage is required", verdict: store.VerdictBilling, scope: modelAndKey, cause: "the plan does not cover the request"},
		{word: "billing_error", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "billing error"},
		{word: "overloaded_error", verdict: store.VerdictOverloaded, cause: "the provider is overloaded"},
		{status: 429, word: "rejected", verdict: store.VerdictExhausted, scope: sluice.PerKey, plan: true, cause: planCause},
	},
	refused: modelAndKey,
	limits: append([]sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Bucket, Window: time.Minute, Unit: sluice.Requests, Per: perModel},
		{Name: unitInput, Kind: sluice.Bucket, Window: time.Minute, Unit: unitInput, Per: perModel},
		{Name: unitOutput, Kind: sluice.Bucket, Window: time.Minute, Unit: unitOutput, Per: perModel},
	}, planLimits()...),
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
