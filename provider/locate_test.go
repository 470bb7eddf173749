package provider

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// However client and upstream divide the prefix between them, a call reaches the same place, and nothing is doubled.
func TestLocate(t *testing.T) {
	for _, tt := range []struct{ provider, base, path, want string }{
		{"anthropic", "", "/messages", "/v1/messages"},
		{"anthropic", "", "/v1/messages", "/v1/messages"},
		{"anthropic", "", "/v1/v1/messages", "/v1/messages"},
		{"anthropic", "/v1", "/v1/messages", "/v1/messages"},
		{"anthropic", "/v1", "/messages", "/v1/messages"},
		{"anthropic", "/v1/", "/v1/messages/count_tokens", "/v1/messages/count_tokens"},
		{"anthropic", "", "/messages/batches/b_1/results", "/v1/messages/batches/b_1/results"},
		{"openai", "", "/chat/completions", "/v1/chat/completions"},
		{"openai", "", "/chat/completions/", "/v1/chat/completions/"},
		{"openai", "", "/responses", "/v1/responses"},
		{"openai", "", "/embeddings", "/v1/embeddings"},
		{"openai", "", "/models", "/v1/models"},
		{"openai", "", "/models/ft%3Agpt-5%2Fx", "/v1/models/ft%3Agpt-5%2Fx"},
		{"openai", "", "/realtime", "/v1/realtime"},
		{"openai", "/v1", "/v1/v1/chat/completions", "/v1/chat/completions"},
		{"openai", "/v1", "/v1/unknown", "/v1/unknown"},
		{"openai", "/v1", "/v1", "/v1"},
		{"openai", "/v1", "/unknown", "/v1/unknown"},
		{"openai", "/api/v1", "/v1/chat/completions", "/api/v1/chat/completions"},
		{"gemini", "", "/models/gemini-3:generateContent", "/v1beta/models/gemini-3:generateContent"},
		{"gemini", "", "/v1/models/gemini-3:generateContent", "/v1/models/gemini-3:generateContent"},
		{"gemini", "/v1beta", "/v1beta/models/gemini-3:generateContent", "/v1beta/models/gemini-3:generateContent"},
		{"gemini", "", "/openai/chat/completions", "/v1beta/openai/chat/completions"},
		{"groq", "", "/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "", "/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "", "/openai/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "/openai/v1", "/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "/openai/v1", "/openai/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "/openai", "/openai/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "/openai", "/v1/chat/completions", "/openai/v1/chat/completions"},
		{"groq", "/v1", "/openai/v1/chat/completions", "/v1/chat/completions"}, // a server of one's own
		{"openrouter", "/api", "/api/v1/chat/completions", "/api/v1/chat/completions"},
		{"openrouter", "", "/v1/chat/completions", "/api/v1/chat/completions"},
		{"deepseek", "", "/chat/completions", "/chat/completions"},
		{"deepseek", "", "/v1/chat/completions", "/v1/chat/completions"},
		{"deepseek", "/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"deepseek", "", "/anthropic/v1/messages", "/anthropic/v1/messages"},
		{"cohere", "", "/v2/chat", "/v2/chat"},
		{"cohere", "/v2", "/chat", "/v2/chat"},
		{"cohere", "/v1", "/v1/embed", "/v1/embed"},
		{"azure", "", "/deployments/d/chat/completions", "/openai/deployments/d/chat/completions"},
		{"azure", "/openai", "/openai/deployments/d/chat/completions", "/openai/deployments/d/chat/completions"},
		{"azure", "/openai", "/openai/v1/chat/completions", "/openai/v1/chat/completions"},
		{"azure", "/openai/v1", "/openai/v1/chat/completions", "/openai/v1/chat/completions"},
		{"azure", "", "/models/chat/completions", "/models/chat/completions"},
		// What is not known, and what a gateway decides, stays as it is written.
		{"anthropic", "", "/api/event_logging/batch", "/api/event_logging/batch"},
		{"anthropic", "", "/v2/messages", "/v2/messages"},
		{"anthropic", "", "/messagesX", "/messagesX"},
		{"anthropic", "", "//messages", "//messages"},
		{"anthropic", "", "/v1//messages", "/v1//messages"},
		{"anthropic", "/v1", "//v1/messages", "/v1//v1/messages"},
		{"anthropic", "", "/%76%31/messages", "/%76%31/messages"},
		{"anthropic", "", "/", "/"},
		{"anthropic", "/", "/messages", "/messages"},
		{"openai", "/llm/openai", "/v1/chat/completions", "/llm/openai/v1/chat/completions"},
		{"openai", "/llm/openai", "/chat/completions", "/llm/openai/chat/completions"},
		{"openai", "/myv1", "/v1/chat/completions", "/myv1/v1/chat/completions"},
		{"openai", "/api/paas/v4", "/chat/completions", "/api/paas/v4/chat/completions"},
		{"openai", "", "/v2/chat/completions", "/v2/chat/completions"},
		{"openai", "", "/v1beta/chat/completions", "/v1beta/chat/completions"},
		{"stripe", "/v1", "/v1/charges", "/v1/v1/charges"},
		{"bedrock", "", "/model/m/converse", "/model/m/converse"},
	} {
		got, either := speaker(t, tt.provider).(Locator).Locate("example.com", tt.base, tt.path)
		if got != tt.want || either != nil {
			t.Errorf("%s: upstream %q and path %q: %s %v, want %s", tt.provider, tt.base, tt.path, got, either, tt.want)
		}
	}
	if got, _ := speaker(t, "openai").(Locator).Locate("api.perplexity.ai", "", "/chat/completions"); got != "/chat/completions" {
		t.Errorf("Perplexity has no prefix: %s", got)
	}
	if _, is := Dialect(Generic{}).(Locator); is {
		t.Error("the paths of unknown providers are not known")
	}
}

// Where two places are possible, the dialect says so and guesses nothing.
func TestLocateDoubtfulPlaces(t *testing.T) {
	for _, tt := range []struct {
		provider, base, path, at string
		either                   []string
	}{
		{"cohere", "", "/chat", "/chat", []string{"/v2", "/v1"}},
		{"cohere", "/v1", "/v2/chat", "/v1/v2/chat", []string{"/v1", "/v2"}},
		{"gemini", "/v1", "/v1beta/models/m:generateContent", "/v1/v1beta/models/m:generateContent", []string{"/v1", "/v1beta"}},
		{"gemini", "", "/v1/v1beta/models/m:generateContent", "/v1/v1beta/models/m:generateContent", []string{"/v1beta", "/v1", "/v1alpha"}},
	} {
		if at, either := speaker(t, tt.provider).(Locator).Locate("example.com", tt.base, tt.path); at != tt.at || !slices.Equal(either, tt.either) {
			t.Errorf("%s: upstream %q and path %q: %s %v", tt.provider, tt.base, tt.path, at, either)
		}
	}
}

// A located path stays where it is, for the next gate and for clients that follow links.
func TestLocateIsStable(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/v1", "/v1beta", "/v2", "/openai", "/api", "/chat", "/completions", "/messages", "/models", "/x", "/"})
	rapid.Check(t, func(t *rapid.T) {
		name, path := rapid.SampledFrom(Names()).Draw(t, "provider"), ""
		for range rapid.IntRange(1, 5).Draw(t, "pieces") {
			path += piece.Draw(t, "piece")
		}
		l, ok := dialects[name].(Locator)
		if !ok {
			return
		}
		at, either := l.Locate("example.com", "", path)
		if again, _ := l.Locate("example.com", "", at); either == nil && again != at {
			t.Fatalf("%s is at %s, which is at %s", path, at, again)
		}
	})
}
