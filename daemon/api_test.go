package daemon_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const plain = `
resources:
  api: {limits: [{name: hour, size: 2/h}], light: "off", breaker: "off"}
  places: {limits: [{name: inflight, concurrency: 1}]}
agents: {known: {class: p1}}
routes: {simple: [api/small, places/large]}
shares: "off"
`

// call sends a request to the API, and reads the answer into a map.
func (r *rig) call(method, path, body string, header ...string) (int, map[string]any) {
	r.Helper()
	q := httptest.NewRequestWithContext(r.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.daemon.ServeHTTP(w, q)
	out := map[string]any{}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			r.Fatalf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	if want := "application/json"; w.Code >= 400 && w.Header().Get("Content-Type") != "application/problem+json" || w.Code == 200 && w.Header().Get("Content-Type") != want {
		r.Errorf("%s %s: %d is %s", method, path, w.Code, w.Header().Get("Content-Type"))
	}
	return w.Code, out
}

// want is call with a check of the status.
func (r *rig) want(status int, method, path, body string, header ...string) map[string]any {
	r.Helper()
	code, out := r.call(method, path, body, header...)
	if code != status {
		r.Errorf("%s %s %s: %d, not %d: %v", method, path, body, code, status, out)
	}
	return out
}

func TestTickets(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	one := r.want(200, "POST", "/v1/tickets", `{"resource":"places","agent":"a"}`)
	id, _ := one["ticket"].(string)
	if one["class"] != "p2" || one["agent"] != "a" || one["resource"] != "places" || len(one["limits"].([]any)) != 1 {
		t.Errorf("%v", one)
	}
	refused := r.want(429, "POST", "/v1/tickets", `{"resource":"places","agent":"b","wait_ms":0}`)
	if refused["limit"] != "inflight" || refused["why"] == nil {
		t.Errorf("%v", refused)
	}
	if out := r.want(200, "POST", "/v1/tickets/"+id+"/answer", `{"status":200,"headers":{"X-RateLimit-Remaining":"5"}}`); out["verdict"] != "ok" {
		t.Errorf("%v", out)
	}
	r.want(204, "POST", "/v1/tickets/"+id+"/close", `{"usage":{"requests":1}}`)
	r.want(204, "POST", "/v1/tickets/"+id+"/close", ``)
	two := r.want(200, "POST", "/v1/tickets", `{"resource":"places","agent":"b","wait_ms":1000}`)
	renewed := r.want(200, "POST", "/v1/tickets/"+two["ticket"].(string)+"/renew", `{}`)
	r.want(204, "DELETE", "/v1/tickets/"+renewed["ticket"].(string), ``)
	for range 2 {
		ticket, _ := r.want(200, "POST", "/v1/tickets", `{"resource":"api","agent":"a"}`)["ticket"].(string)
		r.want(204, "POST", "/v1/tickets/"+ticket+"/close", ``)
	}
	late := r.want(429, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":50}`)
	if ms, _ := late["retry_after_ms"].(float64); ms <= 0 || late["retry_at"] == nil {
		t.Errorf("%v", late)
	}
}

func TestWhatMakesNoSense(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	for _, c := range []struct {
		status             int
		method, path, body string
		says               string
	}{
		{404, "POST", "/v1/tickets", `{"resource":"nowhere","agent":"a"}`, "nowhere"},
		{400, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wiat_ms":1}`, "wiat_ms"},
		{400, "POST", "/v1/tickets", `{"resource":`, "body"},
		{400, "POST", "/v1/tickets", `{"resource":"api","agent":"a"}{}`, "more than one"},
		{400, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":-1}`, "wait_ms"},
		{400, "POST", "/v1/tickets", `{"resource":"api","agent":"a","class":"p9"}`, "p9"},
		{400, "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":-1}}`, "negative"},
		{403, "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":99}}`, "hour"},
		{413, "POST", "/v1/tickets", `{"resource":"` + strings.Repeat("x", 1<<20) + `"}`, "bytes"},
		{404, "POST", "/v1/tickets/nonsense/close", ``, "no ticket"},
		{404, "POST", "/v1/tickets/api.ffffff-1/close", ``, ""},
		{400, "POST", "/v1/tickets/api.1-1/answer", `{"status":9999}`, "9999"},
		{404, "POST", "/v1/resources/nowhere/pause", `{}`, "nowhere"},
		{400, "POST", "/v1/resources/api/pause", `{"for_ms":-5}`, "for_ms"},
		{404, "POST", "/v1/route", `{"task":"cooking"}`, "cooking"},
		{404, "GET", "/v1/pool/nowhere", ``, "nowhere"},
		{400, "GET", "/v1/report?since=yesterday", ``, "since"},
		{404, "GET", "/v1/nothing", ``, "/v1/nothing"},
		{405, "PATCH", "/v1/tickets", ``, "PATCH"},
	} {
		out := r.want(c.status, c.method, c.path, c.body)
		if detail, _ := out["detail"].(string); !strings.Contains(detail, c.says) || out["status"] != float64(c.status) {
			t.Errorf("%s %s: %v", c.method, c.path, out)
		}
	}
	r.want(415, "POST", "/v1/tickets", `{}`, "Content-Type", "text/plain")
}

// curl -d and Python's urllib say that a body is a form unless they are told otherwise.
func TestBodyOfCurl(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	r.want(200, "POST", "/v1/tickets", `{"resource":"api","agent":"a"}`, "Content-Type", "application/x-www-form-urlencoded")
	r.want(400, "POST", "/v1/tickets", `%7B%22resource%22%3A%22api%22%7D=`, "Content-Type", "application/x-www-form-urlencoded")
}

// An agent without a machine was shown on a machine called "-".
func TestAgentWithoutMachine(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	r.want(200, "PUT", "/v1/agents/known", `{}`)
	agents := r.want(200, "GET", "/v1/status", ``)["agents"].([]any)
	if a := agents[0].(map[string]any); a["machine"] != "" {
		t.Errorf("%v", a)
	}
}

// Problems name what is wrong, and their hints are lists that people can read.
func TestProblemsInWords(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	for _, c := range []struct{ body, detail, hint string }{
		{`{"agent":"a"}`, "resource is missing", ""},
		{`[]`, "the body: it has to be an object, not a list", ""},
		{`{"resource":5}`, "resource: it has to be a string, not a number", ""},
		{`{"resource":"api","agent":"a","emergency":"yes"}`, "emergency: it has to be true or false, not a string", ""},
		{`{"resource":"api","agent":"a","wait_ms":1e18}`, "wait_ms: 1e18 is not a whole number that is small enough", ""},
		{`{"resource":"api","agent":"a","class":"p9"}`, `unknown class "p9"`, "classes are p0, p1, p2"},
	} {
		out := r.want(400, "POST", "/v1/tickets", c.body)
		if hint, _ := out["hint"].(string); out["detail"] != c.detail || !strings.Contains(hint, c.hint) {
			t.Errorf("%s: %v", c.body, out)
		}
	}
	out := r.want(404, "POST", "/v1/tickets", `{"resource":"nowhere","agent":"a"}`)
	if hint, _ := out["hint"].(string); !strings.HasPrefix(hint, "configured are ") || strings.ContainsAny(hint, `["]`) {
		t.Errorf("%v", out)
	}
	out = r.want(404, "POST", "/v1/tickets", `{"resource":"plaecs","agent":"a"}`)
	if hint, _ := out["hint"].(string); !strings.HasPrefix(hint, "did you mean places? configured are ") {
		t.Errorf("%v", out)
	}
}

// The body null paused the fleet, and a list that is null was accepted.
func TestNullIsNoBodyAndNoList(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	for _, c := range []struct{ method, to, body, detail string }{
		{"POST", "/v1/resources/api/pause", "null", "the body: it has to be an object, not null"},
		{"POST", "/v1/resources/api/observe", " null ", "the body: it has to be an object, not null"},
		{"POST", "/v1/tickets", "null", "the body: it has to be an object, not null"},
		{"PUT", "/v1/agents/known", "null", "the body: it has to be an object, not null"},
		{"PUT", "/v1/agents/known", `{"resources":null}`, "resources: it has to be a list, not null"},
		{"PUT", "/v1/agents/known", `{"waits_for":null}`, "waits_for: it has to be a list, not null"},
		{"PUT", "/v1/agents/known", `{"waits_for":5}`, "waits_for: it has to be a list, not a number"},
		{"PUT", "/v1/agents/known", `{"waits_for":[5]}`, "waits_for: it has to be a string, not a number"},
	} {
		if out := r.want(400, c.method, c.to, c.body); out["detail"] != c.detail {
			t.Errorf("%s %s: %v", c.to, c.body, out)
		}
	}
	st := r.want(200, "GET", "/v1/status", ``)
	if len(st["agents"].([]any)) != 0 || st["resources"].([]any)[0].(map[string]any)["paused_until"] != nil {
		t.Errorf("%v", st)
	}
	r.want(200, "PUT", "/v1/agents/known", `{"class":null,"resources":["api"],"waits_for":[]}`) // like a field that is left out
	r.want(204, "POST", "/v1/resources/api/pause", ``)
}

func TestFleet(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	out := r.want(200, "PUT", "/v1/agents/known", `{"user":"me","machine":"box","waits_for":["other"]}`)
	if out["start_new_work"] != true || out["light"] != "green" || len(out["chain"].([]any)) != 0 {
		t.Errorf("%v", out)
	}
	agents := r.want(200, "GET", "/v1/status", ``)["agents"].([]any)
	if a := agents[0].(map[string]any); len(agents) != 1 || a["name"] != "known" || a["class"] != "p1" || a["machine"] != "box" || a["lease_expires_at"] == nil {
		t.Errorf("%v", agents)
	}
	if p := r.want(200, "GET", "/v1/pool/api", ``); p["totalLimit"] != float64(2) || p["allocations"].(map[string]any)["known"] == nil {
		t.Errorf("%v", p)
	}
	r.want(204, "DELETE", "/v1/agents/known", ``)
	if agents := r.want(200, "GET", "/v1/status", ``)["agents"].([]any); len(agents) != 0 {
		t.Errorf("%v", agents)
	}
	if out := r.want(200, "POST", "/v1/resources/api/observe", `{"status":429,"headers":{"Retry-After":"30"}}`); out["verdict"] != "throttled" {
		t.Errorf("%v", out)
	}
	r.want(204, "POST", "/v1/resources/api/resume", ``)
	if out := r.want(200, "POST", "/v1/route", `{"task":"simple"}`); out["model"] == "" || out["usd_per_mtok"] == nil {
		t.Errorf("%v", out)
	}
	if out := r.want(200, "GET", "/v1/why", ``); len(out["waiting"].([]any)) != 0 {
		t.Errorf("%v", out)
	}
	if out := r.want(200, "GET", "/v1/report?since=7d", ``); out["resources"] == nil {
		t.Errorf("%v", out)
	}
}

// An agent without any use learns about the configured resource, not about the first preset.
func TestHeartbeatIsAboutTheConfiguredResource(t *testing.T) {
	r := begin(t, "generic", "presets: on\nresources: {zapi: {provider: generic, limits: [{name: hour, size: 1000/h, kind: fixed}]}}\n", nil)
	r.want(200, "POST", "/v1/resources/zapi/observe", `{"status":200,"headers":{"X-RateLimit-Limit":"1000","X-RateLimit-Remaining":"10","X-RateLimit-Reset":"3000"}}`)
	if out := r.want(200, "PUT", "/v1/agents/solo", `{"class":"p1"}`); out["light"] != "red" || out["allocated"] != float64(1000) {
		t.Errorf("%v", out)
	}
}

// A share that is not known is null; 0 is a share of less than one request.
func TestHeartbeatTellsUnknownSharesFromSmallOnes(t *testing.T) {
	r := begin(t, "generic", "presets: off\nresources: {api: {provider: anthropic}}\n", nil)
	if out := r.want(200, "PUT", "/v1/agents/a", `{}`); out["allocated"] != nil {
		t.Errorf("%v", out)
	}
	r = begin(t, "generic", "presets: off\nresources: {api: {limits: [{name: minute, size: 1/min}]}}\n", nil)
	r.want(200, "PUT", "/v1/agents/a", `{}`)
	if out := r.want(200, "PUT", "/v1/agents/b", `{}`); out["allocated"] != 0.0 {
		t.Errorf("%v", out)
	}
}

// A caller that states no agent is the token's, else an unnamed one.
func TestTicketWithoutAnAgent(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	if out := r.want(200, "POST", "/v1/tickets", `{"resource":"api"}`); out["agent"] != "unnamed" || out["class"] != "p2" {
		t.Errorf("%v", out)
	}
	sum := sha256.Sum256([]byte("bobs"))
	r = begin(t, "generic", plain+"tokens: [{name: low, hash: "+hex.EncodeToString(sum[:])+", agent: bob, class: p2}]\n", nil)
	if out := r.want(200, "POST", "/v1/tickets", `{"resource":"api"}`, "Authorization", "Bearer bobs"); out["agent"] != "bob" {
		t.Errorf("%v", out)
	}
}

// Callers state dollars, with decimals.
func TestStatedDollars(t *testing.T) {
	r := begin(t, "generic", "resources: {api: {limits: [{name: minute, size: 100/min}]}}\nbudgets: [{name: all, size: 80 usd/day}]\n", nil)
	ticket := r.want(200, "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":1,"usd":0.5,"input_tokens":null}}`)["ticket"].(string)
	for _, c := range [][2]string{
		{`{"usage":{"usd":31200}}`, "usage.usd: 31200 is not an amount from 0 to 1000 dollars"},
		{`{"usage":{"usd":"1"}}`, `usage.usd: "\"1\"" is not an amount of dollars such as 0.02`},
		{`{"usage":{"requests":0.5}}`, "usage.requests: 0.5 is not a whole number that is small enough"},
		{`{"usage":{"requests":-1}}`, "usage.requests: it is negative"},
	} {
		if out := r.want(400, "POST", "/v1/tickets/"+ticket+"/close", c[0]); out["detail"] != c[1] {
			t.Errorf("%s: %v", c[0], out)
		}
	}
	r.want(204, "POST", "/v1/tickets/"+ticket+"/close", `{"usage":{"usd":0.02}}`)
	unknown := r.want(200, "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"requests":null,"usd":0.5}}`)
	if left := unknown["limits"].([]any)[0].(map[string]any)["remaining"]; left != 98.0 { // null is not stated
		t.Errorf("%v are left", left)
	}
	r.want(204, "POST", "/v1/tickets/"+unknown["ticket"].(string)+"/close", `{"usage":{"requests":1,"usd":null}}`)
	if b := r.want(200, "GET", "/v1/status", ``)["budgets"].([]any)[0].(map[string]any); b["used_usd"] != 0.52 {
		t.Errorf("%v", b)
	}
	free := r.want(200, "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"usd":0.5}}`)["ticket"].(string)
	r.want(204, "POST", "/v1/tickets/"+free+"/close", `{"usage":{"usd":0}}`)
	if b := r.want(200, "GET", "/v1/status", ``)["budgets"].([]any)[0].(map[string]any); b["used_usd"] != 0.52 {
		t.Errorf("%v", b)
	}
	// Fields of a reported response have the names of the body.
	if out := r.want(400, "POST", "/v1/resources/api/observe", `{"body":5}`); out["detail"] != "body: it has to be a string, not a number" {
		t.Errorf("%v", out)
	}
}

// A token identifies its bearer and bounds its class. Requests without a token, and pages of other sites, are refused.
func TestWhoMayCall(t *testing.T) {
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	r := begin(t, "generic", plain+"tokens: [{name: any, hash: "+hash("any")+"}, {name: low, hash: "+hash("low")+", agent: bob, class: p2}, {name: class, hash: "+hash("class")+", class: p2}]\n", nil)
	ask := func(agent, class string) string {
		return `{"resource":"places","agent":"` + agent + `","class":"` + class + `","wait_ms":0}`
	}
	r.want(401, "GET", "/v1/status", ``)
	r.want(401, "GET", "/v1/status", ``, "Authorization", "Bearer wrong")
	r.want(200, "GET", "/v1/status", ``, "Authorization", "Bearer any")
	r.want(403, "POST", "/v1/tickets", ask("bob", "p0"), "Authorization", "Bearer low")
	r.want(403, "POST", "/v1/tickets", ask("eve", "p2"), "Authorization", "Bearer low")
	r.want(403, "POST", "/v1/tickets", `{"resource":"places","agent":"bob","emergency":true}`, "Authorization", "Bearer low")
	r.want(403, "POST", "/v1/resources/api/pause", `{}`, "Authorization", "Bearer low")
	r.want(403, "POST", "/v1/resources/api/observe", `{"status":429}`, "Authorization", "Bearer low")
	theirs, _ := r.want(200, "POST", "/v1/tickets", ask("alice", "p0"), "Authorization", "Bearer any")["ticket"].(string)
	r.want(403, "DELETE", "/v1/tickets/"+theirs, ``, "Authorization", "Bearer low")
	r.want(403, "DELETE", "/v1/tickets/"+theirs, ``, "Authorization", "Bearer class")
	r.want(204, "DELETE", "/v1/tickets/"+theirs, ``, "Authorization", "Bearer any")
	r.want(403, "DELETE", "/v1/agents/known", ``, "Authorization", "Bearer class")
	r.want(403, "PUT", "/v1/agents/eve", `{}`, "Authorization", "Bearer low")
	r.want(403, "PUT", "/v1/agents/known", `{"class":"p2","machine":"evil"}`, "Authorization", "Bearer class") // it is configured as p1
	r.want(200, "PUT", "/v1/agents/boss", `{"class":"p0","machine":"m1"}`, "Authorization", "Bearer any")
	r.want(403, "PUT", "/v1/agents/boss", `{"class":"p2","machine":"evil"}`, "Authorization", "Bearer class")
	r.want(403, "DELETE", "/v1/agents/boss?machine=m1", ``, "Authorization", "Bearer class")
	if out := r.want(200, "PUT", "/v1/agents/boss", `{"class":"p0","machine":"m1"}`, "Authorization", "Bearer any"); out["taken_over_by"] != nil {
		t.Errorf("%v", out)
	}
	r.want(200, "PUT", "/v1/agents/small", `{"class":"p2"}`, "Authorization", "Bearer class")
	r.want(204, "DELETE", "/v1/agents/small", ``, "Authorization", "Bearer class")
	r.want(403, "POST", "/v1/tickets", `{"resource":"places","agent":"a","emergency":true,"wait_ms":0}`, "Authorization", "Bearer any")
	r.want(404, "DELETE", "/v1/tickets/places.ffff-1", ``, "Authorization", "Bearer any")
	if out := r.want(200, "POST", "/v1/tickets", `{"resource":"places"}`, "Authorization", "Bearer low"); out["agent"] != "bob" || out["class"] != "p2" {
		t.Errorf("%v", out)
	}
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"}} {
		r.want(403, "GET", "/v1/status", ``, append(header, "Authorization", "Bearer any")...)
	}
	r.want(200, "GET", "/v1/status", ``, "Origin", "http://localhost", "Sec-Fetch-Site", "same-origin", "Authorization", "Bearer any")
	q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://evil.example/v1/status", nil)
	q.Header.Set("Authorization", "Bearer any")
	w := httptest.NewRecorder()
	if r.daemon.ServeHTTP(w, q); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %d", w.Code)
	}
}

func TestEvents(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	server := httptest.NewServer(r.daemon)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatal(kind)
	}
	r.want(204, "POST", "/v1/resources/api/pause", `{"for_ms":60000,"reason":"hands off"}`)
	in := bufio.NewScanner(resp.Body)
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		if e["event"] == "pause" && e["resource"] == "api" {
			return
		}
	}
	t.Errorf("no pause was told: %v", in.Err())
}

// Each event has an id. A client that was disconnected sends its last one as browsers do, and gets what it missed.
func TestEventsGoOnAfterTheLastID(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	server := httptest.NewServer(r.daemon)
	defer server.Close()
	listen := func(after string) (next func(event string) (id string), end func()) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if after != "" {
			q.Header.Set("Last-Event-ID", after)
		}
		resp, err := server.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(resp.Body)
		return func(event string) (id string) {
				for in.Scan() {
					if at, ok := strings.CutPrefix(in.Text(), "id: "); ok {
						id = at
					}
					if in.Text() == "event: "+event {
						return id
					}
				}
				t.Fatalf("no %s was told: %v", event, in.Err())
				return ""
			}, func() {
				cancel()
				_ = resp.Body.Close()
			}
	}
	next, end := listen("")
	r.want(204, "POST", "/v1/resources/api/pause", `{"for_ms":60000}`)
	id := next("pause")
	end()
	if id == "" {
		t.Fatal("the event has no id")
	}
	r.want(204, "POST", "/v1/resources/api/resume", ``)
	next, end = listen(id)
	defer end()
	if again := next("resume"); again == "" || again == id {
		t.Errorf("after %q comes %q", id, again)
	}
}

// A method that a path does not take gets 405 with those that it takes. It got 404, as if the path were wrong.
func TestAWrongMethodIsToldTheRightOnes(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	for path, c := range map[string]struct{ method, allow string }{
		"/v1/tickets":                  {"GET", "POST"},
		"/v1/tickets/api.1f-2a":        {"POST", "DELETE"},
		"/v1/agents/a":                 {"PATCH", "PUT, DELETE"},
		"/v1/status":                   {"DELETE", "GET, HEAD"},
		"/v1/events":                   {"OPTIONS", "GET, HEAD"},
		"/v1/resources/api/pause":      {"PUT", "POST"},
		"/healthz":                     {"POST", "GET, HEAD"},
		"/readyz":                      {"DELETE", "GET, HEAD"},
		"/metrics":                     {"POST", "GET, HEAD"},
		"/-/reload":                    {"GET", "POST"},
		"/v1/nothing":                  {"GET", ""},
		"/v1/resources/api/pause/more": {"POST", ""},
	} {
		w := httptest.NewRecorder()
		r.daemon.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+path, nil))
		want := http.StatusMethodNotAllowed
		if c.allow == "" {
			want = http.StatusNotFound
		}
		if w.Code != want || w.Header().Get("Allow") != c.allow || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %v %s", c.method, path, w.Code, w.Header(), w.Body)
		}
	}
}

// A 403 that only its text explains is understood, and its text is not stored.
func TestABodyExplainsARefusal(t *testing.T) {
	r := begin(t, "generic", "resources: {github: {provider: github, limits: [{name: inflight, concurrency: 10}]}}\n", nil)
	ticket := func() string {
		return "/v1/tickets/" + r.want(200, "POST", "/v1/tickets", `{"resource":"github","agent":"a"}`)["ticket"].(string) + "/answer"
	}
	if out := r.want(200, "POST", ticket(), `{"status":403}`); out["held"] != false {
		t.Error("a 403 without a text holds: ", out)
	}
	const text = `{\"message\":\"You have exceeded a secondary rate limit\"}`
	if out := r.want(200, "POST", ticket(), `{"status":403,"body":"`+text+`"}`); out["verdict"] != "throttled" || out["held"] != true {
		t.Error("the text of a ticket's answer: ", out)
	}
	if out := r.want(200, "POST", "/v1/resources/github/observe", `{"status":403,"body":"`+text+`"}`); out["verdict"] != "throttled" {
		t.Error("the text of an observed answer: ", out)
	}
	// Only its beginning counts, and more than a request may have is refused.
	if out := r.want(200, "POST", "/v1/resources/github/observe", `{"status":403,"body":"`+strings.Repeat(" ", 64<<10)+text+`"}`); out["verdict"] == "throttled" {
		t.Error("what stands behind the first 64 KiB counts: ", out)
	}
	r.want(413, "POST", "/v1/resources/github/observe", `{"status":403,"body":"`+strings.Repeat(" ", 1<<20)+`"}`)
}
