package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
)

// right is one operation: what it answers without tokens, to a token of the highest class, to one of a lower class, and to one
// of a lower class that is bound to an agent. A wrong token gets 401, except on open routes.
type right struct {
	does                string // for docs/remote.md
	route               string // as in the OpenAPI file
	path                string // if it is not the route: AGENT is the caller's own, MINE a ticket of its own, OTHER that of another token
	body                string
	user                string // that a request through the proxy states
	open, top, low, bob int
	public              bool
}

const asks = `{"resource":"api","agent":"AGENT","wait_ms":0`

const sends = `{"resource":"api","url":"http://127.0.0.1:1/","agent":"AGENT"`

const gaveUp = `{"resource":"api","method":"GET","path":"/",`

// rights is the table. docs/remote.md shows it.
var rights = []right{
	{does: "take a ticket for itself", route: "POST /v1/tickets", body: asks + `}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "take a ticket for another agent", route: "POST /v1/tickets", body: `{"resource":"api","agent":"eve","wait_ms":0}`, open: 200, top: 200, low: 200, bob: 403},
	{does: "take a ticket for an agent that the configuration puts in a higher class", route: "POST /v1/tickets", body: `{"resource":"api","agent":"high","wait_ms":0}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take a ticket for any other user", route: "POST /v1/tickets", body: asks + `,"user":"someone"}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "take a ticket for a user of a higher class", route: "POST /v1/tickets", body: asks + `,"user":"boss"}`, open: 200, top: 200, low: 403, bob: 200}, // bob's is not listened to
	{does: "take a ticket of a higher class", route: "POST /v1/tickets", body: asks + `,"class":"p0"}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "declare an emergency", route: "POST /v1/tickets", body: asks + `,"class":"p0","emergency":true}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take a ticket for 10 min", route: "POST /v1/tickets", body: asks + `,"ttl_ms":600000}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "take a ticket for 24 h", route: "POST /v1/tickets", body: asks + `,"ttl_ms":86400000}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take a ticket for several requests", route: "POST /v1/tickets", body: asks + `,"units":{"requests":2}}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take half of a limit with one ticket", route: "POST /v1/tickets", body: asks + `,"units":{"input_tokens":5000}}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "take more than half of a limit with one ticket", route: "POST /v1/tickets", body: asks + `,"units":{"input_tokens":5001}}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take more than 10,000,000 of a unit that no limit counts", route: "POST /v1/tickets", body: asks + `,"units":{"pages":10000001}}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "take a ticket for more than 100 USD", route: "POST /v1/tickets", body: asks + `,"units":{"usd":100.000001}}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "report the answer of its own ticket", route: "POST /v1/tickets/{id}/answer", path: "/v1/tickets/MINE/answer", body: `{"status":200}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "report the answer of another's ticket", route: "POST /v1/tickets/{id}/answer", path: "/v1/tickets/OTHER/answer", body: `{"status":429}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "renew its own ticket", route: "POST /v1/tickets/{id}/renew", path: "/v1/tickets/MINE/renew", body: `{}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "renew another's ticket", route: "POST /v1/tickets/{id}/renew", path: "/v1/tickets/OTHER/renew", body: `{}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "close its own ticket", route: "POST /v1/tickets/{id}/close", path: "/v1/tickets/MINE/close", body: `{}`, open: 204, top: 204, low: 204, bob: 204},
	{does: "close another's ticket", route: "POST /v1/tickets/{id}/close", path: "/v1/tickets/OTHER/close", body: `{"usage":{"input_tokens":9999}}`, open: 204, top: 204, low: 403, bob: 403},
	{does: "cancel its own ticket", route: "DELETE /v1/tickets/{id}", path: "/v1/tickets/MINE", open: 204, top: 204, low: 204, bob: 204},
	{does: "cancel another's ticket", route: "DELETE /v1/tickets/{id}", path: "/v1/tickets/OTHER", open: 204, top: 204, low: 403, bob: 403},
	{does: "send a request by itself, in its turn", route: "POST /v1/exchanges", body: sends + `}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "send a request by itself as another agent", route: "POST /v1/exchanges", body: `{"resource":"api","url":"http://127.0.0.1:1/","agent":"eve"}`, open: 200, top: 200, low: 200, bob: 403},
	{does: "send a request by itself in a higher class", route: "POST /v1/exchanges", body: sends + `,"class":"p0"}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "declare an emergency for a request that it sends by itself", route: "POST /v1/exchanges", body: sends + `,"class":"p0","emergency":true}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "report the response to its own request", route: "POST /v1/exchanges/{id}/answer", path: "/v1/exchanges/MINE/answer", body: `{"status":200}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "report the response to another's request", route: "POST /v1/exchanges/{id}/answer", path: "/v1/exchanges/OTHER/answer", body: `{"status":429}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "report more of the response to another's request", route: "POST /v1/exchanges/{id}/body", path: "/v1/exchanges/OTHER/body", body: `{}`, open: 409, top: 409, low: 403, bob: 403}, // 409: it has no response yet
	{does: "give back another's turn", route: "DELETE /v1/exchanges/{id}", path: "/v1/exchanges/OTHER", open: 204, top: 204, low: 403, bob: 403},
	{does: "heartbeat for itself", route: "PUT /v1/agents/{name}", path: "/v1/agents/AGENT", body: `{}`, open: 200, top: 200, low: 200, bob: 200},
	{does: "heartbeat for a user of a higher class", route: "PUT /v1/agents/{name}", path: "/v1/agents/AGENT", body: `{"user":"boss"}`, open: 200, top: 200, low: 403, bob: 200},
	{does: "heartbeat for a new agent", route: "PUT /v1/agents/{name}", path: "/v1/agents/new", body: `{}`, open: 200, top: 200, low: 200, bob: 403},
	{does: "heartbeat for an agent of another token", route: "PUT /v1/agents/{name}", path: "/v1/agents/eve", body: `{}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "heartbeat for a live agent of no known token, from another machine", route: "PUT /v1/agents/{name}", path: "/v1/agents/stray", body: `{"machine":"m2"}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "heartbeat for a live agent of no known token, from its machine", route: "PUT /v1/agents/{name}", path: "/v1/agents/stray", body: `{"machine":"m1"}`, open: 200, top: 200, low: 200, bob: 403},
	{does: "heartbeat for an agent of a higher class", route: "PUT /v1/agents/{name}", path: "/v1/agents/high", body: `{}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "end its own agent", route: "DELETE /v1/agents/{name}", path: "/v1/agents/AGENT", open: 204, top: 204, low: 204, bob: 204},
	{does: "end an agent of another token", route: "DELETE /v1/agents/{name}", path: "/v1/agents/eve", open: 204, top: 204, low: 403, bob: 403},
	{does: "end a live agent of no known token", route: "DELETE /v1/agents/{name}", path: "/v1/agents/stray?machine=m1", open: 204, top: 204, low: 403, bob: 403},
	{does: "report an answer without a ticket", route: "POST /v1/resources/{name}/observe", path: "/v1/resources/api/observe", body: `{"status":200}`, open: 200, top: 200, low: 403, bob: 403},
	{does: "pause a resource", route: "POST /v1/resources/{name}/pause", path: "/v1/resources/api/pause", body: `{"for_ms":1}`, open: 204, top: 204, low: 403, bob: 403},
	{does: "resume a resource", route: "POST /v1/resources/{name}/resume", path: "/v1/resources/api/resume", open: 204, top: 204, low: 403, bob: 403},
	{does: "choose a model for a task", route: "POST /v1/route", body: `{"task":"simple"}`, open: 404, top: 404, low: 404, bob: 404}, // the task is not configured
	{does: "choose a model in a higher class", route: "POST /v1/route", body: `{"task":"simple","agent":"AGENT","class":"p0"}`, open: 404, top: 404, low: 403, bob: 403},
	{does: "choose a model as another agent", route: "POST /v1/route", body: `{"task":"simple","agent":"eve"}`, open: 404, top: 404, low: 404, bob: 403},
	{does: "choose a model as a user of a higher class", route: "POST /v1/route", body: `{"task":"simple","agent":"AGENT","user":"boss"}`, open: 404, top: 404, low: 403, bob: 404},
	{does: "keep a request that it gave up", route: "POST /v1/dead-letters", body: gaveUp + `"agent":"AGENT"}`, open: 204, top: 204, low: 204, bob: 204},
	{does: "keep a request that another agent gave up", route: "POST /v1/dead-letters", body: gaveUp + `"agent":"eve"}`, open: 204, top: 204, low: 204, bob: 403},
	{does: "keep a request of a higher class", route: "POST /v1/dead-letters", body: gaveUp + `"agent":"AGENT","class":"p0"}`, open: 204, top: 204, low: 403, bob: 403},
	{does: "read the status", route: "GET /v1/status", open: 200, top: 200, low: 200, bob: 200},
	{does: "read a pool", route: "GET /v1/pool/{name}", path: "/v1/pool/api", open: 200, top: 200, low: 200, bob: 200},
	{does: "ask why requests wait", route: "GET /v1/why", open: 200, top: 200, low: 200, bob: 200},
	{does: "read the report", route: "GET /v1/report", open: 200, top: 200, low: 200, bob: 200},
	{does: "read the history", route: "GET /v1/history", open: 200, top: 200, low: 200, bob: 200},
	{does: "read the last requests", route: "GET /v1/recent", open: 200, top: 200, low: 200, bob: 200},
	{does: "read the configuration, without secrets", route: "GET /v1/config", open: 200, top: 200, low: 200, bob: 200},
	{does: "read its own rights", route: "GET /v1/me", open: 200, top: 200, low: 200, bob: 200},
	{does: "read the description of the API", route: "GET /v1/openapi.yaml", open: 200, top: 200, low: 200, bob: 200},
	{does: "follow events", route: "GET /v1/events", open: 200, top: 200, low: 200, bob: 200},
	{does: "ask about its quota with MCP", route: "POST /mcp", body: mcpCall("remaining_quota", `{"resource":"api"}`), open: 200, top: 200, low: 200, bob: 200},
	{does: "pause a resource with MCP", route: "POST /mcp", body: mcpCall("pause_resource", `{"resource":"api","minutes":0.001}`), open: 200, top: 200, low: 403, bob: 403},
	{does: "resume a resource with MCP", route: "POST /mcp", body: mcpCall("resume_resource", `{"resource":"api"}`), open: 200, top: 200, low: 403, bob: 403},
	{does: "read metrics", route: "GET /metrics", open: 404, top: 404, low: 404, bob: 404},                         // the test's daemon has none
	{does: "use the store: configuration", route: "GET /v1/store/config", open: 400, top: 400, low: 403, bob: 403}, // 400: let in, but it speaks no version
	{does: "use the store: list its pools", route: "GET /v1/store/pools", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: label keys", route: "POST /v1/store/secret", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: take from budgets", route: "POST /v1/store/books/take", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: settle budgets", route: "POST /v1/store/books/settle", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: give back to budgets", route: "POST /v1/store/books/cancel", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: tell budgets", route: "POST /v1/store/books/tell", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: read budgets", route: "POST /v1/store/books/read", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: come", route: "POST /v1/store/clients", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: go", route: "DELETE /v1/store/clients/{client}", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: stay", route: "POST /v1/store/clients/{client}/alive", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: watch", route: "GET /v1/store/clients/{client}/watch", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: open a pool", route: "POST /v1/store/clients/{client}/pools", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: close a pool", route: "DELETE /v1/store/clients/{client}/pools/{pool}", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: change a pool", route: "POST /v1/store/clients/{client}/pools/{pool}/apply", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: read a pool", route: "GET /v1/store/clients/{client}/pools/{pool}/snapshot", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: foresee what a pool decides", route: "POST /v1/store/clients/{client}/pools/{pool}/foresee", open: 400, top: 400, low: 403, bob: 403},
	{does: "use the store: read a pool's history", route: "GET /v1/store/clients/{client}/pools/{pool}/history", open: 400, top: 400, low: 403, bob: 403},
	{does: "load another configuration", route: "POST /-/reload", open: 200, top: 200, low: 403, bob: 403},
	{does: "check the daemon's health", route: "GET /healthz", open: 200, top: 200, low: 200, bob: 200, public: true},
	{does: "check whether the daemon is ready", route: "GET /readyz", open: 200, top: 200, low: 200, bob: 200, public: true},
	{does: "load the page", route: "GET /", open: 200, top: 200, low: 200, bob: 200, public: true},
	{does: "send through the proxy", route: "GET /NAME/", path: "/@AGENT/api/", open: 200, top: 200, low: 200, bob: 200},
	{does: "send through the proxy in a higher class", route: "GET /NAME/", path: "/@AGENT:p0/api/", open: 200, top: 200, low: 403, bob: 403},
	{does: "send through the proxy as an agent that the configuration puts in a higher class", route: "GET /NAME/", path: "/@high/api/", open: 200, top: 200, low: 403, bob: 403},
	{does: "send through the proxy for a user of a higher class", route: "GET /NAME/", path: "/@AGENT/api/", user: "boss", open: 200, top: 200, low: 403, bob: 200},
	{does: "send through the proxy as another agent", route: "GET /NAME/", path: "/@eve/api/", open: 200, top: 200, low: 200, bob: 403},
}

// tokenHash returns the hash of a token, as in a configuration.
func tokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

var fourTokens = "tokens:\n- {name: top, hash: " + tokenHash("top") + "}\n- {name: low, hash: " + tokenHash("low") + ", class: p2}\n" +
	"- {name: other, hash: " + tokenHash("other") + ", class: p2}\n- {name: bob, hash: " + tokenHash("bob") + ", class: p2, agent: bob}\n"

// flushed is a response that ends its request with the first flush: a stream would not end by itself.
type flushed struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (f flushed) Flush() { f.ResponseRecorder.Flush(); f.end() }

// as sends one request with a token.
func (r *rig) as(token, method, path, body string, user ...string) (int, string) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	q := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		q.Header.Set("X-Sluice-Token", token)
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for _, u := range user {
		q.Header.Set("X-Sluice-User", u)
	}
	w := flushed{httptest.NewRecorder(), func() {}}
	if path == "/v1/events" {
		w.end = cancel
	}
	r.daemon.ServeHTTP(w, q)
	if path == "/mcp" && strings.Contains(w.Body.String(), `"isError":true`) {
		return http.StatusForbidden, w.Body.String() // MCP has no statuses for tools
	}
	return w.Code, w.Body.String()
}

// mcpCall returns a message that calls a tool.
func mcpCall(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// grant takes a ticket with a token.
func (r *rig) grant(token, agent string) string {
	r.Helper()
	code, body := r.as(token, "POST", "/v1/tickets", `{"resource":"api","agent":"`+agent+`","wait_ms":0}`)
	var g struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &g); err != nil || code != http.StatusOK {
		r.Fatalf("%d %s %v", code, body, err)
	}
	return g.Ticket
}

// sends begins an exchange with a token.
func (r *rig) sends(token, agent string) string {
	r.Helper()
	code, body := r.as(token, "POST", "/v1/exchanges", `{"resource":"api","url":"http://127.0.0.1:1/","agent":"`+agent+`"}`)
	var turn struct{ Exchange string }
	if err := json.Unmarshal([]byte(body), &turn); err != nil || code != http.StatusOK {
		r.Fatalf("%d %s %v", code, body, err)
	}
	return turn.Exchange
}

// stray is an agent that another daemon on the same store has brought in.
var stray = sluice.JoinRequest{Agent: "stray", Class: "p2", Machine: "m1"}

// What each token may do, on every route.
func TestRights(t *testing.T) {
	const text = `
resources:
  api: {upstream: "${UPSTREAM}", dead_letters: on, limits: [{name: minute, size: 1000/min}, {name: tokens, size: 10000/min, unit: input_tokens}]}
agents: {high: {class: p0, user: boss}}
`
	for _, row := range rights {
		for who, want := range map[string]int{"": row.open, "top": row.top, "low": row.low, "bob": row.bob, "wrong": http.StatusUnauthorized} {
			config, agent, other := text+fourTokens, "mine", "other"
			switch who {
			case "":
				config, other = text, ""
			case "bob":
				agent = "bob"
			case "wrong":
				if row.public {
					want = row.open
				}
			}
			r := begin(t, "generic", config, nil)
			method, path, _ := strings.Cut(row.route, " ")
			if row.path != "" {
				path = row.path
			}
			if code, body := r.as(other, "PUT", "/v1/agents/eve", "{}"); code != http.StatusOK {
				t.Fatal(code, body)
			}
			if strings.Contains(path, "stray") {
				if _, err := inside.Of(r.gate).CheckIn(t.Context(), stray); err != nil {
					t.Fatal(err)
				}
			}
			if row.does == "end its own agent" && who != "wrong" {
				r.as(who, "PUT", "/v1/agents/"+agent, "{}")
			}
			mine := "api.1-1"
			if strings.Contains(path, "MINE") && who != "wrong" {
				mine = r.grant(who, agent)
			}
			theirs := r.grant(other, "eve")
			if strings.HasPrefix(path, "/v1/exchanges/") {
				if theirs = r.sends(other, "eve"); who != "wrong" {
					mine = r.sends(who, agent)
				}
			}
			names := strings.NewReplacer("AGENT", agent, "MINE", mine, "OTHER", theirs, "{client}", "c", "{pool}", "1")
			if got, body := r.as(who, method, names.Replace(path), names.Replace(row.body), row.user); got != want {
				t.Errorf("%s: %q %s %s: %d, not %d: %.200s", row.does, who, row.route, row.body, got, want, body)
			}
		}
	}
}

// A route without a row in the table fails.
func TestEveryRouteHasRights(t *testing.T) {
	has := map[string]bool{}
	for _, row := range rights {
		has[row.route] = true
	}
	for path, ops := range readContract(t).Paths { // TestEveryHandlerIsInTheContract: it has every handler
		for method := range ops {
			if route := strings.ToUpper(method) + " " + path; !has[route] {
				t.Errorf("%s has no row in rights", route)
			}
		}
	}
	source, err := os.ReadFile("daemon.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`case "(/[^"]+)":`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 5 {
		t.Fatalf("only %d paths were found", len(found))
	}
	for _, m := range found {
		if !has["GET "+m[1]] && !has["POST "+m[1]] {
			t.Errorf("%s has no row in rights", m[1])
		}
	}
}

// docs/remote.md says that the highest class may do everything, and shows what lower classes may not.
func TestRightsAreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("| operation | route | lower class | lower class, bound to an agent |\n|---|---|---|---|\n")
	word := func(code int) string {
		if code == http.StatusForbidden {
			return "no"
		}
		return "yes"
	}
	for _, row := range rights {
		if does, all, ok := strings.Cut(row.does, ":"); ok { // one line for all of the store
			if all != " configuration" {
				continue
			}
			row.does, row.route = does, "/v1/store/..."
		}
		if word(row.open) == "no" || word(row.top) == "no" {
			t.Errorf("%s: docs/remote.md says that the highest class may", row.does)
		}
		if word(row.low) == "no" || word(row.bob) == "no" {
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", row.does, row.route, word(row.low), word(row.bob))
		}
	}
	page, err := os.ReadFile("../docs/remote.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.String()) {
		t.Errorf("docs/remote.md does not have this table:\n%s", b.String())
	}
}

// A refusal says what to do instead.
func TestRefusalsHaveAHint(t *testing.T) {
	r := begin(t, "generic", "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n"+fourTokens, nil)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("%q:1", fmt.Sprint("unit", i))
	}
	for _, c := range []struct{ token, method, path, body string }{
		{"top", "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":-1}}`},
		{"top", "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{` + strings.Join(many, ",") + `}}`},
		{"top", "POST", "/v1/tickets", `{"resource":"api","agent":"` + strings.Repeat("a", 2<<20) + `"}`},
		{"low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","class":"p0"}`},
		{"low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","emergency":true}`},
		{"bob", "POST", "/v1/tickets", `{"resource":"api","agent":"eve"}`},
		{"low", "POST", "/v1/resources/api/pause", `{}`},
		{"low", "POST", "/-/reload", ``},
		{"top", "GET", "/-/reload", ``},
		{"top", "POST", "/v1/resources/api/observe", `{"status":7}`},
		{"top", "POST", "/v1/dead-letters", `{"resource":"none","agent":"a"}`},
	} {
		code, body := r.as(c.token, c.method, c.path, c.body)
		if code < 400 || !strings.Contains(body, `"hint":"`) {
			t.Errorf("%s %s %.80s: %d %s", c.method, c.path, c.body, code, body)
		}
	}
}
