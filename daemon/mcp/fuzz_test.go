package mcp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/daemon/mcp"
)

// FuzzMessage sends any message of a client: it gets JSON or a useful error, never a server failure. A caller without
// the right to pause a resource pauses none.
func FuzzMessage(f *testing.F) {
	call := func(tool, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
	}
	for _, s := range []string{
		call("remaining_quota", `{"resource":"api"}`), call("why_am_i_waiting", `{}`), call("may_i_start_new_work", `{"agent":"b"}`), call("what_have_i_spent", `{"since":"1h"}`),
		call("pause_resource", `{"resource":"api","minutes":1e300}`), call("resume_resource", `{"resource":7}`), call("none", `[]`),
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"sluice://status"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
		`[]`, `{"jsonrpc":"2.0"}`, `{`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		g := calm()
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		mcp.ServeHTTP(w, q, mcp.Options{Gate: g, Caller: me})
		text := w.Body.String()
		if w.Code >= 500 || w.Code >= 400 && strings.TrimSpace(text) == "" {
			t.Errorf("%d %q", w.Code, text)
		}
		if w.Code == http.StatusOK && !json.Valid([]byte(text)) {
			t.Errorf("not JSON: %q", text)
		}
		if len(g.paused) > 0 {
			t.Errorf("%v", g.paused)
		}
	})
}
