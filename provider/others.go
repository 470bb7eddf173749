package provider

import (
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// Model providers that follow OpenAI, more or less.

var groq = vendor{
	name: "groq", address: "https://api.groq.com", keys: bearer, models: true, free: true, millis: true, part: datedModel,
	places: places{prefixes: []string{"/openai/v1"}, calls: openAICalls},
	fields: []field{
		// The limit on requests is per day, the one on tokens per minute.
		{about: "requests", name: requestsDay, unit: sluice.Requests, kind: sluice.Bucket, window: 24 * time.Hour},
		{about: "tokens", name: unitTokens, unit: unitTokens, kind: sluice.Bucket, window: time.Minute},
	},
	rules: append([]rule{
		{status: 498, verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "no capacity for flexible requests"},
	}, openAIRules...),
	refused: modelAndKey, overload: sluice.PerModel,
	limits: []sluice.Limit{
		{Name: requestsDay, Kind: sluice.Bucket, Window: 24 * time.Hour, Unit: sluice.Requests, Per: perModel},
		{Name: unitTokens, Kind: sluice.Bucket, Window: time.Minute, Unit: unitTokens, Per: perModel},
	},
	refusal: openAIRefusal,
}

var mistral = vendor{
	name: "mistral", address: "https://api.mistral.ai", keys: bearer, models: true, part: datedModel,
	places: places{prefixes: version1, calls: append([]string{"fim", "ocr", "classifications", "agents", "batch", "libraries"}, openAICalls...)},
	fields: []field{
		{about: "req-minute", name: sluice.Requests, unit: sluice.Requests, kind: sluice.Rolling, window: time.Minute},
		{about: "tokens-minute", name: unitTokens, unit: unitTokens, kind: sluice.Rolling, window: time.Minute},
	},
	rules: []rule{
		{says: "capacity exceeded", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "no capacity for the model"},
		{says: "capacity_exceeded", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "no capacity for the model"},
	},
	refused: sluice.PerKey, overload: sluice.PerModel,
	limits: []sluice.Limit{
		{Name: sluice.Requests, Kind: sluice.Rolling, Window: time.Minute, Unit: sluice.Requests},
		{Name: unitTokens, Kind: sluice.Rolling, Window: time.Minute, Unit: unitTokens},
	},
	refusal: refusalForm{
		body: `{"object":"error","message":$message,"type":"$type","param":null,"code":"$status"}`, types: map[int]string{429: "rate_limited"}, other: "error",
	},
}

// unitFree counts requests for free models.
const unitFree = "free"

var openRouter = vendor{
	name: "openrouter", address: "https://openrouter.ai", keys: bearer, models: true,
	places: places{prefixes: []string{"/api/v1"}, calls: append([]string{"key", "keys", "credits", "generation", "providers", "endpoints"}, openAICalls...)},
	part:   func(_, model string) string { return strings.ToLower(model) },
	cost: func(model string) []sluice.Amount {
		if !strings.HasSuffix(model, ":free") {
			return nil
		}
		return []sluice.Amount{{Unit: unitFree, N: 1}}
	},
	rules: []rule{
		{status: 429, says: "per-day", verdict: store.VerdictExhausted, scope: sluice.PerKey, daily: true, cause: "free requests of the day are used up"},
		{status: 429, says: "per-min", verdict: store.VerdictThrottled, scope: sluice.PerKey, cause: "free requests of the minute are used up"},
		{status: 429, says: "upstream", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the model's own provider refused"},
		{status: 429, says: "provider returned error", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the model's own provider refused"},
	},
	refused: sluice.PerKey, overload: sluice.PerModel, midnights: []int{0},
	limits: []sluice.Limit{
		{Name: "free-minute", Kind: sluice.Rolling, Size: 20, Window: time.Minute, Unit: unitFree},
		{Name: "free-day", Kind: sluice.Fixed, Size: 1000, Window: 24 * time.Hour, Unit: unitFree, Reset: time.Unix(0, 0)},
	},
	refusal: refusalForm{body: `{"error":{"code":$status,"message":$message}}`},
}

var xAI = vendor{
	name: "xai", address: "https://api.x.ai", keys: bearer, models: true, part: datedModel,
	places: places{prefixes: version1, calls: append([]string{"complete", "language-models", "embedding-models", "image-generation-models", "api-key"}, openAICalls...)},
	rules: append([]rule{
		{says: "spending limit", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "a spend limit is reached"},
		{says: "used all available credits", verdict: store.VerdictBilling, scope: sluice.PerKey, cause: "the credit is used up"},
	}, openAIRules...),
	fields: openAIFields, refused: modelAndKey, overload: sluice.PerModel,
	limits: perMinute(sluice.Bucket), refusal: openAIRefusal,
}

// deepSeek limits only concurrent requests.
var deepSeek = vendor{
	name: "deepseek", address: "https://api.deepseek.com", keys: []string{"authorization", "x-api-key"}, models: true, hides: true, part: datedModel,
	places: places{prefixes: version1, bare: true, calls: openAICalls},
	rules:  openAIRules, refused: modelAndKey, overload: sluice.PerModel,
	limits:  []sluice.Limit{{Name: "inflight", Kind: sluice.Concurrency, Size: 500, Unit: sluice.Requests, Per: perModel}},
	refusal: openAIRefusal,
}

var cohere = vendor{
	name: "cohere", address: "https://api.cohere.com", keys: bearer, models: true, part: datedModel,
	// Version 2 answers otherwise than version 1.
	places: places{prefixes: []string{"/v2", "/v1"}, several: true, calls: []string{
		"chat", "embed", "rerank", "classify", "generate", "summarize", "tokenize", "detokenize", "models", "datasets", "embed-jobs",
	}},
	rules: []rule{
		{status: 429, says: "trial", verdict: store.VerdictThrottled, scope: modelAndKey, cause: "the limit of a trial key"},
	},
	refused: modelAndKey, overload: sluice.PerModel,
	limits:  []sluice.Limit{{Name: sluice.Requests, Kind: sluice.Rolling, Size: 500, Window: time.Minute, Unit: sluice.Requests, Per: perModel}},
	refusal: refusalForm{body: `{"message":$message}`},
}

// bedrock states no limits, and charges the most that a call may use.
var bedrock = vendor{
	name: "bedrock", keys: []string{"authorization", "x-api-key"}, models: true, reserved: true,
	part: func(_, model string) string { return strings.ToLower(model) },
	rules: []rule{
		{word: "modelnotreadyexception", verdict: store.VerdictOverloaded, scope: sluice.PerModel, cause: "the model is not ready"},
		{status: 429, says: "tokens per day", verdict: store.VerdictExhausted, scope: modelAndKey, daily: true, cause: "the quota of the day is used up"},
	},
	refused: modelAndKey, overload: sluice.PerModel, midnights: []int{0},
	limits:  []sluice.Limit{{Name: unitTokens, Kind: sluice.Rolling, Window: time.Minute, Unit: unitTokens, Per: perModel}},
	refusal: refusalForm{body: `{"message":$message}`},
}

var bearer = []string{"authorization"}
