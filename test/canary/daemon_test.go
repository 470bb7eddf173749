//go:build linux

package canary_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// fleet is a configuration with a resource for each answer of a provider, and secrets where people write them.
func fleet(store, upstream, gone string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "store: %q\n", store)
	fmt.Fprintf(&b, "alerts: {webhook: \"%s/unauthorized/%s\"}\n", upstream, planted("Webhook"))
	fmt.Fprintf(&b, "tokens: [{name: all, hash: %s}, {name: low, class: p2, agent: bob, hash: %s}]\n", hashed(planted("Token")), hashed(planted("LowToken")))
	b.WriteString("retry: {attempts: 2, deadline: 2s, base: 1ms, cap: 2ms}\nretry_windows: {}\nbudgets: [{name: tiny, size: 0.000001 usd/day, over: alert}]\ndead_letters: {key_env: LETTERS_KEY}\nresources:\n")
	names := slices.Sorted(maps.Keys(answers))
	for _, name := range names {
		speaks := "anthropic"
		if name == "redirects" {
			speaks = "generic" // no limit has to be learned first: none is refused
		}
		fmt.Fprintf(&b, "  %s: {provider: %s, upstream: \"%s/%s\", client_deadline: 1s, dead_letters: on, backoff: {start: 1s, cap: 2s}, split: key, limits: [{name: own, size: 1000/h}]}\n", name, speaks, upstream, name)
	}
	fmt.Fprintf(&b, "  gone: {upstream: \"http://%s\", client_deadline: 1s, dead_letters: on, limits: [{name: own, size: 1000/h}]}\n", gone)
	fmt.Fprintf(&b, "  plain: {upstream: \"%s\", client_deadline: 1s, limits: [{name: own, size: 1000/h}]}\n", strings.Replace(upstream, "http:", "https:", 1)) // it speaks no TLS
	fmt.Fprintf(&b, "  injected: {upstream: \"%s/fine\", inject: {header: x-api-key, env: INJECTED}, limits: [{name: own, size: 1000/h}]}\n", upstream)
	fmt.Fprintf(&b, "  ring: {upstream: \"%s/unauthorized\", client_deadline: 1s, keys: [{env: RING_A}, {env: RING_B}], inject: {header: x-api-key}, limits: [{name: own, size: 1000/h}]}\n", upstream)
	return b.String()
}

// collector takes exported telemetry.
func (r *rig) collector() *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		r.say("telemetry to "+q.URL.Path, text) // find unpacks it
	}))
	r.Cleanup(s.Close)
	return s
}

// The daemon writes no secret anywhere: not those of clients, providers, stores, collectors, and its own configuration.
func TestDaemon(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		aDaemon(t, "file:"+filepath.Join(t.TempDir(), "state"), syscall.SIGTERM)
	})
	if !thorough {
		return
	}
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		password := planted("RedisPassword")
		server := redisrun.New(t, "requirepass "+password)
		// A goroutine dump on SIGABRT stands for a crash.
		aDaemon(t, "redis://:"+password+"@"+server.Addr()+"?timeout=20s", syscall.SIGABRT)
		do := func(args ...string) string {
			t.Helper()
			text, err := server.Do(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		do("CONFIG", "SET", "rdbcompression", "no") // else a dump might hide it
		keys := strings.Split(do("KEYS", "*"), "\n")
		for _, key := range keys {
			if in := find([]byte(key + do("DUMP", key))); len(in) > 0 {
				t.Errorf("the key %s of Redis holds %q", key, in)
			}
		}
		if len(keys) < 20 {
			t.Errorf("only %d keys are in Redis", len(keys))
		}
	})
}

func aDaemon(t *testing.T, store string, sig syscall.Signal) {
	up, gone := provider(t), closedPort(t)
	r := newRig(t, "")
	if path, ok := strings.CutPrefix(store, "file:"); ok {
		store = "file:" + filepath.Join(r.dir, filepath.Base(path))
	}
	if err := os.WriteFile(r.config, []byte(fleet(store, up.URL, gone)), 0o600); err != nil {
		t.Fatal(err)
	}
	otlp := r.collector()
	r.env = append(r.env, "LETTERS_KEY="+hashed("letters"), "INJECTED="+planted("Injected"), "RING_A="+planted("RingA"), "RING_B="+planted("RingB"), "SLUICE_TOKEN="+planted("EnvToken"),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+strings.Replace(otlp.URL, "http://", "http://me:"+planted("CollectorPassword")+"@", 1), "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization="+planted("CollectorHeader"), "GOTRACEBACK=all")
	d := r.serve("--forward-listen", "127.0.0.1:0", "--envoy-listen=127.0.0.1:0", "--keda-listen=127.0.0.1:0")
	r.traffic(d)
	r.exchanges(d)
	r.mistakes(d)
	r.forward(d, up, gone)
	r.envoy(d)
	r.look(d)
	r.command(0, "", "status", "--json")
	r.command(0, "", "doctor", "--json")
	r.command(0, "", "report", "--html", "-")
	if thorough && sig == syscall.SIGTERM {
		r.commands(d, gone)
	}
	if sig == syscall.SIGABRT { // while a request is in flight
		busy, cancel := context.WithCancel(t.Context())
		defer cancel()
		for len(up.muted) > 0 {
			<-up.muted
		}
		go r.ask(busy, d, "POST", "/@last/mute/v1/messages?key="+planted("Last"), call, http.Header{"X-Api-Key": {planted("LastKey")}})
		select {
		case <-up.muted:
		case <-time.After(proctest.Patience):
			t.Error("the last request does not arrive")
		}
	}
	r.end(d, sig)
	if sig == syscall.SIGABRT && !strings.Contains(d.log.String(), "goroutine ") {
		t.Errorf("there is no dump in the log:\n%s", d.log)
	}
	if sig == syscall.SIGTERM && (len(r.said["telemetry to /v1/traces"]) == 0 || len(r.said["telemetry to /v1/metrics"]) == 0) {
		t.Error("nothing was exported")
	}
	r.private()
	r.search(10)
}

// private checks that others may not read what is written.
func (r *rig) private() {
	r.Helper()
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == r.dir {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			r.Errorf("%s has the mode %v", path[len(r.dir):], info.Mode())
		}
		return nil
	})
	if err != nil {
		r.Error(err)
	}
}

// call is a body with a secret.
var call = `{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[{"role":"user","content":"` + planted("Body") + `"}]}`

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// headers are the ways in which clients send keys.
var headers = []http.Header{
	{"X-Api-Key": {planted("ApiKey")}},
	{"Authorization": {"Bearer " + planted("Bearer")}, "Referer": {"https://a.example/?key=" + planted("Referer")}},
	{"Authorization": {basic("me", planted("Basic"))}, "Cookie": {"session=" + planted("Cookie")}, "Baggage": {"api_key=" + planted("Baggage")}},
	{"X-Api-Key": {"x"}, "Proxy-Authorization": {basic("me", planted("ProxyBasic"))}, "X-Goog-Api-Key": {planted("Goog")}, "X-Forwarded-For": {planted("ForwardedFor")}},
}

// ask sends a request to a daemon with its token. It returns 0 if there is no answer.
func (r *rig) ask(ctx context.Context, d *daemon, method, path, body string, h http.Header) (status int, text []byte) {
	q, err := http.NewRequestWithContext(ctx, method, d.Listen[0]+path, strings.NewReader(body))
	if err != nil {
		r.Error(err)
		return 0, nil
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "X-Sluice-Token": {planted("Token")}}
	maps.Copy(q.Header, h)
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(q)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ = io.ReadAll(resp.Body)
	var head strings.Builder
	_ = resp.Header.Write(&head)
	return resp.StatusCode, append([]byte(head.String()), text...)
}

// traffic sends each kind of key to each kind of provider.
func (r *rig) traffic(d *daemon) {
	r.Helper()
	if status, text := r.ask(r.Context(), d, "POST", "/@first/fine/v1/messages", call, headers[0]); status != 200 {
		r.Errorf("the first request is answered with %d: %s", status, text)
	}
	var all sync.WaitGroup
	names := append(slices.Sorted(maps.Keys(answers)), "gone", "plain", "injected", "ring")
	for _, name := range names {
		for i, h := range headers {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(r.Context(), proctest.Patience)
				if name == "mute" {
					ctx, cancel = context.WithTimeout(r.Context(), time.Second)
				}
				defer cancel()
				path := fmt.Sprintf("/@agent-%d/%s/v1/messages?key=%s&access_token=%s&page=1", i, name, planted("Query"), planted("QueryToken"))
				status, text := r.ask(ctx, d, "POST", path, call, h)
				if slices.Contains(own, name) {
					r.say("the gate for "+name, text)
					if status < 500 && status != 429 {
						r.Errorf("%s is answered with %d: %s", name, status, text)
					}
				}
				if name == "redirects" && (status != 302 || !strings.Contains(string(text), planted("LocationQuery"))) {
					r.Errorf("the redirect is not passed on: %d %s", status, text)
				}
			})
		}
	}
	all.Wait()
}

// exchanges sends requests by itself, as a client that tells the daemon everything: all its keys, and all of each response.
func (r *rig) exchanges(d *daemon) {
	r.Helper()
	tell := func(method, path, body string, want ...int) string {
		status, text := r.ask(r.Context(), d, method, path, body, nil)
		if !slices.Contains(want, status) {
			r.Errorf("%s is answered with %d: %s", path, status, text)
		}
		r.say("the answer to an exchange", text)
		return string(text)
	}
	secrets := `{"x-api-key":"` + planted("ToldKey") + `","authorization":"Bearer ` + planted("ToldBearer") + `","cookie":"s=` + planted("ToldCookie") + `","referer":"https://a.example/?key=` + planted("ToldReferer") +
		`","baggage":"api_key=` + planted("ToldBaggage") + `","www-authenticate":"` + planted("ToldRealm") + `","location":"https://me:` + planted("ToldLocation") + `@a.example/","retry-after":"` + planted("ToldHint") + `","content-type":"application/json"}`
	text, err := json.Marshal(call)
	if err != nil {
		r.Fatal(err)
	}
	for i, report := range []string{
		`{"error":"` + planted("ToldError") + `","ended":"broken"}`, `{"error":"` + planted("ToldError") + `","ended":"left"}`,
		`{"status":401,"headers":` + secrets + `,"body":"` + planted("ToldBody") + `","ended":"complete"}`, `{"status":429,"headers":` + secrets + `,"body":"` + planted("ToldBody") + `","ended":"complete"}`,
		`{"status":500,"headers":` + secrets + `,"body":"` + planted("ToldBody") + `","ended":"broken"}`, `{"status":200,"headers":` + secrets + `,"body":"` + planted("ToldBody") + `"}`,
	} {
		id := fmt.Sprintf("told-%016d", i)
		tell("POST", "/v1/exchanges", `{"exchange":"`+id+`","resource":"fine","agent":"told","wait_ms":5000,"once":`+strconv.FormatBool(i%2 == 0)+`,"method":"POST","url":"https://me:`+planted("ToldPassword")+`@127.0.0.1/fine/v1/messages?key=`+
			planted("ToldQuery")+`&access_token=`+planted("ToldToken")+`#`+planted("ToldFragment")+`","headers":`+secrets+`,"body":`+string(text)+`}`, 200, 429)
		for sends := 0; sends < 3 && strings.Contains(tell("POST", "/v1/exchanges/"+id+"/answer", report, 200, 404), `"send_again":true`); sends++ {
		}
		tell("POST", "/v1/exchanges/"+id+"/body", `{"body":"`+planted("ToldPiece")+`","ended":"broken"}`, 204, 404)
	}
	for _, wrong := range []string{
		`{"exchange":"` + planted("ToldID") + `x","resource":"fine","url":"https://127.0.0.1/","key":"` + planted("ToldLabel") + `"}`, `{"resource":"fine","url":"` + planted("ToldURL") + `"}`,
		`{"resource":"fine","url":"https://127.0.0.1/","body":{"base64":"*` + planted("ToldBase64") + `"}}`, `{"resource":"fine","url":"https://127.0.0.1/","method":"` + planted("ToldMethod") + ` "}`,
	} {
		tell("POST", "/v1/exchanges", wrong, 400)
	}
}

// notJSON is a message that nobody understands.
var notJSON = planted("NotJSON")

// mistakes sends what the gate refuses.
func (r *rig) mistakes(d *daemon) {
	r.Helper()
	none := http.Header{"X-Sluice-Token": nil}
	for _, m := range []struct {
		path, body string
		h          http.Header
		want       int
	}{
		{"/@a/fine/v1/messages", call, http.Header{"X-Sluice-Token": {planted("WrongToken")}}, 401},
		{"/@a/fine/v1/messages?key=" + planted("Query"), call, http.Header{"X-Sluice-Token": nil, "Authorization": {"Bearer " + planted("WrongBearer")}}, 401},
		{"/@a:p0/fine/v1/messages", call, http.Header{"X-Sluice-Token": {planted("LowToken")}}, 403},
		{"/nowhere/v1/messages?key=" + planted("Query"), call, nil, 404},
		{"/v1/nothing?key=" + planted("Query"), call, nil, 404},
		{"/v1/me?token=" + planted("QueryToken"), "", none, 401},
		{"/v1/tickets", `{"resource":"fine","agent":"a","key":"` + planted("KeyAsLabel") + `"}`, nil, 400},
		{"/v1/tickets", `{"resource":"fine","agent":"a","key":` + planted("Broken"), nil, 400},
		{"/v1/tickets", `{"resource":"fine","agent":"a","units":"` + planted("WrongKind") + `"}`, nil, 400},
		{"/v1/resources/fine/observe", `{"status":401,"headers":{"x-api-key":"` + planted("Observed") + `"},"body":"` + planted("ObservedBody") + `"}`, nil, 200},
		{"/v1/dead-letters", `{"resource":"fine","agent":"a","reason":"gave up","attempts":1,"method":"POST","path":"/x?key=` + planted("LetterQuery") + `","headers":{"authorization":["Bearer ` + planted("LetterHeader") + `"]},"body":"e30="}`, nil, 0},
		{"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remaining_quota","arguments":{"token":"` + planted("Argument") + `"}}}`, http.Header{"Accept": {"application/json, text/event-stream"}}, 0},
		{"/mcp", notJSON, http.Header{"Accept": {"application/json, text/event-stream"}}, 400},
		{"/-/reload", "", nil, 200},
	} {
		status, text := r.ask(r.Context(), d, "POST", m.path, m.body, m.h)
		name := forms.ReplaceAllString(m.path, "SECRET")
		if m.want != 0 && status != m.want {
			r.Errorf("%s is answered with %d, want %d: %s", name, status, m.want, text)
		}
		if m.body != notJSON { // MCP repeats it to its sender
			r.say("the answer to "+name, text)
		}
	}
	for _, text := range []string{
		"GET /?key=" + planted("BadVersion") + " HTTP/9.9\r\n\r\n", "POST /@a/fine/ HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: " + planted("BadLength") + "\r\nContent-Length: z\r\n\r\n",
		"GET /v1/status HTTP/1.1\r\nHost: elsewhere.example\r\nAuthorization: Bearer " + planted("OtherHost") + "\r\n\r\n", "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: https://x.example\r\nCookie: " + planted("Origin") + "\r\n\r\n",
		"\x16\x03\x01" + planted("NoTLS") + "\r\n\r\n",
	} {
		for _, at := range append([]string{d.Forward}, d.Listen...) {
			r.say("the answer to raw bytes", exchange(r.T, at, text))
		}
	}
}

// exchange sends bytes and returns the beginning of the answer.
func exchange(t *testing.T, at, text string) []byte {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(proctest.Patience))
	_, _ = io.WriteString(c, text)
	_ = c.(*net.TCPConn).CloseWrite()
	got, _ := io.ReadAll(io.LimitReader(c, 1<<16))
	return got
}

// forward uses the forward proxy, with right and wrong credentials.
func (r *rig) forward(d *daemon, up *upstream, gone string) {
	r.Helper()
	at := strings.TrimPrefix(up.URL, "http://")
	for _, credentials := range []string{basic("a", planted("Token")), basic("a", planted("WrongProxyToken")), basic(planted("TokenAsUser"), ""), "Bearer " + planted("WrongProxyBearer")} {
		for _, to := range []string{at, gone, "nowhere.invalid:443"} {
			head := "Proxy-Authorization: " + credentials + "\r\nX-Api-Key: " + planted("Tunnelled") + "\r\n"
			connect := exchange(r.T, d.Forward, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n"+head+"\r\n")
			whole := exchange(r.T, d.Forward, "GET http://me:"+planted("UserInfo")+"@"+to+"/elsewhere?key="+planted("Query")+" HTTP/1.1\r\nHost: "+to+"\r\nConnection: close\r\n"+head+"\r\n")
			if resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(whole))), nil); err == nil && resp.Header.Get("X-Anything") != "" {
				whole = nil // the provider's answer
			}
			r.say("the forward proxy", append(connect, whole...))
		}
	}
	if !strings.Contains(string(r.said["the forward proxy"]), " 407 ") || !strings.Contains(string(r.said["the forward proxy"]), " 200 ") {
		r.Errorf("the forward proxy answers %q", r.said["the forward proxy"])
	}
}

// look reads everything that the daemon shows.
func (r *rig) look(d *daemon) {
	r.Helper()
	for _, path := range []string{
		"/", "/v1/status", "/v1/why", "/v1/config", "/v1/report", "/v1/recent", "/v1/history?since=1h", "/v1/pool/fine", "/v1/me", "/metrics", "/healthz", "/readyz", "/readyz?strict",
		"/debug/pprof/goroutine?debug=2", "/debug/vars",
	} {
		status, text := r.ask(r.Context(), d, "GET", path, "", nil)
		if want := map[bool]int{true: 404, false: 200}[strings.HasPrefix(path, "/debug")]; status != want && path != "/readyz?strict" {
			r.Errorf("%s is answered with %d: %s", path, status, text)
		}
		r.say(path, text)
	}
}

// commands runs what people run, next to the daemon.
func (r *rig) commands(d *daemon, gone string) {
	r.Helper()
	at := strings.TrimPrefix(d.Listen[0], "http://")
	for _, line := range []string{
		"0 status", "0 status --json", "0 why", "0 doctor", "0 doctor --json", "0 report", "0 report --json", "0 report --html -", "0 agents --json", "0 pool fine", "0 top --once", "0 dlq list", "0 config show",
		"0 config show --json", "0 config check", "0 ca show", "0 key INJECTED", "69 ping gone", "69 ping gone --json", "0 repair fine", "64 release nothing --body " + planted("ReleaseBody"),
		"0 observe fine --status 401 --header x-api-key:" + planted("ObserveHeader") + " --body " + planted("ObserveBody"), "0 acquire fine --json --key-env INJECTED", "69 status --store redis://me:" + planted("GonePassword") + "@" + gone,
		"69 status --store http://:" + planted("GoneToken") + "@" + gone, "69 status --store http://:" + planted("WrongStoreToken") + "@" + at, "0 status --store http://:" + planted("Token") + "@" + at,
		"64 status --store redis://:" + planted("BadAddress") + "@%zz", "64 status --store nothing://:" + planted("BadScheme") + "@x", "64 status --store http://" + planted("TokenAsName") + "@" + at,
		"64 status --store redis://" + gone + "?password=" + planted("Parameter"),
	} {
		args := strings.Fields(line)
		exit, err := strconv.Atoi(args[0])
		if err != nil {
			r.Fatal(err)
		}
		r.command(exit, "", args[1:]...)
	}
	var letters struct {
		All []struct{ ID string } `json:"dead_letters"`
	}
	if err := json.Unmarshal([]byte(r.command(0, "", "dlq", "list", "--json")), &letters); err != nil || len(letters.All) < 4 {
		r.Errorf("%d dead letters: %v", len(letters.All), err)
		return
	}
	for _, l := range letters.All[:4] {
		r.command(0, "", "dlq", "show", l.ID)
	}
	r.command(0, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remaining_quota","arguments":{}}}`+"\n", "mcp")
	r.command(0, planted("NotMCP")+"\n", "mcp")
}
