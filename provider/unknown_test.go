package provider

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Answers that say that there is no such model name it. Other answers that reject a request have no cause.
func TestAnUnknownModelIsNamed(t *testing.T) {
	for _, tt := range []struct {
		provider string
		status   int
		body     string
		unknown  bool
	}{
		{"openai", 404, `{"error":{"message":"The model 'm' does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, true},
		{"anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`, true},
		{"gemini", 404, `{"error":{"code":404,"message":"models/m is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`, true},
		{"groq", 404, `{"error":{"message":"The model 'm' does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, true},
		{"openrouter", 400, `{"error":{"message":"m is not a valid model ID","code":400}}`, true},
		{"deepseek", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, true},
		{"mistral", 400, `{"object":"error","message":"Invalid model: m","type":"invalid_model","param":null,"code":"1500"}`, true},
		{"generic", 404, `{"error":"model 'm' not found, try pulling it first"}`, true},
		{"openai", 404, `{"error":{"message":"Unknown request URL: POST /v1/v1/chat/completions. Please check the URL for typos.","type":"invalid_request_error","param":null,"code":"unknown_url"}}`, false},
		{"anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}`, false},
		{"openai", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, false},
		{"generic", 404, `404 page not found`, false},
		{"openai", 404, ``, false},
		{"openai", 403, `{"error":{"message":"Project p does not have access to model m","type":"invalid_request_error","code":"model_not_found"}}`, true},
		{"openai", 401, `{"error":{"message":"The key of model m was not found.","type":"invalid_request_error","code":"invalid_api_key"}}`, false},
		{"generic", 401, `{"error":"API key not found; no access to any model"}`, false},
	} {
		d, ok := Lookup(tt.provider)
		if !ok {
			t.Fatalf("there is no %s", tt.provider)
		}
		o := d.Observe(&Response{Status: tt.status, Body: []byte(tt.body), Model: "m"}, time.Now())
		want := ""
		if tt.unknown {
			want = "the provider does not know model m"
		}
		if o.Verdict != store.VerdictOK || o.Cause != want {
			t.Errorf("%s: %s: %v, cause %q, want %q", tt.provider, tt.body, o.Verdict, o.Cause, want)
		}
	}
}
