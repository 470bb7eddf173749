package proxy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/proxy"
)

// passedOn is what a proxy sends on.
type passedOn struct{ last *http.Request }

func (s *passedOn) RoundTrip(r *http.Request) (*http.Response, error) {
	s.last = r
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// FuzzHeaders sends any headers, one per line, to any path of a proxy with tokens. A request passes only with a token,
// headers for the gate do not reach the provider, and the names it is counted under are bounded.
func FuzzHeaders(f *testing.F) {
	const token, canary = "the-token-of-the-test", "sluice-only"
	to, sum := &passedOn{}, sha256.Sum256([]byte(token))
	gate, err := sluice.Open(f.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = gate.Close() })
	p, err := proxy.New(proxy.Options{
		Gate: gate, Classes: []string{"p0", "p1", "p2"}, Base: to, Tokens: []proxy.Token{{Name: "t", Hash: hex.EncodeToString(sum[:]), Class: "p1"}},
		Resources: map[string]proxy.Resource{"api": {Upstream: &url.URL{Scheme: "http", Host: "provider.test"}, Deadline: time.Minute}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.Settle)
	f.Add("/api/v1", "X-Sluice-Token: "+token+"\nX-Sluice-Agent: a\nX-Sluice-Class: p2\nX-Sluice-Tool: "+canary)
	f.Add("/@a:p2/api/", "Authorization: Bearer "+token+"\nX-Claude-Code-Session-Id: 12345678-1234\nX-Claude-Code-Agent-Id: ü\nX-Claude-Code-Parent-Agent-Id: b")
	f.Add("/api/?key="+token, "X-Stainless-Retry-Count: 2\nX-Sluice-Emergency: yes\nX-Sluice-User: \x7f")
	f.Add("/api/", "X-Api-Key: "+token+"\nX-Api-Key: sk-other\nX-Sluice-Route: simple\nX-Sluice-Via: "+canary)
	f.Add("/@"+strings.Repeat("a", 300)+"/api/", "X-Sluice-Token: wrong")
	f.Fuzz(func(t *testing.T, path, lines string) {
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		at, err := url.ParseRequestURI("http://localhost" + path)
		if err != nil {
			return
		}
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		q.URL, q.RequestURI, q.Header = at, path, http.Header{}
		borne := strings.Contains(path, token)
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
			q.Header.Add(name, value)
			borne = borne || strings.Contains(value, token)
		}
		to.last = nil
		w := httptest.NewRecorder()
		p.ServeHTTP(w, q)
		if w.Code >= 500 || w.Code >= 400 && w.Body.Len() == 0 {
			t.Errorf("%d %q", w.Code, w.Body)
		}
		if to.last == nil {
			return
		}
		if !borne {
			t.Errorf("it went on without a token: %q %q", path, lines)
		}
		for name, values := range to.last.Header {
			text := name + ": " + strings.Join(values, ",")
			if strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Sluice-") {
				t.Errorf("%q went on", text)
			}
		}
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
			for _, v := range to.last.Header.Values(name) {
				if v == token || v == "Bearer "+token {
					t.Errorf("the token went on in %s", name)
				}
			}
		}
	})
}
