package provider

import "testing"

const pingEvent = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

func TestHold(t *testing.T) {
	const stream = `{"model":"m","stream":true}`
	for _, tt := range []struct {
		provider, path, query, body string
		bears                       KeepAlive
		want                        string
	}{
		{"anthropic", "/v1/messages", "", stream, "", pingEvent},
		{"deepseek", "/anthropic/v1/messages", "", stream, "", pingEvent},
		{"anthropic", "/v1/messages", "", stream, KeepBlank, "\n\n"},
		{"anthropic", "/v1/messages", "", stream, KeepNothing, ""},
		{"anthropic", "/v1/messages", "", `{"model":"m"}`, "", ""},
		{"anthropic", "/v1/chat/completions", "", stream, "", "\n\n"}, // OpenAI's clients take a ping for a chunk
		{"anthropic", "/v1/chat/completions", "", stream, KeepEvent, "\n\n"},
		{"openai", "/v1/chat/completions", "", stream, "", "\n\n"},
		{"openai", "/v1/chat/completions", "", stream, KeepComment, ": keep-alive\n\n"},
		{"openai", "/v1/responses", "", stream, "", "\n\n"},
		{"gemini", "/v1beta/models/m:streamGenerateContent", "key=k&alt=sse", "{}", "", "\n\n"},
		{"gemini", "/v1beta/models/m:streamGenerateContent", "", "{}", KeepBlank, ""}, // an array
		{"gemini", "/v1beta/models/m:generateContent", "alt=sse", "{}", "", ""},
		{"gemini", "/v1beta/openai/chat/completions", "", stream, "", "\n\n"},
		{"cohere", "/v2/chat", "", stream, "", ""},
		{"cohere", "/v2/chat", "", stream, KeepBlank, "\n\n"},
		{"bedrock", "/model/m/converse-stream", "", "{}", KeepBlank, ""}, // Amazon's frames
		{"openai", "/v1/unknown", "", stream, KeepBlank, ""},
	} {
		c := call("POST", tt.path, tt.body)
		c.Query = tt.query
		got := ""
		if h := speaker(t, tt.provider).Ask(c).Hold; h != nil {
			got = h.Line(tt.bears)
		}
		if got != tt.want {
			t.Errorf("%s %s?%s %q: %q, want %q", tt.provider, tt.path, tt.query, tt.bears, got, tt.want)
		}
	}
}

func TestFailureOfAHeldStream(t *testing.T) {
	const plain = `{"error":{"message":"no"}}`
	for _, tt := range []struct {
		hold       *Hold
		body, want string
	}{
		{holdBlank, plain, "data: " + plain + "\n\n"},
		{holdMessages, `{"type":"error","error":{}}`, "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n"},
		{holdResponses, plain, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"error\":{\"message\":\"no\"}}\n\n"},
		{holdResponses, `{"type":"error","code":"x"}`, "event: error\ndata: {\"type\":\"error\",\"code\":\"x\"}\n\n"},
		{holdResponses, `{}`, "event: error\ndata: {}\n\n"},
	} {
		if got := string(tt.hold.Failure([]byte(tt.body))); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
