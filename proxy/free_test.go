package proxy_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/proxy"
)

// What Claude Code sends besides messages takes no turn, is counted nowhere, and its refusals hold no message, whether the
// client reaches the provider through a base URL or is intercepted.
func TestOnlyMeteredCallsCount(t *testing.T) {
	var lines bytes.Buffer
	r := begin(t, perMinute(3), func(w http.ResponseWriter, q *http.Request) {
		switch {
		case strings.HasPrefix(q.URL.Path, "/api/event_logging"):
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.HasPrefix(q.URL.Path, "/api/"), q.URL.Path == "/v1/mcp_servers":
			w.WriteHeader(http.StatusNotFound)
		default:
			hello(w, q)
		}
	}, func(o *proxy.Options) {
		speaks(t, "anthropic", "")(o)
		o.Requests = slog.New(slog.NewJSONHandler(&lines, nil))
	})
	for i := range 3 {
		for _, c := range []struct {
			method, path, body string
			status             int
		}{
			{"GET", "/api/claude_code/settings", "", 404}, {"POST", "/api/event_logging/batch", `{"model":"m","events":[]}`, 429}, {"GET", "/api/oauth/profile", "", 404},
			{"POST", "/v1/oauth/token", `{"grant_type":"refresh_token"}`, 200}, {"GET", "/v1/models?limit=1", "", 200}, {"GET", "/v1/mcp_servers", "", 404},
			{"HEAD", "/", "", 200}, {"POST", "/v1/messages", `{"model":"claude-opus-5"}`, 200},
		} {
			if resp, text := r.send(c.method, "/@claude/api"+c.path, strings.NewReader(c.body)); resp.StatusCode != c.status || resp.Header.Get("X-Sluice-Refused") != "" {
				t.Errorf("%s %s, %d: %d %s", c.method, c.path, i, resp.StatusCode, text)
			}
		}
	}
	s := r.status()
	if s.Sent != 3 || s.Throttled != 0 || s.PausedUntil != nil || s.State != "flowing" {
		t.Errorf("sent %d, throttled %d, paused until %v, %s: %s", s.Sent, s.Throttled, s.PausedUntil, s.State, s.Reason)
	}
	rep, err := r.gate.Report(t.Context(), time.Time{})
	if err != nil || rep.Resources[0].Total.FirstSends != 3 || len(rep.Resources[0].Total.Models) != 1 {
		t.Errorf("%+v %v", rep, err)
	}
	if all := lines.String(); strings.Count(all, `"free":true`) != 3*7 || strings.Count(all, `"sends":1`) != 3 {
		t.Errorf("the log of requests:\n%s", all)
	}
	if resp, _ := r.send(http.MethodGet, "/api/v1/models", nil); resp.StatusCode != http.StatusOK { // the limit is full
		t.Errorf("the list of models: %d", resp.StatusCode)
	}
}

// A body that is not JSON, or very long, is no reason to refuse what is no call.
func TestWhatIsNoCallNeedsNoModel(t *testing.T) {
	var got int64
	r := begin(t, perMinute(3), func(_ http.ResponseWriter, q *http.Request) { got, _ = io.Copy(io.Discard, q.Body) }, speaks(t, "anthropic", ""))
	for _, body := range []string{"{", `{"model":"a","model":"b"}`, strings.Repeat("[", 600), `{"x":"` + strings.Repeat("x", 5<<20) + `"}`} {
		resp, text := r.send(http.MethodPost, "/api/api/event_logging/batch", strings.NewReader(body), "Content-Type", "application/json")
		if resp.StatusCode != http.StatusOK || got != int64(len(body)) {
			t.Errorf("%.30s: %d %s, %d bytes", body, resp.StatusCode, text, got)
		}
	}
	if s := r.status(); s.Sent != 0 {
		t.Errorf("sent %d", s.Sent)
	}
}
