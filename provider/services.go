package provider

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// These providers have no models. They use what the generic dialect reads, and rules for their errors.

var genericVendor = vendor{
	name:    "generic",
	keys:    []string{"authorization", "x-api-key", "api-key", "x-goog-api-key"},
	refusal: refusalForm{content: "application/problem+json", body: `{"title":"$type","status":$status,"detail":$message}`, types: titles, other: "Refused"},
}

var titles = map[int]string{400: "Bad Request", 402: "Payment Required", 403: "Forbidden", 429: "Too Many Requests", 503: "Service Unavailable"}

var stripe = vendor{
	name: "stripe", address: "https://api.stripe.com", keys: bearer,
	part: func(path, _ string) string { return pathWord(path, 1) },
	rules: []rule{
		{status: 429, word: "lock_timeout", verdict: store.VerdictError, cause: "an object is locked"}, // by another request: others need not wait
		{status: 429, word: "resource-specific", verdict: store.VerdictError, cause: "an object is changed too often"},
		{status: 429, word: "endpoint-rate", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "too many requests to one endpoint"},
		{status: 429, word: "endpoint-concurrency", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "too many requests to one endpoint at once"},
		{status: 429, word: "global-concurrency", verdict: store.VerdictThrottled, scope: sluice.PerKey, cause: "too many requests at once"},
		{status: 402, verdict: store.VerdictOK}, // a card was declined
	},
	refused: sluice.PerKey,
	limits: []sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Bucket, Size: 100, Window: time.Second, Unit: sluice.Requests},
		{Name: "endpoint", Kind: sluice.Bucket, Size: 25, Window: time.Second, Unit: sluice.Requests, Per: perModel},
	},
	backoff: sluice.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	refusal: refusalForm{body: `{"error":{"type":"invalid_request_error","code":"$type","message":$message}}`, types: map[int]string{429: "rate_limit"}, other: "api_error"},
}

// slack limits every method separately, and states how long to wait.
var slack = vendor{
	name: "slack", address: "https://slack.com", keys: bearer,
	part: func(path, _ string) string { return pathWord(path, 1) },
	rules: []rule{
		{word: "ratelimited", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "too many requests to one method"},
		{word: "rate_limited", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "too many requests to one method"},
	},
	refused: modelAndKey,
	refusal: refusalForm{body: `{"ok":false,"error":"$type"}`, types: map[int]string{429: "ratelimited", 503: "service_unavailable"}, other: "request_refused"},
}

var notion = vendor{
	name: "notion", address: "https://api.notion.com", keys: bearer,
	refused: sluice.PerKey,
	limits:  []sluice.Limit{{Name: sluice.Requests, Kind: sluice.Rolling, Size: 180, Window: time.Minute, Unit: sluice.Requests}},
	refusal: refusalForm{body: `{"object":"error","status":$status,"code":"$type","message":$message}`, types: map[int]string{429: "rate_limited", 529: "service_overload"}, other: "service_unavailable"},
}

// jira has several limits at once, and says which of them refused.
var jira = vendor{
	name: "jira", keys: bearer,
	rules: []rule{
		{status: 429, word: "jira-per-issue-on-write", verdict: store.VerdictError, cause: "an issue is changed too often"},
		{status: 429, word: "jira-quota-global-based", verdict: store.VerdictExhausted, cause: "the points of the hour are used up"},
		{status: 429, word: "jira-quota-tenant-based", verdict: store.VerdictExhausted, cause: "the points of the hour are used up"},
		{status: 429, word: "jira-burst-based", verdict: store.VerdictThrottled, cause: "too many requests at once"},
	},
	refusal: refusalForm{body: `{"errorMessages":[$message],"errors":{}}`},
}

// adMob is one of Google's APIs. The others use the same errors.
var adMob = vendor{
	name: "admob", address: "https://admob.googleapis.com", keys: bearer,
	rules: []rule{
		{word: "dailylimitexceeded", verdict: store.VerdictExhausted, daily: true, cause: "the quota of the day is used up"},
		{word: "quotaexceeded", verdict: store.VerdictExhausted, daily: true, cause: "the quota of the day is used up"},
		{status: 429, says: "per day", verdict: store.VerdictExhausted, daily: true, cause: "the quota of the day is used up"},
		{word: "ratelimitexceeded", verdict: store.VerdictThrottled, cause: "too many requests"},
		{word: "userratelimitexceeded", verdict: store.VerdictThrottled, scope: sluice.PerKey, cause: "too many requests of one user"},
		{status: 403, word: "rate_limit_exceeded", verdict: store.VerdictThrottled, cause: "too many requests"},
	},
	midnights: googleMidnights,
	limits:    []sluice.Limit{{Name: sluice.Requests, Kind: sluice.Rolling, Size: 900, Window: time.Minute, Unit: sluice.Requests}},
	refusal:   gemini.refusal,
}
