package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer sends every request with the same headers.
type bearer struct {
	base   http.RoundTripper
	header map[string]string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range b.header {
		r.Header.Set(name, value)
	}
	return b.base.RoundTrip(r)
}

// mcp connects the SDK's client to the daemon over HTTP.
func (r *rig) mcp(url string, header map[string]string) (*sdk.ClientSession, error) {
	base := &http.Transport{}
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(r.Context(), &sdk.StreamableClientTransport{
		Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: bearer{base, header}}, MaxRetries: -1,
	}, nil)
	r.Cleanup(func() {
		if err == nil {
			_ = c.Close()
		}
		base.CloseIdleConnections()
	})
	return c, err
}

// tool calls a tool and returns its data and its sentence.
func (r *rig) tool(c *sdk.ClientSession, name, arguments string) (map[string]any, string) {
	r.Helper()
	res, err := c.CallTool(r.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		r.Fatal(err)
	}
	data, _ := res.StructuredContent.(map[string]any)
	return data, res.Content[0].(*sdk.TextContent).Text
}

// An agent asks the daemon with the official client. Its token identifies it.
func TestAgentsAskWithMCP(t *testing.T) {
	r := begin(t, "generic", plain+fourTokens, nil)
	server := httptest.NewServer(r.daemon)
	t.Cleanup(server.Close)
	if code, body := r.as("bob", "POST", "/v1/tickets", `{"resource":"api","wait_ms":0}`); code != http.StatusOK {
		t.Fatal(code, body)
	}
	bob, err := r.mcp(server.URL, map[string]string{"Authorization": "Bearer bob"})
	if err != nil {
		t.Fatal(err)
	}
	if v := bob.InitializeResult(); v != nil && v.ServerInfo.Name != "sluice" {
		t.Error(v)
	}
	if _, text := r.tool(bob, "remaining_quota", `{"resource":"api"}`); !strings.Contains(text, "api is flowing: 1 of 2 requests left") {
		t.Error(text)
	}
	if data, text := r.tool(bob, "may_i_start_new_work", `{"resource":"api"}`); data["start"] != true {
		t.Error(text)
	}
	if data, text := r.tool(bob, "what_have_i_spent", `{}`); data["agent"] != "bob" || !strings.HasPrefix(text, "bob sent ") {
		t.Error(data, text)
	}
	top, err := r.mcp(server.URL, map[string]string{"X-Sluice-Token": "top", "X-Sluice-Agent": "boss"})
	if err != nil {
		t.Fatal(err)
	}
	if data, text := r.tool(top, "pause_resource", `{"resource":"api","minutes":10}`); data["paused"] != true || data["reason"] != "paused by boss" {
		t.Error(data, text)
	}
	if data, text := r.tool(bob, "may_i_start_new_work", `{"resource":"api"}`); data["start"] != false || !strings.Contains(text, "api is paused: paused by boss") {
		t.Error(data, text)
	}
	if data, text := r.tool(top, "resume_resource", `{"resource":"api"}`); data["paused"] != false {
		t.Error(data, text)
	}
	if _, text := r.tool(top, "pause_resource", `{"resource":"apo","minutes":10}`); !strings.HasPrefix(text, "error: ") {
		t.Error(text)
	}
	for _, uri := range []string{"sluice://status", "sluice://report"} {
		res, err := bob.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || !json.Valid([]byte(res.Contents[0].Text)) {
			t.Error(uri, err)
		}
	}
	if _, err := r.mcp(server.URL, nil); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Error("without a token:", err)
	}
}

// Messages reach the protocol only after the daemon's checks of host, origin, token and name, and within the size
// limit.
func TestMCPIsGuarded(t *testing.T) {
	r := begin(t, "generic", plain+fourTokens, nil)
	ask := mcpCall("remaining_quota", `{}`)
	for name, test := range map[string]struct {
		host, method, body string
		header             []string
		want               int
	}{
		"fine":               {body: ask, header: []string{"X-Sluice-Token", "bob"}, want: 200},
		"its own page":       {body: ask, header: []string{"X-Sluice-Token", "bob", "Origin", "http://localhost"}, want: 200},
		"no token":           {body: ask, want: 401},
		"a wrong token":      {body: ask, header: []string{"X-Sluice-Token", "x"}, want: 401},
		"another's page":     {body: ask, header: []string{"X-Sluice-Token", "bob", "Origin", "http://evil.example"}, want: 403},
		"a cross-site fetch": {body: ask, header: []string{"X-Sluice-Token", "bob", "Sec-Fetch-Site", "cross-site"}, want: 403},
		"a rebound name":     {host: "evil.example", body: ask, header: []string{"X-Sluice-Token", "bob"}, want: 421},
		"another agent":      {body: ask, header: []string{"X-Sluice-Token", "bob", "X-Sluice-Agent", "eve"}, want: 403},
		"a higher class":     {body: ask, header: []string{"X-Sluice-Token", "bob", "X-Sluice-Class", "p0"}, want: 403},
		"no such class":      {body: ask, header: []string{"X-Sluice-Token", "top", "X-Sluice-Class", "p9"}, want: 400},
		"a long name":        {body: ask, header: []string{"X-Sluice-Token", "top", "X-Sluice-Agent", strings.Repeat("x", 129)}, want: 400},
		"too large":          {body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 70_000) + `"}}`, header: []string{"X-Sluice-Token", "bob"}, want: 413},
		"a batch":            {body: "[" + ask + "," + ask + "]", header: []string{"X-Sluice-Token", "bob"}, want: 400},
		"no JSON":            {body: "{", header: []string{"X-Sluice-Token", "bob"}, want: 400},
		"a stream":           {method: "GET", header: []string{"X-Sluice-Token", "bob"}, want: 405},
		"the end of none":    {method: "DELETE", header: []string{"X-Sluice-Token", "bob"}, want: 405},
	} {
		host, method := "localhost", "POST"
		if test.host != "" {
			host = test.host
		}
		if test.method != "" {
			method = test.method
		}
		q := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+"/mcp", strings.NewReader(test.body))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(test.header); i += 2 {
			q.Header.Set(test.header[i], test.header[i+1])
		}
		w := httptest.NewRecorder()
		r.daemon.ServeHTTP(w, q)
		if w.Code != test.want {
			t.Errorf("%s: %d, not %d: %.200s", name, w.Code, test.want, w.Body)
		}
		if w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: the answer has no id: %v", name, w.Header())
		}
	}
}

// A client that asks for a stream of changes must not delay the daemon's shutdown: it is told at once that there is
// none.
func TestMCPKeepsNoStreamOpen(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	server := httptest.NewServer(r.daemon)
	t.Cleanup(server.Close)
	const version = "2026-07-28"
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourcesListChanged":true},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	q, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	q.Header.Set("Mcp-Protocol-Version", version)
	q.Header.Set("Mcp-Method", "subscriptions/listen")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	res, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body) // it ends
	if err != nil || !strings.Contains(string(text), `"id":1`) {
		t.Error(string(text), err)
	}
}
