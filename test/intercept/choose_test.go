//go:build linux

package intercept_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// program writes a script that is called like a client of the table. Its calls are those of curl.
func (r *rig) program(name, script string) (path string) {
	r.Helper()
	need(r.T, "curl")
	dir := filepath.Join(r.home, "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.Fatal(err)
	}
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		r.Fatal(err)
	}
	return path
}

// pastGate asks the gate how many connections to a resource went past it; -1 means null.
func (r *rig) pastGate(resource string) int64 {
	r.Helper()
	out, _ := r.sluice(0, "status", "--json")
	var s struct {
		Resources []struct {
			Name     string
			PastGate *int64 `json:"past_gate"`
		}
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		r.Fatal(err)
	}
	for _, x := range s.Resources {
		if x.Name == resource && x.PastGate != nil {
			return *x.PastGate
		}
	}
	return -1
}

// run runs a program under sluice run, and wants lines on standard error.
func (r *rig) run(exit int, args []string, says ...string) (stdout string) {
	r.Helper()
	stdout, stderr := r.sluice(exit, append([]string{"run"}, args...)...)
	for _, want := range says {
		unwanted := strings.HasPrefix(want, "!")
		if text := strings.TrimPrefix(want, "!"); strings.Contains(stderr, text) == unwanted {
			r.Errorf("run %q says\n%swhich should say %q", args, stderr, want)
		}
	}
	return stdout
}

const (
	wentPast = "went past the gate"
	noCall   = "no call passed the gate"
	answer   = "provider POST /v1/embeddings\n"
)

// curlCalls makes every curl send a call that is metered.
func (r *rig) curlCalls() {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.home, ".curlrc"), []byte("data = "+strconv.Quote(call)+"\n"), 0o600); err != nil {
		r.Fatal(err)
	}
}

// A program that reads a base URL passes the gate, and so does a client that has to be intercepted. What goes past the gate
// is counted, and said.
func TestRunChooses(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	r.curlCalls()
	direct := r.provider.URL + "/v1/embeddings"
	if n := r.pastGate("openai"); n != -1 {
		t.Errorf("before any run %d connections are said to have gone past", n)
	}

	if got := r.run(0, []string{"--", "sh", "-c", `curl -sS "$OPENAI_BASE_URL/embeddings"`}, "can pass the gate on 127.0.0.1:", "!"+wentPast, "!"+noCall); got != answer {
		t.Errorf("a base URL: %q", got)
	}
	if n, past := r.sent("openai"), r.pastGate("openai"); n != 1 || past != 0 {
		t.Errorf("a base URL: %d passed, %d went past", n, past)
	}

	codex := r.program("codex", `exec curl -sS https://api.openai.com/v1/embeddings`)
	if got := r.run(0, []string{"--", codex}, "sluice: codex ignores base URLs: its calls to 127.0.0.1 and api.openai.com are intercepted; --no-intercept leaves them\n", "!"+wentPast, "!"+noCall); got != answer {
		t.Errorf("codex: %q", got)
	}
	if n := r.sent("openai"); n != 2 {
		t.Errorf("codex: %d passed", n)
	}

	twice := "curl -sS " + direct + "; curl -sS " + direct
	if got := r.run(0, []string{"--", "sh", "-c", twice}, "sluice: 2 connections to 127.0.0.1 went past the gate: sluice run --intercept -- COMMAND gates them\n", "!"+noCall); got != answer+answer {
		t.Errorf("an unknown program: %q", got)
	}
	other := r.program("codex", "exec curl -sS "+direct)
	if got := r.run(0, []string{"--no-intercept", "--", other}, "1 connection to 127.0.0.1 went past the gate: without --no-intercept they are gated", "can pass the gate"); got != answer {
		t.Errorf("--no-intercept: %q", got)
	}
	r.run(0, []string{"--quiet", "--", "curl", "-sS", direct}, "!sluice")
	_, past := r.everyPast()
	if n := r.sent("openai"); n != 2 || past != 4 {
		t.Errorf("%d passed, %d went past", n, past)
	}
	r.run(0, []string{"--", "env", "-u", "HTTPS_PROXY", "-u", "https_proxy", "curl", "-sS", direct}, noCall, "!"+wentPast)
	r.run(0, []string{"--resource", "openai", "--", "true"}, "!"+noCall)
	r.run(3, []string{"--", "sh", "-c", "exit 3"}, noCall)
	_, stderr := r.sluice(75, "run", "--attempts", "3", "--config", r.retries(), "--", "sh", "-c", "curl -sS "+direct+"; exit 75")
	if strings.Count(stderr, wentPast) != 1 || !strings.Contains(stderr, "3 connections to") {
		t.Errorf("a command that is tried again says\n%s", stderr)
	}
	if out, _ := r.sluice(0, "status"); !strings.Contains(out, "past the gate: 7 connections to 127.0.0.1") {
		t.Errorf("status says\n%s", out)
	}
	if out, _ := r.sluice(0, "doctor"); !strings.Contains(out, "sluice run --intercept -- COMMAND") {
		t.Errorf("doctor says\n%s", out)
	}
}

// retries writes the configuration again, with short pauses between attempts.
func (r *rig) retries() string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.home, "sluice.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	return r.configure(string(text) + "retry: {base: 1ms, cap: 2ms}\n")
}

// everyPast sums the connections that went past the gate: the provider here stands for several resources at one address.
func (r *rig) everyPast() (counted bool, n int64) {
	for _, name := range []string{"openai", "anthropic", "github", "forge"} {
		if past := r.pastGate(name); past >= 0 {
			counted, n = true, n+past
		}
	}
	return counted, n
}

// Libraries of Python read base URLs or do not: their calls pass the gate either way.
func TestRunInterceptsPython(t *testing.T) {
	t.Parallel()
	need(t, "python3")
	r := begin(t, nil, "")
	r.curlCalls()
	file := filepath.Join(r.home, "program.py")
	if err := os.WriteFile(file, []byte(viaURLLib+`print(urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + "/embeddings", b'`+call+`').read().decode(), end="")`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := r.run(0, []string{"--", "python3", file}, "python has libraries that read no base URL: its calls to ", "!"+wentPast)
	if want := strings.Repeat("provider POST /v1/things\n", 3) + answer; got != want {
		t.Errorf("it prints %q", got)
	}
	if n := r.sent("openai"); n != 4 {
		t.Errorf("%d passed", n)
	}
}

// The configuration chooses as the flags do, which win.
func TestRunInterceptsAsConfigured(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "intercept: on\n")
	r.curlCalls()
	if got := r.run(0, []string{"--", "curl", "-sS", "https://api.openai.com/v1/embeddings"}, "are intercepted on 127.0.0.1:"); got != answer {
		t.Errorf("on: %q", got)
	}
	r.run(56, []string{"--only-gated", "--", "curl", "-sS", "https://elsewhere.test/"})
	r.run(0, []string{"--no-intercept", "--", "curl", "-sS", r.provider.URL}, wentPast)
	r.run(64, []string{"--no-intercept", "--only-gated", "--", "true"}, "--only-gated needs --intercept")
	r.run(64, []string{"--no-intercept", "--intercept", "--", "true"}, "--intercept: it does not go together with --no-intercept")
	text, err := os.ReadFile(filepath.Join(r.home, "sluice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r.configure(strings.Replace(string(text), "intercept: on", "intercept: off\nclients: mine", 1))
	if err := os.Mkdir(filepath.Join(r.home, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(r.home, "mine", "caller.yaml")
	if err := os.WriteFile(client, []byte("name: caller\nkind: agent\ncommands: [caller]\nproviders: [openai]\nway: intercept\nwhy: is my own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	caller := r.program("caller", "exec curl -sS "+r.provider.URL+"/v1/embeddings")
	r.run(0, []string{"--", caller}, "1 connection to 127.0.0.1 went past the gate: ")
	r.configure(strings.Replace(string(text), "intercept: on", "clients: mine", 1))
	r.run(0, []string{"--", caller}, "caller is my own: its calls to ", "!"+wentPast)
	if err := os.WriteFile(client, []byte("name: caller\nkind: agent\nway: magic\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(78, []string{"--", caller}, "caller.yaml:3")
	if _, stderr := r.sluice(78, "config", "check"); !strings.Contains(stderr, "caller.yaml:3") || !strings.Contains(stderr, "magic") {
		t.Errorf("config check says\n%s", stderr)
	}
}

// A variable that a client does not read does not lead its calls, and its key, elsewhere.
func TestAVariableDoesNotLeadOtherClientsElsewhere(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	r.curlCalls()
	c := r.company()
	r.configure("resources: {openai: {provider: openai}}\n")
	elsewhere := httptest.NewServer(named("elsewhere"))
	t.Cleanup(elsewhere.Close)
	r.env = append(r.env, "HTTPS_PROXY="+c.url(), "OPENAI_BASE_URL="+elsewhere.URL+"/v1")
	get := "curl -sS https://api.openai.com/v1/embeddings"
	if got := r.run(0, []string{"--", r.program("codex", get+`; curl -sS "$OPENAI_BASE_URL/embeddings"`)}, "!"+wentPast, "!"+noCall); got != answer+"elsewhere /v1/embeddings\n" {
		t.Errorf("codex: %q", got)
	}
	if n := r.sent("openai"); n != 2 {
		t.Errorf("%d passed", n)
	}
	if got := r.run(0, append([]string{"--intercept", "--"}, strings.Fields(get)...)); got != "elsewhere /v1/embeddings\n" {
		t.Errorf("--intercept: %q", got)
	}
}

// A client that does not trust the gate's certificate goes on without the gate after its first refusal, unless
// interception was asked for.
func TestRunYieldsToAClientThatRefusesTheCertificate(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	r.curlCalls()
	once := "curl -sS --cacert " + filepath.Join(r.home, "world.pem") + " " + r.provider.URL + "/v1/embeddings"
	codex := r.program("codex", once+" || "+once)
	got := r.run(0, []string{"--", codex}, "refuses the gate's certificate for 127.0.0.1", "go past the gate",
		"1 connection to 127.0.0.1 went past the gate: the command does not trust the gate's certificate")
	if got != answer {
		t.Errorf("it prints %q", got)
	}
	r.run(60, []string{"--intercept", "--", codex}, "--tunnel 127.0.0.1 leaves this host out", "!"+wentPast)
}

// A run within a run counts what goes past it; the outer one does not count it again, and what passed the inner gate does not
// count as past the outer one.
func TestNestedRunsCountOnce(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	r.curlCalls()
	c := r.company()
	r.configure("resources: {openai: {provider: openai}}\n")
	r.env = append(r.env, "HTTPS_PROXY="+c.url())
	get := "curl -sS https://api.openai.com/v1/embeddings"
	codex, pi, sh := r.program("codex", "exec "+get), []string{r.program("pi", `exec "$@"`)}, []string{"sh", "-c", `exec "$0" "$@"`}
	curl := strings.Fields(get)
	for name, test := range map[string]struct {
		outer, inner []string
		sent         int
		past         int64
	}{
		"noticed twice":            {sh, curl, 0, 1},
		"the inner intercepts":     {sh, []string{codex}, 1, 0},
		"the inner has a base URL": {sh, []string{"sh", "-c", `curl -sS "$OPENAI_BASE_URL/embeddings"`}, 1, 0},
		"both intercept":           {pi, []string{codex}, 1, 0},
		"the outer intercepts":     {pi, curl, 1, 0},
	} {
		sent := r.sent("openai")
		past := max(r.pastGate("openai"), 0)
		args := append(append([]string{"run", "--"}, test.outer...), sluiceBinary, "run", "--agent", "inner", "--")
		out, stderr := r.sluice(0, append(args, test.inner...)...)
		if out != answer || strings.Count(stderr, wentPast) != int(test.past) || strings.Contains(stderr, noCall) {
			t.Errorf("%s: %q\n%s", name, out, stderr)
		}
		if n, p := r.sent("openai")-sent, max(r.pastGate("openai"), 0)-past; n != test.sent || p != test.past {
			t.Errorf("%s: %d passed, %d went past", name, n, p)
		}
	}
}

// company is a proxy with credentials, and the only way out.
type company struct {
	*httptest.Server
	to string // where every tunnel leads

	mu   sync.Mutex
	seen []string // CONNECT HOST:PORT, and GET URL
}

func (r *rig) company() *company {
	c := &company{to: r.provider.Listener.Addr().String()}
	c.Server = httptest.NewServer(c)
	r.Cleanup(c.Close)
	return c
}

// url returns the address with credentials.
func (c *company) url() string { return strings.Replace(c.URL, "http://", "http://me:secret@", 1) }

func (c *company) requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

func (c *company) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	c.mu.Lock()
	c.seen = append(c.seen, q.Method+" "+q.RequestURI)
	c.mu.Unlock()
	if q.Header.Get("Proxy-Authorization") != "Basic bWU6c2VjcmV0" {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if q.Method != http.MethodConnect {
		_, _ = io.Copy(io.Discard, q.Body)
		fmt.Fprintf(w, "company %s\n", q.RequestURI)
		return
	}
	there, err := net.Dial("tcp", c.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(there, rw); _ = there.Close() }()
	_, _ = io.Copy(here, there)
	_ = here.Close()
}

// Behind a company's proxy everything goes through it, with its credentials, except the way to the gate on this machine and
// what NO_PROXY lists.
func TestRunBehindACompanysProxy(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	const openai = "CONNECT api.openai.com:443"
	for name, test := range map[string]struct {
		env    []string // PROXY stands for the proxy's address, PORT for its port
		args   []string
		prints string
		seen   []string
		says   string
	}{
		"a base URL": {
			env: []string{"HTTPS_PROXY=PROXY"}, args: []string{"sh", "-c", `curl -sS "$OPENAI_BASE_URL/embeddings"`}, prints: answer, seen: []string{openai}, says: "!" + noCall,
		},
		"lower case, ALL_PROXY": {
			env: []string{"all_proxy=PROXY"}, args: []string{"sh", "-c", `curl -sS "$OPENAI_BASE_URL/embeddings"`}, prints: answer, seen: []string{openai}, says: "!" + noCall,
		},
		"a client that uses HTTPS_PROXY for all": {
			env: []string{"HTTPS_PROXY=PROXY"}, args: []string{"sh", "-c", `curl -sS --proxy "$HTTPS_PROXY" "$OPENAI_BASE_URL/embeddings"`}, prints: answer, seen: []string{openai}, says: "!" + noCall,
		},
		"noticed": {
			env: []string{"https_proxy=PROXY"}, args: []string{"curl", "-sS", "https://api.openai.com/v1/embeddings"}, prints: answer, seen: []string{openai},
			says: "1 connection to api.openai.com went past the gate",
		},
		"intercepted": {
			env: []string{"HTTPS_PROXY=PROXY", "NO_PROXY=elsewhere.test"}, args: []string{"codex", "https://api.openai.com/v1/embeddings"}, prints: answer, seen: []string{openai}, says: "!" + wentPast,
		},
		"another host": {
			env: []string{"HTTPS_PROXY=PROXY"}, args: []string{"codex", "-k", "https://elsewhere.test/x"}, prints: "provider POST /x\n", seen: []string{"CONNECT elsewhere.test:443"}, says: noCall,
		},
		"plain, noticed": {
			env: []string{"HTTP_PROXY=PROXY", "http_proxy=PROXY"}, args: []string{"curl", "-sS", "http://elsewhere.test/x"}, prints: "company http://elsewhere.test/x\n", seen: []string{"POST http://elsewhere.test/x"}, says: noCall,
		},
		"plain, intercepted": {
			env: []string{"HTTP_PROXY=PROXY", "http_proxy=PROXY", "HTTPS_PROXY=PROXY"}, args: []string{"codex", "http://elsewhere.test/x"}, prints: "company http://elsewhere.test/x\n", seen: []string{"POST http://elsewhere.test/x"}, says: noCall,
		},
		"NO_PROXY with a port": {
			env: []string{"HTTPS_PROXY=PROXY", "NO_PROXY=localhost:OTHER"}, args: []string{"codex", "https://localhost:OTHER/x"}, prints: "other /x\n", says: noCall,
		},
		"NO_PROXY, noticed": {
			env: []string{"HTTPS_PROXY=PROXY", "no_proxy=10.0.0.0/8,localhost"}, args: []string{"curl", "-sS", "https://localhost:OTHER/x"}, prints: "other /x\n", says: noCall,
		},
		"NO_PROXY=* with a plain proxy": {
			env: []string{"http_proxy=PROXY", "HTTPS_PROXY=PROXY", "NO_PROXY=*"}, args: []string{"sh", "-c", `curl -sS http://localhost:PLAIN/x; curl -sS https://localhost:OTHER/x`}, prints: "plain /x\nother /x\n", says: noCall,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "")
			r.curlCalls()
			r.configure("resources: {openai: {provider: openai}}\n")
			r.program("codex", `exec curl -sS "$@"`)
			c := r.company()
			plain := httptest.NewServer(named("plain"))
			t.Cleanup(plain.Close)
			_, other, _ := net.SplitHostPort(r.other.Listener.Addr().String())
			_, open, _ := net.SplitHostPort(plain.Listener.Addr().String())
			fill := strings.NewReplacer("PROXY=PROXY", "PROXY="+c.url(), "proxy=PROXY", "proxy="+c.url(), "OTHER", other, "PLAIN", open)
			args := []string{"--"}
			for _, arg := range test.args {
				args = append(args, fill.Replace(arg))
			}
			for _, v := range test.env {
				r.env = append(r.env, fill.Replace(v))
			}
			for i, v := range r.env {
				if strings.HasPrefix(v, "PATH=") {
					r.env[i] = "PATH=" + filepath.Join(r.home, "bin") + ":" + os.Getenv("PATH")
				}
			}
			if got := r.run(0, args, test.says); got != test.prints {
				t.Errorf("it prints %q", got)
			}
			if seen := c.requests(); !slices.Equal(seen, test.seen) {
				t.Errorf("the proxy saw %q", seen)
			}
		})
	}
}
