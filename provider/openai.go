package provider

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

var openAI = vendor{
	name:     "openai",
	address:  "https://api.openai.com",
	keys:     []string{"authorization"},
	places:   places{prefixes: version1, calls: openAICalls, unprefixed: []string{"api.perplexity.ai", "api.githubcopilot.com", "models.inference.ai.azure.com"}},
	models:   true,
	reserved: true,
	larger:   true,
	hides:    true,
	millis:   true,
	part:     datedModel,
	fields:   openAIFields,
	rules:    openAIRules,
	refused:  modelAndKey,
	overload: sluice.PerModel,
	refine:   codex,
	limits:   append(perMinute(sluice.Bucket), planLimits()...),
	refusal:  openAIRefusal,
}

// openAICalls are the first words of OpenAI's calls, which compatible providers have too.
var openAICalls = []string{
	"chat", "completions", "responses", "embeddings", "models", "audio", "images", "videos", "moderations", "files", "uploads", "batches", "realtime",
	"fine_tuning", "vector_stores", "conversations", "containers", "evals", "assistants", "threads", "rerank", "messages",
}

// version1 is the prefix of OpenAI and of most compatible providers.
var version1 = []string{"/v1"}

// openAIFields are the header fields of OpenAI and compatible providers. A project can have its own limits; the
// smaller one binds.
var openAIFields = []field{
	{about: "requests", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Bucket, window: time.Minute},
	{about: "tokens", name: unitTokens, unit: unitTokens, kind: sluice.Bucket, window: time.Minute},
	{about: "project-requests", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Bucket, window: time.Minute},
	{about: "project-tokens", name: unitTokens, unit: unitTokens, kind: sluice.Bucket, window: time.Minute},
}

var openAIRules = []rule{
	{word: "usage_limit_reached", verdict: store.VerdictExhausted, scope: sluice.PerKey, plan: true, cause: planCause},
	{word: "usage_not_included", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the plan does not cover the request"},
	{word: "insufficient_quota", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the quota that is paid for is used up"},
	{word: "credit_balance_exhausted", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the credit is used up"},
	{says: "spend_limit_exceeded", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "a spend limit is reached"},
	{word: "organization_usage_limit_exceeded", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the usage limit of the organization is reached"},
	{word: "billing_hard_limit_reached", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "a spend limit is reached"},
	{word: "billing_not_active", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the account is not active"},
	{status: 429, says: "overloaded", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the provider is overloaded"},
	{status: 429, says: "high demand", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the provider is overloaded"},
	{status: 429, says: "resource unavailable", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "no capacity for flexible requests"},
	{status: 429, word: "resource_unavailable", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "no capacity for flexible requests"},
	{status: 429, says: "per day (", verdict: store.VerdictExhausted, scope: modelAndKey, daily: true, cause: "the quota of the day is used up"},
	{word: "server_is_overloaded", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the provider is overloaded"},
	{status: 429, word: "slow_down", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "too fast an increase"},
}

var openAIRefusal = refusalForm{
	body: `{"error":{"message":$message,"type":"$type","param":null,"code":"$type"}}`,
	types: map[int]string{
		400: "invalid_request_error", 401: "invalid_api_key", 402: "insufficient_quota", 403: "permission_denied", 404: "not_found", 429: "rate_limit_exceeded",
		503: "server_is_overloaded",
	},
	other: "server_error",
}

// perMinute returns limits per minute on the requests and tokens of each model.
func perMinute(kind sluice.Kind) []sluice.Limit {
	return []sluice.Limit{
		{Name: sluice.Requests, Kind: kind, Window: time.Minute, Unit: sluice.Requests, Per: perModel},
		{Name: unitTokens, Kind: kind, Window: time.Minute, Unit: unitTokens, Per: perModel},
	}
}

// requestsDay is the limit on requests per day.
const requestsDay = "requests-day"

// azure is OpenAI's API in the user's own Azure resource. Limits belong to a deployment.
var azure = vendor{
	name:     "azure",
	keys:     []string{"api-key", "authorization", "ocp-apim-subscription-key"},
	places:   places{prefixes: []string{"/openai", "/openai/v1"}, calls: []string{"deployments"}},
	models:   true,
	reserved: true,
	hides:    true,
	part:     datedModel,
	fields: []field{
		// Stated values are per minute, although Azure checks them over ten seconds, its renewal period.
		{about: "requests", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Bucket, window: time.Minute},
		{about: "tokens", name: unitTokens, unit: unitTokens, kind: sluice.Rolling, window: time.Minute},
	},
	rules:    openAIRules,
	refused:  modelAndKey,
	overload: sluice.PerModel,
	renewal:  true,
	limits: []sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Bucket, Window: time.Minute, Unit: sluice.Requests, Per: perModel},
		{Name: unitTokens, Kind: sluice.Rolling, Window: time.Minute, Unit: unitTokens, Per: perModel},
	},
	refusal: refusalForm{body: `{"error":{"code":"$status","message":$message}}`},
}
