package daemon_test

import (
	"net/http"
	"strings"
	"testing"
)

// A base URL without a resource gets a response that names the right one.
func TestBaseURLWithoutAResource(t *testing.T) {
	r := begin(t, "anthropic", `
resources:
  anthropic: {upstream: "${UPSTREAM}", provider: anthropic}
  work: {upstream: "${UPSTREAM}", provider: openai}
`, nil)
	for path, want := range map[string]string{
		"/v1/messages":               "did you mean /anthropic/v1/messages? the base URL ends with /anthropic",
		"/v1/messages/count_tokens":  "did you mean /anthropic/v1/messages?",
		"/@ci:p1/v1/messages":        "did you mean /@ci:p1/anthropic/v1/messages?",
		"/v1/chat/completions":       "did you mean /work/v1/chat/completions?",
		"/responses":                 "did you mean /work/v1/responses? the base URL ends with /work/v1",
		"/antropic/v1/messages":      "did you mean /anthropic?",
		"/nothing/v1/messages":       "the first part of the path is one of: anthropic, work",
		"/v1beta/models/x:generate":  "the first part of the path is one of: anthropic, work",
		"/v1/nothing":                "openapi.yaml",
		"/v1/messagesomething/other": "openapi.yaml",
	} {
		w, body := r.post(path, messages("claude-opus-4-1"))
		if w.Code != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want 404 with %q", path, w.Code, body, want)
		}
	}
	if w, body := r.post("/v1/messages", "", "Origin", "http://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("a page got %d %s", w.Code, body)
	}
	if w, body := r.post("/anthropic/v1/messages", messages("claude-opus-4-1"), "x-api-key", "k"); w.Code != http.StatusOK {
		t.Errorf("the right path got %d %s", w.Code, body)
	}
}
