package provider

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// OpenAI and Groq write milliseconds if there are any, so a whole second is not rounded. Others may round.
func TestWholeSecondsOfADialectInMillisecondsAreNotRounded(t *testing.T) {
	for _, c := range []struct {
		name, reset string
		want        time.Duration
	}{
		{"openai", "1s", millisSlop}, {"openai", "6m0s", millisSlop}, {"openai", "17ms", millisSlop}, {"groq", "2m59.56s", millisSlop},
		{"openai", "1", 0}, {"openai", "soon", 0}, {"azure", "1s", 0}, {"mistral", "1s", 0},
	} {
		d, _ := Lookup(c.name)
		about := map[bool]string{true: "req-minute", false: "requests"}[c.name == "mistral"]
		o := d.Observe(&Response{Status: 200, Header: header("x-ratelimit-limit-"+about+": 60", "x-ratelimit-reset-"+about+": "+c.reset)}, time.Now())
		if len(o.Limits) != 1 || o.Limits[0].Slop != c.want {
			t.Errorf("%s, %s: %+v, want a reset that is off by %v", c.name, c.reset, o.Limits, c.want)
		}
	}
}

// Headers as providers send them.
var (
	anthropicHeaders = header(
		"anthropic-ratelimit-requests-limit: 1000", "anthropic-ratelimit-requests-remaining: 999", "anthropic-ratelimit-requests-reset: 2026-11-15T07:00:01Z",
		"anthropic-ratelimit-tokens-limit: 2400000", "anthropic-ratelimit-tokens-remaining: 2398000", "anthropic-ratelimit-tokens-reset: 2026-11-15T07:00:01Z",
		"anthropic-ratelimit-input-tokens-limit: 2000000", "anthropic-ratelimit-input-tokens-remaining: 1998000", "anthropic-ratelimit-input-tokens-reset: 2026-11-15T07:00:01Z",
		"anthropic-ratelimit-output-tokens-limit: 400000", "anthropic-ratelimit-output-tokens-remaining: 400000", "anthropic-ratelimit-output-tokens-reset: 2026-11-15T07:00:00Z",
		"anthropic-priority-input-tokens-limit: 10000", "anthropic-priority-input-tokens-remaining: 9618", "anthropic-priority-input-tokens-reset: 2026-11-15T07:01:59Z",
	)
	unifiedHeaders = header(
		"anthropic-ratelimit-unified-status: rejected", "anthropic-ratelimit-unified-reset: 1794736800", "anthropic-ratelimit-unified-representative-claim: five_hour",
		"anthropic-ratelimit-unified-5h-status: rejected", "anthropic-ratelimit-unified-5h-reset: 1794736800", "anthropic-ratelimit-unified-5h-utilization: 1.02",
		"anthropic-ratelimit-unified-7d-status: allowed", "anthropic-ratelimit-unified-7d-reset: 1795158000", "anthropic-ratelimit-unified-7d-utilization: 0.25",
	)
	openAIHeaders = header(
		"x-ratelimit-limit-requests: 60", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-requests: 59", "x-ratelimit-remaining-tokens: 149984",
		"x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6ms",
	)
	azureHeaders = header(
		"x-ratelimit-limit-requests: 9000", "x-ratelimit-limit-tokens: 1500000", "x-ratelimit-remaining-requests: 8999", "x-ratelimit-remaining-tokens: 0",
		"x-ratelimit-renewalperiod-requests: 10", "x-ratelimit-renewalperiod-tokens: 60", "x-ratelimit-reset-requests: 0", "x-ratelimit-reset-tokens: 30",
	)
	groqHeaders = header(
		"x-ratelimit-limit-requests: 14400", "x-ratelimit-limit-tokens: 18000", "x-ratelimit-remaining-requests: 14370", "x-ratelimit-remaining-tokens: 17997",
		"x-ratelimit-reset-requests: 2m59.56s", "x-ratelimit-reset-tokens: 7.66s",
	)
	mistralHeaders = header(
		"x-ratelimit-limit-req-minute: 188", "x-ratelimit-remaining-req-minute: 187", "x-ratelimit-limit-tokens-minute: 625000",
		"x-ratelimit-remaining-tokens-minute: 624982", "x-ratelimit-tokens-query-cost: 18",
	)
)

func with(h http.Header, lines ...string) http.Header {
	h = h.Clone()
	for name, values := range header(lines...) {
		h[name] = values
	}
	return h
}

func TestStatedLimits(t *testing.T) {
	bucket := func(name, unit string, size, remaining int64, reset, window time.Duration) Limit {
		return Limit{Name: name, Unit: unit, Kind: sluice.Bucket, Size: size, Remaining: remaining, ResetIn: reset, Window: window}
	}
	millis := func(name, unit string, size, remaining int64, reset, window time.Duration) Limit {
		l := bucket(name, unit, size, remaining, reset, window)
		l.Slop = millisSlop
		return l
	}
	for _, tt := range []struct {
		name, provider string
		header         http.Header
		want           []Limit
		matched        int // limits of the preset that they are about
	}{
		{"anthropic", "anthropic", anthropicHeaders, []Limit{
			bucket("input_tokens", "input_tokens", 2000000, 1998000, time.Second, time.Minute),
			bucket("output_tokens", "output_tokens", 400000, 400000, 0, time.Minute),
			bucket("requests", "requests", 1000, 999, time.Second, time.Minute),
		}, 3},
		{"a subscription", "anthropic", unifiedHeaders, []Limit{
			{Name: "plan-5h", Unit: "plan_5h", Kind: sluice.Fixed, Size: 1e6, Remaining: 0, ResetIn: 3 * time.Hour, Window: 5 * time.Hour},
			{Name: "plan-7d", Unit: "plan_7d", Kind: sluice.Fixed, Size: 1e6, Remaining: 750000, ResetIn: 5 * 24 * time.Hour, Window: 7 * 24 * time.Hour},
		}, 2},
		{"openai", "openai", openAIHeaders, []Limit{
			millis("requests", "requests", 60, 59, time.Second, time.Minute), millis("tokens", "tokens", 150000, 149984, 6*time.Millisecond, time.Minute),
		}, 2},
		{"openai by the day", "openai", header("x-ratelimit-limit-requests: 200", "x-ratelimit-remaining-requests: 199", "x-ratelimit-reset-requests: 7m12s"),
			[]Limit{millis("requests", "requests", 200, 199, 7*time.Minute+12*time.Second, time.Minute)}, 1}, // the pool learns the window
		{"a project", "openai", with(openAIHeaders, "x-ratelimit-limit-project-tokens: 60000", "x-ratelimit-remaining-project-tokens: 57000", "x-ratelimit-reset-project-tokens: 3s"), []Limit{
			millis("tokens", "tokens", 60000, 57000, 3*time.Second, time.Minute), millis("requests", "requests", 60, 59, time.Second, time.Minute),
		}, 2},
		{"azure", "azure", azureHeaders, []Limit{
			bucket("requests", "requests", 9000, 8999, 0, time.Minute), limit("tokens", "tokens", 1500000, 0, 30*time.Second, time.Minute),
		}, 2},
		{"azure says nothing", "azure", header("x-ratelimit-limit-requests: -1", "x-ratelimit-limit-tokens: 0", "x-ratelimit-remaining-tokens: 0"), nil, 0},
		{"groq", "groq", groqHeaders, []Limit{
			millis("requests-day", "requests", 14400, 14370, 179560*time.Millisecond, 24*time.Hour), millis("tokens", "tokens", 18000, 17997, 7660*time.Millisecond, time.Minute),
		}, 2},
		{"mistral", "mistral", mistralHeaders, []Limit{
			limit("requests", "requests", 188, 187, store.NotStated, time.Minute), limit("tokens", "tokens", 625000, 624982, store.NotStated, time.Minute),
		}, 2},
		{"openrouter", "openrouter", header("X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794726030000"),
			[]Limit{limit("", "requests", 20, 0, 30*time.Second, 0)}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := vendorOf(tt.provider).Observe(&Response{Status: 200, Header: tt.header}, late)
			if len(o.Limits)+len(tt.want) > 0 && !reflect.DeepEqual(o.Limits, tt.want) {
				t.Errorf("\n%+v, want\n%+v", o.Limits, tt.want)
			}
			preset, _ := Preset(tt.provider)
			if got := o.Answer(preset.Limits); len(got.Limits) != tt.matched || o.Verdict != store.VerdictOK {
				t.Errorf("%v, told of %d limits, want %d", o.Verdict, len(got.Limits), tt.matched)
			}
		})
	}
}

// verdictSamples are refusals and failures as providers write them.
var verdictSamples = []struct {
	name, provider string
	status         int
	header         http.Header
	body           string
	verdict        store.Verdict
	scope          sluice.Scope
	wait           time.Duration
	hinted         bool
}{
	{"rate limit", "anthropic", 429, with(anthropicHeaders, "retry-after: 17"), `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 2,000,000 input tokens per minute"},"request_id":"req_1"}`, store.VerdictThrottled, modelAndKey, 17 * time.Second, true},
	{"rate limit without a body", "anthropic", 429, header("retry-after: 17"), "", store.VerdictThrottled, modelAndKey, 17 * time.Second, true},
	{"spend cap", "anthropic", 429, header(), `{"type":"error","error":{"details":{"error_code":"enforced_spend_limit_reached"},"type":"rate_limit_error","message":"You have reached the spend limit"}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"own spend limit", "anthropic", 400, header(), `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"no credit", "anthropic", 400, header(), `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"billing", "anthropic", 402, header(), `{"type":"error","error":{"type":"billing_error","message":"There's an issue with your billing."}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"overloaded", "anthropic", 529, header(), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, store.VerdictOverloaded, 0, 0, false},
	{"a subscription's limit", "anthropic", 429, unifiedHeaders, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit."}}`, store.VerdictExhausted, sluice.PerKey, 3 * time.Hour, true},
	{"a bad request that quotes", "anthropic", 400, header(), `{"type":"error","error":{"type":"invalid_request_error","message":"messages: overloaded_error is no role"}}`, store.VerdictOK, 0, 0, false},
	{"broken", "anthropic", 500, header(), `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, store.VerdictError, 0, 0, false},
	{"no key", "anthropic", 401, header(), `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, store.VerdictOK, 0, 0, false},

	{"rate limit", "openai", 429, openAIHeaders, `{"error":{"message":"Rate limit reached for gpt-5.4 in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s. Visit https://platform.openai.com","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, store.VerdictThrottled, modelAndKey, 4 * time.Second, true},
	{"rate limit with a hint", "openai", 429, header("retry-after-ms: 250", "retry-after: 1"), `{"error":{"message":"Please try again in 250ms.","type":"requests","code":"rate_limit_exceeded"}}`, store.VerdictThrottled, modelAndKey, 250 * time.Millisecond, true},
	{"requests of a day", "openai", 429, header(), `{"error":{"message":"Rate limit reached for gpt-5.4 on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.","type":"requests","code":"rate_limit_exceeded"}}`, store.VerdictExhausted, modelAndKey, 432 * time.Second, true},
	{"no quota", "openai", 429, header(), `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"project spend limit", "openai", 429, header(), `{"error":{"message":"x","type":"insufficient_quota","code":"project_spend_limit_exceeded"}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"too fast", "openai", 429, header(), `{"error":{"message":"Slow down","type":"rate_limit_error","code":"slow_down"}}`, store.VerdictThrottled, modelAndKey, 0, false},
	{"overloaded", "openai", 503, header(), `{"error":{"message":"The server is overloaded","type":"server_error","code":"server_is_overloaded"}}`, store.VerdictOverloaded, sluice.PerModel, 0, false},
	{"flex", "openai", 429, header(), `{"error":{"message":"Resource Unavailable","type":"resource_unavailable","code":null}}`, store.VerdictOverloaded, sluice.PerModel, 0, false},
	{"a page", "openai", 502, header(), "<html><title>502 Bad Gateway</title></html>", store.VerdictError, 0, 0, false},

	{"tokens, hint too short", "azure", 429, with(azureHeaders, "retry-after: 1", "retry-after-ms: 0", "x-ratelimit-type: Tokens"), `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current pricing tier. Please retry after 1 second."}}`, store.VerdictThrottled, modelAndKey, 30 * time.Second, true},
	{"requests", "azure", 429, with(azureHeaders, "retry-after: 1", "x-ratelimit-type: Requests"), "", store.VerdictThrottled, modelAndKey, 10 * time.Second, true},
	{"high demand", "azure", 429, header("retry-after: 4"), `{"error":{"code":"429","message":"The system is currently experiencing high demand and cannot process your request."}}`, store.VerdictOverloaded, sluice.PerModel, 4 * time.Second, true},

	{"a minute", "gemini", 429, header(), geminiError("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "37s"), store.VerdictThrottled, modelAndKey, 37 * time.Second, true},
	{"a day", "gemini", 429, header(), geminiError("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "12s"), store.VerdictExhausted, modelAndKey, time.Hour, true}, // to 8:00 UTC
	{"no quota for the model", "gemini", 429, header(), strings.Replace(geminiError("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "12s"), "limit: 20", "limit: 0", 1), store.VerdictBilling, modelAndKey, 0, false},
	{"prepaid", "gemini", 402, header(), `{"error":{"code":402,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"overloaded", "gemini", 503, header(), `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, store.VerdictOverloaded, sluice.PerModel, 0, false},
	{"in a list", "gemini", 429, header(), "[" + geminiError("GenerateContentInputTokensPerModelPerMinute", "3.5s") + "]", store.VerdictThrottled, modelAndKey, 3500 * time.Millisecond, true},

	{"tokens", "groq", 429, with(groqHeaders, "retry-after: 7.66"), `{"error":{"message":"Rate limit reached for model x on tokens per minute (TPM): Limit 15000, Used 11972, Requested 4351. Please try again in 5.289s.","type":"tokens","code":"rate_limit_exceeded"}}`, store.VerdictThrottled, modelAndKey, 7660 * time.Millisecond, true},
	{"tokens of a day", "groq", 429, header(), `{"error":{"message":"Rate limit reached for model x on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Please try again in 14m24s.","type":"tokens","code":"rate_limit_exceeded"}}`, store.VerdictExhausted, modelAndKey, 864 * time.Second, true},
	{"too large", "groq", 413, header(), `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6000, Requested 9000","type":"tokens","code":"rate_limit_exceeded"}}`, store.VerdictOK, 0, 0, false},
	{"flex", "groq", 498, header(), "", store.VerdictOverloaded, sluice.PerModel, 0, false},

	{"rate limit", "mistral", 429, mistralHeaders, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`, store.VerdictThrottled, sluice.PerKey, 0, false},
	{"capacity", "mistral", 429, header(), `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}`, store.VerdictOverloaded, sluice.PerModel, 0, false},

	{"free, a day", "openrouter", 429, header(), `{"error":{"message":"Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day","code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1794787200000"},"provider_name":null}}}`, store.VerdictExhausted, sluice.PerKey, 17 * time.Hour, true},
	{"free, a minute", "openrouter", 429, header(), `{"error":{"message":"Rate limit exceeded: free-models-per-min.","code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1794726030000"}}}}`, store.VerdictThrottled, sluice.PerKey, 30 * time.Second, true},
	{"upstream", "openrouter", 429, header(), `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x is temporarily rate-limited upstream","provider_name":"X"}}}`, store.VerdictOverloaded, sluice.PerModel, 0, false},
	{"credits", "openrouter", 402, header(), `{"error":{"message":"Insufficient credits","code":402}}`, store.VerdictBilling, 0, 0, false},
	{"credits that come back", "openrouter", 402, header("retry-after: 3600"), `{"error":{"message":"Insufficient credits","code":402}}`, store.VerdictExhausted, sluice.PerKey, time.Hour, true},
	{"an error in a 200", "openrouter", 200, header(), `{"error":{"message":"Provider returned error","code":429}}`, store.VerdictOverloaded, sluice.PerModel, 0, false},
	{"an answer about errors", "openrouter", 200, header(), `{"id":"1","error":null,"choices":[{"message":{"content":"rate limit","error":{"code":429}}}]}`, store.VerdictOK, 0, 0, false},

	{"team's money", "xai", 429, header(), `{"code":"resource-exhausted","error":"Your team has either used all available credits or reached its monthly spending limit."}`, store.VerdictBilling, sluice.PerKey, 0, false},
	{"balance", "deepseek", 402, header(), `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, store.VerdictBilling, 0, 0, false},
	{"trial", "cohere", 429, header(), `{"message":"You are using a Trial key, which is limited to 20 API calls / minute."}`, store.VerdictThrottled, modelAndKey, 0, false},
	{"throttled", "bedrock", 429, header(), `{"message":"Too many requests, please wait before trying again."}`, store.VerdictThrottled, modelAndKey, 0, false},
	{"tokens of a day", "bedrock", 429, header(), `{"message":"Too many tokens per day, please wait before trying again."}`, store.VerdictExhausted, modelAndKey, 17 * time.Hour, true},
	{"not ready", "bedrock", 429, header(), `{"__type":"ModelNotReadyException","message":"The model is not ready"}`, store.VerdictOverloaded, sluice.PerModel, 0, false},

	{"everything", "stripe", 429, header("Stripe-Rate-Limited-Reason: global-rate"), `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"x"}}`, store.VerdictThrottled, sluice.PerKey, 0, false},
	{"an endpoint", "stripe", 429, header("Stripe-Rate-Limited-Reason: endpoint-rate"), "", store.VerdictThrottled, modelAndKey, 0, false},
	{"a lock", "stripe", 429, header(), `{"error":{"type":"invalid_request_error","code":"lock_timeout","message":"x"}}`, store.VerdictError, 0, 0, false},
	{"an object", "stripe", 429, header("Stripe-Rate-Limited-Reason: resource-specific"), "", store.VerdictError, 0, 0, false},
	{"a declined card", "stripe", 402, header(), `{"error":{"type":"card_error","code":"card_declined"}}`, store.VerdictOK, 0, 0, false},
	{"a method", "slack", 429, header("Retry-After: 30"), `{"ok":false,"error":"ratelimited"}`, store.VerdictThrottled, modelAndKey, 30 * time.Second, true},
	{"hidden in a 200", "slack", 200, header("Retry-After: 5"), `{"ok":false,"error":"ratelimited"}`, store.VerdictThrottled, modelAndKey, 5 * time.Second, true},
	{"another error", "slack", 200, header(), `{"ok":false,"error":"channel_not_found"}`, store.VerdictOK, 0, 0, false},
	{"a connection", "notion", 429, header("Retry-After: 12"), `{"object":"error","status":429,"code":"rate_limited","message":"x","additional_data":{"rate_limit_reason":"connection"}}`, store.VerdictThrottled, sluice.PerKey, 12 * time.Second, true},
	{"overloaded", "notion", 529, header(), `{"object":"error","status":529,"code":"service_overload"}`, store.VerdictOverloaded, 0, 0, false},
	{"points", "jira", 429, header("Retry-After: 1800", "RateLimit-Reason: jira-quota-global-based"), "", store.VerdictExhausted, 0, 30 * time.Minute, true},
	{"an issue", "jira", 429, header("Retry-After: 2", "RateLimit-Reason: jira-per-issue-on-write"), "", store.VerdictError, 0, 2 * time.Second, true},
	{"a burst", "jira", 429, header("Retry-After: 2", "RateLimit-Reason: jira-burst-based", "X-RateLimit-Reset: 2026-11-15T07:00Z"), "", store.VerdictThrottled, 0, 2 * time.Second, true},
	{"a user", "admob", 403, header(), `{"error":{"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}],"code":403,"message":"User Rate Limit Exceeded"}}`, store.VerdictThrottled, sluice.PerKey, 0, false},
	{"a day", "admob", 403, header(), `{"error":{"errors":[{"domain":"usageLimits","reason":"dailyLimitExceeded"}],"code":403}}`, store.VerdictExhausted, 0, time.Hour, true},
	{"no right", "admob", 403, header(), `{"error":{"code":403,"message":"The caller does not have permission","status":"PERMISSION_DENIED"}}`, store.VerdictOK, 0, 0, false},
}

func geminiError(quota, delay string) string {
	return `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 20","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + quota +
		`","quotaDimensions":{"location":"global","model":"gemini-3.1-pro"},"quotaValue":"20"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"` + delay + `"}]}}`
}

func TestVerdicts(t *testing.T) {
	for _, tt := range verdictSamples {
		t.Run(tt.provider+"/"+tt.name, func(t *testing.T) {
			o := vendorOf(tt.provider).Observe(&Response{Status: tt.status, Header: tt.header, Body: []byte(tt.body)}, late)
			if o.Verdict != tt.verdict || o.Scope != tt.scope || o.RetryAfter != tt.wait || o.Hinted != tt.hinted {
				t.Errorf("%v, scope %v, wait %v, hinted %v; want %v, %v, %v, %v",
					o.Verdict, o.Scope, o.RetryAfter, o.Hinted, tt.verdict, tt.scope, tt.wait, tt.hinted)
			}
			if (o.Cause == "") != (tt.verdict == store.VerdictOK) {
				t.Errorf("cause %q of %v", o.Cause, o.Verdict)
			}
		})
	}
}

func TestCachedAnswersTeachNothing(t *testing.T) {
	for _, v := range vendors {
		if o := v.Observe(&Response{Status: 200, Header: with(openAIHeaders, "Age: 5")}, late); o.Verdict != 0 || len(o.Limits) != 0 {
			t.Errorf("%s: %+v", v.name, o)
		}
	}
}

func TestUntilHour(t *testing.T) {
	for _, tt := range []struct {
		at   string
		want time.Duration
	}{{"2026-11-15T07:00:00Z", time.Hour}, {"2026-11-15T06:59:00Z", time.Minute}, {"2026-11-15T08:00:00Z", 16 * time.Hour}, {"2026-12-31T23:30:00Z", 30 * time.Minute}} {
		at, _ := time.Parse(time.RFC3339, tt.at)
		if got := untilHour(at, googleMidnights); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.at, got, tt.want)
		}
	}
}
