package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/history"
)

// The API returns the history of proxied requests and of tickets alike, and rejects invalid queries.
func TestHistoryByTheAPI(t *testing.T) {
	r := begin(t, "anthropic", "resources:\n  api: {provider: anthropic, upstream: \"${UPSTREAM}\"}\n  off: {limits: [{name: n, concurrency: 1}]}\n", nil)
	book := history.Open(history.Options{})
	defer book.Close()
	c, err := r.file.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Store, c.Events = "mem:", book.Event
	gate, err := sluice.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	d, err := daemon.New(daemon.Options{File: r.file, Gate: gate, Base: r.base, History: book, Done: book.Done})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Settle()
	r.daemon = d

	q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/@ana:p0/api/v1/messages", strings.NewReader(`{"model":"claude-opus-4-1","max_tokens":20,"messages":[{"role":"user","content":"secret words"}]}`))
	q.Header.Set("X-Api-Key", "sk-very-secret")
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, q)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if code, out := r.call("POST", "/v1/tickets", `{"resource":"off","agent":"bob"}`); code != 200 {
		t.Fatal(out)
	}
	if code, out := r.call("POST", "/v1/resources/off/pause", `{"for_ms":60000,"reason":"by hand"}`); code != 204 {
		t.Fatal(out)
	}

	code, out := r.call("GET", "/v1/recent", "")
	requests, _ := out["requests"].([]any)
	if code != 200 || len(requests) != 2 {
		t.Fatalf("%d %v", code, out)
	}
	first := requests[1].(map[string]any)
	if first["agent"] != "ana" || first["class"] != "p0" || first["model"] != "claude-opus-4-1" || first["status"] != 200.0 || first["state"] != "done" || first["input_tokens"].(float64) <= 0 || first["usd"] == nil {
		t.Errorf("%v", first)
	}
	code, out = r.call("GET", "/v1/history?since=15m&points=resources,agents,models", "")
	if list, _ := out["resources"].([]any); code != 200 || len(list) != 2 {
		t.Fatalf("%d %v", code, out)
	}
	if list := out["events"].([]any); len(list) != 1 || list[0].(map[string]any)["event"] != "pause" {
		t.Errorf("%v", list)
	}
	for _, path := range []string{"/v1/history?since=15m", "/v1/recent", "/v1/config"} {
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+path, nil))
		if body := w.Body.String(); w.Code != 200 || strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", path, w.Code, body)
		}
	}
	for path, want := range map[string]int{
		"/v1/history?since=yesterday": 400, "/v1/history?step=30s": 400, "/v1/history?since=7d&step=1m": 400, "/v1/history?since=24h&step=1m": 200, "/v1/history?since=365d": 200,
		"/v1/history?points=bodies": 400, "/v1/history?limit=0": 400, "/v1/history?events=99999": 400, "/v1/history?until=now": 400, "/v1/history?events=0&points=": 200,
		"/v1/recent?limit=513": 400, "/v1/recent?limit=0": 200,
	} {
		if code, out := r.call("GET", path, ""); code != want {
			t.Errorf("%s: %d, not %d: %v", path, code, want, out)
		}
	}
}

// History needs the same access as the status.
func TestHistoryNeedsAToken(t *testing.T) {
	r := begin(t, "generic", plain+"tokens: [{name: ops, hash: "+strings.Repeat("ab", 32)+"}]\n", nil)
	for _, path := range []string{"/v1/history", "/v1/recent", "/v1/config"} {
		if code, out := r.call("GET", path, ""); code != http.StatusUnauthorized {
			t.Errorf("%s: %d %v", path, code, out)
		}
	}
}
