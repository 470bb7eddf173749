package sluicehttp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/provider"
)

// A provider that rejects every request is failing, and the reason says what is wrong as far as it can be known.
func TestRejectionsSayWhatIsWrong(t *testing.T) {
	openai, _ := provider.Lookup("openai")
	for _, tt := range []struct {
		name, upstream, path string
		status               int
		body, key            string
		want                 string
	}{
		{"doubled path", "/v1", "/v1/v1/chat/completions", 404, "", "k", "5 of 5 answered 404 Not Found: the path has /v1 twice, because upstream ends with it and clients send it too; remove it from upstream"},
		{"doubled end", "/api/v1/", "/api/v1/v1/chat/completions", 404, "", "k", "the path has /v1 twice"},
		{"doubled and more", "/api/v1", "/api/v1/api/v1/chat/completions", 404, "", "k", "the path has /api/v1 twice"},
		{"no doubled path", "/v1", "/v1/chat/completions", 404, "", "k", "!twice"},
		{"alike", "/v1", "/v1/v1beta/chat/completions", 404, "", "k", "!twice"},
		{"no path", "", "/v1/v1/chat/completions", 404, "", "k", "!twice"},
		{"unknown model", "", "/v1/chat/completions", 404, `{"error":{"message":"The model 'gpt-9' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, "k",
			"5 of 5 answered 404 Not Found: the provider does not know model gpt-9"},
		{"unknown model behind a doubled path", "/v1", "/v1/v1/chat/completions", 404, `{"error":{"message":"The model 'gpt-9' does not exist","code":"model_not_found"}}`, "k",
			"5 of 5 answered 404 Not Found: the provider does not know model gpt-9"},
		{"too large behind a doubled path", "/v1", "/v1/v1/chat/completions", 413, "", "k", "!twice"},
		{"key", "", "/v1/chat/completions", 401, `{"error":{"message":"Incorrect API key provided: sk-proj-secret"}}`, "sk-proj-secret", "5 of 5 answered 401 Unauthorized: the provider refuses key "},
		{"no key", "", "/v1/chat/completions", 401, "", "", "5 of 5 answered 401 Unauthorized: the requests have no API key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newRig(t)
			x.Dialect = openai
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			x.Upstream, _ = url.Parse(address + tt.upstream)
			for range 5 {
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address+tt.path, strings.NewReader(`{"model":"gpt-9","messages":[]}`))
				if tt.key != "" {
					r.Header.Set("Authorization", "Bearer "+tt.key)
				}
				if resp, _ := x.do(t, r); resp.StatusCode != tt.status {
					t.Fatalf("the client got %d", resp.StatusCode)
				}
			}
			s := x.status(t)
			want, not := strings.CutPrefix(tt.want, "!")
			if s.State != inspect.StateFailing || strings.Contains(s.Reason, want) == not || strings.Contains(s.Reason, "secret") {
				t.Errorf("it is %s: %s", s.State, s.Reason)
			}
			if tt.name == "key" {
				label, err := x.Gate.KeyLabel(t.Context(), tt.key)
				if err != nil || !strings.HasSuffix(s.Reason, "key "+label) {
					t.Errorf("%s does not name key %s (%v)", s.Reason, label, err)
				}
			}
		})
	}
}
