package proxy_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
)

// speaks makes the resource one of a provider, whose address has a path.
func speaks(t *testing.T, dialect, path string) func(*proxy.Options) {
	return func(o *proxy.Options) {
		res := o.Resources["api"]
		at := *res.Upstream
		at.Path = path
		d, ok := provider.Lookup(dialect)
		if !ok {
			t.Fatalf("no dialect %s", dialect)
		}
		res.Dialect, res.Upstream = d, &at
		o.Resources["api"] = res
	}
}

// A client whose base URL has or lacks the prefix of the calls reaches the same place, whatever the upstream ends with.
func TestPathsReachTheSamePlace(t *testing.T) {
	for _, tt := range []struct{ dialect, upstream, path, want string }{
		{"anthropic", "", "/messages", "/v1/messages"},
		{"anthropic", "", "/v1/messages?beta=true", "/v1/messages?beta=true"},
		{"anthropic", "/v1", "/v1/messages", "/v1/messages"},
		{"openai", "/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"openai", "/v1/", "/chat/completions?x=%2F..", "/v1/chat/completions?x=%2F.."},
		{"openai", "", "/models/a%2Fb", "/v1/models/a%2Fb"},
		{"gemini", "", "/models/gemini-3:streamGenerateContent?alt=sse", "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"},
		{"groq", "", "/v1/chat/completions", "/openai/v1/chat/completions"},
		{"openai", "/llm/openai", "/v1/chat/completions", "/llm/openai/v1/chat/completions"},
		{"openai", "", "//chat/completions", "//chat/completions"},
		{"generic", "/v1", "/v1/chat/completions", "/v1/v1/chat/completions"},
	} {
		r := begin(t, perMinute(100), hello, speaks(t, tt.dialect, tt.upstream))
		for _, from := range []string{"/api", "/@me/api", "/@me:p1/api"} {
			if resp, text := r.send(http.MethodPost, from+tt.path, strings.NewReader(`{"model":"m"}`)); resp.StatusCode != http.StatusOK {
				t.Fatalf("%+v: %d %s", tt, resp.StatusCode, text)
			}
			if got := (<-r.seen).URL.RequestURI(); got != tt.want {
				t.Errorf("%+v: the provider got %s", tt, got)
			}
		}
	}
}

// A path that may mean several calls is not guessed: the gate says what it would have asked for, as the provider says it.
func TestDoubtfulPathsGetTheGatesOwn404(t *testing.T) {
	for _, tt := range []struct{ dialect, upstream, path, asked, shape string }{
		{"cohere", "", "/chat", "/chat", `{"message":`},
		{"cohere", "/v1", "/v2/chat", "/v1/v2/chat", `{"message":`},
		{"gemini", "/v1", "/v1beta/models/m:generateContent", "/v1/v1beta/models/m:generateContent", `"status":"NOT_FOUND"`},
	} {
		r := begin(t, perMinute(100), hello, speaks(t, tt.dialect, tt.upstream))
		resp, text := r.send(http.MethodPost, "/api"+tt.path, strings.NewReader(`{"model":"m"}`))
		if resp.StatusCode != http.StatusNotFound || resp.Header.Get("X-Sluice-Refused") == "" || !strings.Contains(text, " for "+tt.asked+" ") || !strings.Contains(text, tt.shape) {
			t.Errorf("%+v: %d %s", tt, resp.StatusCode, text)
		}
		if len(r.seen) != 0 {
			t.Errorf("%+v: the provider got %s", tt, (<-r.seen).URL)
		}
	}
}

// Links of a provider lead back to it through the gate, whichever prefix the client left out.
func TestLinksOfLocatedPathsLeadBack(t *testing.T) {
	for _, tt := range []struct{ upstream, path string }{{"", "/files"}, {"", "/v1/files"}, {"/v1", "/files"}, {"/v1", "/v1/files"}} {
		r := begin(t, perMinute(100), func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s/v1/files?after=f1>; rel="next"`, q.Host))
		}, speaks(t, "openai", tt.upstream))
		resp, _ := r.get("/@me/api" + tt.path)
		<-r.seen
		link, _, _ := strings.Cut(strings.TrimPrefix(resp.Header.Get("Link"), "<"), ">")
		next, err := url.Parse(link)
		if err != nil || !strings.HasPrefix(link, r.proxy.URL+"/@me/api/") {
			t.Fatalf("%+v: the link is %s (%v)", tt, link, err)
		}
		r.get(next.RequestURI())
		if got := (<-r.seen).URL.RequestURI(); got != "/v1/files?after=f1" {
			t.Errorf("%+v: %s leads to %s", tt, link, got)
		}
	}
}

// An intercepted client names the provider's own path: it stays as it is.
func TestInterceptedPathsAreExact(t *testing.T) {
	r := begin(t, perMinute(100), hello, speaks(t, "openai", "/v1"))
	for _, path := range []string{"/chat/completions", "/v1/v1/chat/completions", "/v1/chat/completions/"} {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://api.openai.com"+path, strings.NewReader(`{"model":"m"}`))
		q = q.WithContext(proxy.WithIntercepted(q.Context(), &proxy.Intercepted{Resource: "api", Path: path}))
		w := httptest.NewRecorder()
		r.proxy.Config.Handler.ServeHTTP(w, q)
		if got := (<-r.seen).URL.Path; w.Code != http.StatusOK || got != path {
			t.Errorf("%s: %d, the provider got %s", path, w.Code, got)
		}
	}
}
