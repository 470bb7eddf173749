package provider

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// googleMidnights are the hours at which Google's daily quotas come back: midnight in California, in summer and in
// winter. Some were seen to come back at midnight UTC.
var googleMidnights = []int{0, 7, 8}

// gemini states no limits. A refusal names the quota, such as GenerateRequestsPerDayPerProjectPerModel-FreeTier.
var gemini = vendor{
	name:    "gemini",
	address: "https://generativelanguage.googleapis.com",
	keys:    []string{"x-goog-api-key", "authorization"},
	// All SDKs add v1beta by themselves, or have it in their base URL.
	places: places{prefixes: []string{"/v1beta", "/v1", "/v1alpha"}, calls: []string{
		"models", "tunedModels", "files", "cachedContents", "batches", "operations", "interactions", "fileSearchStores", "openai",
	}},
	models: true,
	part:   datedModel,
	rules: []rule{
		{says: "credits are depleted", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the credit is used up"},
		{status: 429, says: "limit: 0", verdict: store.VerdictBilling, scope: modelAndKey, cause: "the plan has no quota for the model"},
		{status: 429, says: "perday", verdict: store.VerdictExhausted, scope: modelAndKey, daily: true, cause: "the quota of the day is used up"},
		{status: 429, says: "per day", verdict: store.VerdictExhausted, scope: modelAndKey, daily: true, cause: "the quota of the day is used up"},
	},
	refused:   modelAndKey,
	overload:  sluice.PerModel,
	midnights: googleMidnights,
	limits: []sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Rolling, Window: time.Minute, Unit: sluice.Requests, Per: perModel},
		{Name: unitInput, Kind: sluice.Rolling, Window: time.Minute, Unit: unitInput, Per: perModel},
		{Name: requestsDay, Kind: sluice.Fixed, Window: 24 * time.Hour, Unit: sluice.Requests, Per: perModel},
	},
	refusal: refusalForm{
		body: `{"error":{"code":$status,"message":$message,"status":"$type"}}`,
		types: map[int]string{
			400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
			429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
		},
		other: "UNKNOWN",
	},
}
