package daemon_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The table of rights: what each token may do, on every route. docs/remote.md has the same in words.
func TestRights(t *testing.T) {
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	tokens := "tokens:\n- {name: top, hash: " + hash("top") + "}\n- {name: low, hash: " + hash("low") + ", class: p2}\n" +
		"- {name: other, hash: " + hash("other") + ", class: p2}\n- {name: bob, hash: " + hash("bob") + ", class: p2, agent: bob}\n"
	text := `
resources:
  api: {upstream: "${UPSTREAM}", limits: [{name: minute, size: 1000/min}, {name: tokens, size: 10000/min, unit: input_tokens}]}
agents: {high: {class: p0}}
`
	const grant = `{"resource":"api","agent":"%","wait_ms":0}`
	ask := func(more string) string { return strings.Replace(grant, "}", ","+more+"}", 1) }
	for _, row := range []struct {
		method, path, body  string
		open, top, low, bob int // what it answers without tokens, and to each token
	}{
		{"POST", "/v1/tickets", grant, 200, 200, 200, 200},
		{"POST", "/v1/tickets", ask(`"class":"p0"`), 200, 200, 403, 403},
		{"POST", "/v1/tickets", ask(`"emergency":true,"class":"p0"`), 200, 200, 403, 403},
		{"POST", "/v1/tickets", ask(`"ttl_ms":600000`), 200, 200, 200, 200},
		{"POST", "/v1/tickets", ask(`"ttl_ms":86400000`), 200, 200, 403, 403},
		{"POST", "/v1/tickets", ask(`"units":{"requests":500}`), 200, 200, 403, 403},
		{"POST", "/v1/tickets", ask(`"units":{"input_tokens":5000}`), 200, 200, 200, 200},
		{"POST", "/v1/tickets", ask(`"units":{"input_tokens":5001}`), 200, 200, 403, 403},
		{"POST", "/v1/tickets", strings.Replace(grant, "%", "eve", 1), 200, 200, 200, 403},
		{"PUT", "/v1/agents/%", `{}`, 200, 200, 200, 200},
		{"PUT", "/v1/agents/eve", `{}`, 200, 200, 403, 403}, // whom another token has brought in
		{"PUT", "/v1/agents/high", `{}`, 200, 200, 403, 403},
		{"DELETE", "/v1/agents/%", "", 204, 204, 204, 204},
		{"DELETE", "/v1/agents/eve", "", 204, 204, 403, 403},
		{"DELETE", "/v1/agents/high", "", 204, 204, 403, 403},
		{"POST", "/v1/resources/api/observe", `{"status":200}`, 200, 200, 403, 403},
		{"POST", "/v1/resources/api/pause", `{"for_ms":1}`, 204, 204, 403, 403},
		{"POST", "/v1/resources/api/resume", "", 204, 204, 403, 403},
		{"GET", "/v1/status", "", 200, 200, 200, 200},
		{"GET", "/v1/pool/api", "", 200, 200, 200, 200},
		{"GET", "/v1/why", "", 200, 200, 200, 200},
		{"GET", "/v1/report", "", 200, 200, 200, 200},
		{"GET", "/v1/me", "", 200, 200, 200, 200},
		{"POST", "/-/reload", "", 200, 200, 403, 403},
		{"GET", "/@%/api/", "", 200, 200, 200, 200},
		{"GET", "/@%:p0/api/", "", 200, 200, 403, 403},
		{"GET", "/@eve/api/", "", 200, 200, 200, 403},
		{"GET", "/v1/store/config", "", 400, 400, 403, 403}, // 400: let in, but it is no client of a store
	} {
		for who, want := range map[string]int{"": row.open, "top": row.top, "low": row.low, "bob": row.bob, "wrong": 401} {
			config, agent := text+tokens, "mine"
			switch who {
			case "":
				config = text
			case "bob":
				agent = "bob"
			case "wrong":
				who = "no-such"
			}
			r := begin(t, "generic", config, nil)
			do := func(token, method, path, body string) int {
				q := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
				q.Header.Set("Content-Type", "application/json")
				if token != "" {
					q.Header.Set("X-Sluice-Token", token)
					q.Header.Set("Authorization", "Bearer "+token)
				}
				w := httptest.NewRecorder()
				r.daemon.ServeHTTP(w, q)
				return w.Code
			}
			before := "other"
			if who == "" {
				before = ""
			}
			if code := do(before, "PUT", "/v1/agents/eve", "{}"); code != http.StatusOK {
				t.Fatal(code)
			}
			if row.method == "DELETE" && strings.HasSuffix(row.path, "%") {
				do(who, "PUT", "/v1/agents/"+agent, "{}")
			}
			path, body := strings.Replace(row.path, "%", agent, 1), strings.Replace(row.body, "%", agent, 1)
			if got := do(who, row.method, path, body); got != want {
				t.Errorf("%q %s %s %s: %d, not %d", who, row.method, path, body, got, want)
			}
		}
	}
}

// A token below the highest class reports answers of its own tickets, and others wait no longer than the usual pause.
func TestReportedAnswerCannotHoldTheFleet(t *testing.T) {
	sum := sha256.Sum256([]byte("low"))
	r := begin(t, "generic", "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\ntokens: [{name: low, class: p2, hash: "+hex.EncodeToString(sum[:])+"}]\n", nil)
	got := r.want(http.StatusOK, "POST", "/v1/tickets", `{"resource":"api","agent":"a"}`, "Authorization", "Bearer low")
	r.want(http.StatusOK, "POST", "/v1/tickets/"+got["ticket"].(string)+"/answer", `{"status":429,"headers":{"retry-after":"86400"}}`, "Authorization", "Bearer low")
	s, err := r.gate.Resource(t.Context(), "api")
	if err != nil || s.PausedUntil == nil || time.Until(*s.PausedUntil) > 2*time.Minute {
		t.Errorf("paused until %v, %v", s.PausedUntil, err)
	}
}
