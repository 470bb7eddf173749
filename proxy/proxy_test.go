package proxy_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/proxy"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// rig is a provider, a gate before it, and the proxy.
type rig struct {
	*testing.T
	gate  *sluice.Gate
	proxy *httptest.Server
	seen  chan *http.Request // what the provider gets; bodies are gone
}

// begin starts all of it. answer is the provider.
func begin(t *testing.T, limits []sluice.Limit, answer http.HandlerFunc, change func(*proxy.Options)) *rig {
	t.Helper()
	r := &rig{T: t, seen: make(chan *http.Request, 1000)}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		select {
		case r.seen <- q:
		default:
		}
		answer(w, q)
	}))
	t.Cleanup(provider.Close)
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	r.gate = gate
	up, err := url.Parse(provider.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DisableCompression = true
	t.Cleanup(base.CloseIdleConnections)
	o := proxy.Options{
		Gate: gate, Classes: []string{"p0", "p1", "p2"}, Base: base,
		Resources: map[string]proxy.Resource{"api": {Upstream: up, Limits: limits, Deadline: time.Minute}},
	}
	if change != nil {
		change(&o)
	}
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Settle)
	r.proxy = httptest.NewServer(p)
	t.Cleanup(r.proxy.Close)
	return r
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// get sends a request with headers, given as names and values.
func (r *rig) get(path string, header ...string) (*http.Response, string) {
	r.Helper()
	return r.send(http.MethodGet, path, nil, header...)
}

func (r *rig) send(method, path string, body io.Reader, header ...string) (*http.Response, string) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), method, r.proxy.URL+path, body)
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			q.Host = header[i+1]
			continue
		}
		q.Header.Add(header[i], header[i+1])
	}
	resp, err := r.proxy.Client().Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp, string(text)
}

// status reads the gate's status of the resource.
func (r *rig) status() inspect.ResourceStatus {
	r.Helper()
	s, err := r.gate.Resource(r.Context(), "api")
	if err != nil {
		r.Fatal(err)
	}
	return s
}

func perMinute(n int64) []sluice.Limit {
	return []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: n, Window: time.Minute}}
}

func TestWhatComesIsWhatGoes(t *testing.T) {
	var body string
	r := begin(t, perMinute(100), func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		body = string(b)
		w.Header().Set("X-Their-Own", "1")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}, nil)
	resp, text := r.send(http.MethodPost, "/@me:p1/api/a%2Fb/c?x=1;y=%20&z", strings.NewReader("tea"), "X-Api-Key", "secret", "X-Sluice-Tool", "kettle")
	if resp.StatusCode != http.StatusTeapot || text != "short and stout" || resp.Header.Get("X-Their-Own") != "1" {
		t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
	}
	q := <-r.seen
	if q.URL.EscapedPath() != "/base/a%2Fb/c" || q.URL.RawQuery != "x=1;y=%20&z" || body != "tea" || q.Header.Get("X-Api-Key") != "secret" {
		t.Errorf("%s ? %s, %q, %v", q.URL.EscapedPath(), q.URL.RawQuery, body, q.Header)
	}
	for name := range q.Header {
		if strings.HasPrefix(name, "X-Sluice-") || strings.HasPrefix(name, "X-Forwarded-") {
			t.Errorf("%s went on to the provider", name)
		}
	}
	s := r.status()
	if s.Sent != 1 || s.InFlight != 0 || len(s.Callers) != 1 || s.Callers[0].Agent != "me" {
		t.Errorf("%+v", s)
	}
}

func TestWhoSends(t *testing.T) {
	token := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	r := begin(t, perMinute(1000), hello, func(o *proxy.Options) {
		o.Tokens = []proxy.Token{
			{Name: "any", Hash: token("tok-any")},
			{Name: "low", Hash: token("tok-low"), Class: "p2"},
			{Name: "bob", Hash: token("tok-bob"), Agent: "bob", Class: "p1"},
		}
	})
	open := begin(t, perMinute(1000), hello, nil) // where there are no tokens
	for _, c := range []struct {
		path   string
		header []string
		status int
		agent  string
	}{
		{"/@a/api/", nil, 200, "a"},
		{"/@a%20b:p1/api/", nil, 200, "a b"},
		{"/api/", []string{"X-Sluice-Agent", "h"}, 200, "h"},
		{"/@path/api/", []string{"X-Sluice-Agent", "header"}, 200, "path"},
		{"/api/", []string{"X-Claude-Code-Session-Id", "0123456789abcdef"}, 200, "claude-code-01234567"},
		{"/api/", []string{"X-Agent-Id", "w7"}, 200, "w7"},
		{"/@bob/api/", []string{"X-Sluice-Token", "tok-bob"}, 200, "bob"},
		{"/api/", []string{"Authorization", "Bearer tok-bob"}, 200, "bob"},
		{"/api/?key=tok-bob&alt=sse", nil, 200, "bob"},
		{"/api/?%6bey=tok-bob&alt=sse", nil, 200, "bob"},
		{"/@eve/api/", []string{"X-Sluice-Token", "tok-bob"}, 403, ""},
		{"/@x:p1/api/", []string{"X-Sluice-Token", "tok-low"}, 403, ""},
		{"/@x:p2/api/", []string{"X-Sluice-Token", "tok-low"}, 200, "x"},
		{"/@x/api/", []string{"X-Sluice-Token", "tok-low", "X-Sluice-Emergency", "1"}, 403, ""},
		{"/@x/api/", []string{"X-Sluice-Token", "unknown"}, 401, ""},
		{"/@x/api/a/../b", nil, 400, ""},
		{"/@x/api/a/%2e%2E/b", nil, 400, ""},
		{"/@x:p9/api/", nil, 400, ""},
		{"/@/api/", nil, 400, ""},
		{"/@" + strings.Repeat("x", 200) + "/api/", nil, 400, ""},
		{"/nowhere/", nil, 404, ""},
		{"/", nil, 404, ""},
	} {
		r := r
		if !strings.Contains(fmt.Sprint(c.path, c.header), "tok-") {
			if resp, _ := r.get(c.path, c.header...); c.status < 400 && resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: without a token it is %d", c.path, resp.StatusCode)
			}
			r = open
		}
		before := sent(r.status())
		resp, text := r.get(c.path, c.header...)
		if resp.StatusCode != c.status {
			t.Errorf("%s %v: %d %s", c.path, c.header, resp.StatusCode, text)
		}
		after := sent(r.status())
		if c.agent != "" && after[c.agent] != before[c.agent]+1 {
			t.Errorf("%s %v: not counted as %s: %v", c.path, c.header, c.agent, after)
		}
		if c.status == 200 {
			if q := <-r.seen; strings.Contains(fmt.Sprint(q.Header, q.URL), "tok-") {
				t.Errorf("%s %v: the token went on: %v", c.path, c.header, q.Header)
			}
		} else if !strings.Contains(resp.Header.Get("Content-Type"), "json") {
			t.Errorf("%s: %s", c.path, resp.Header.Get("Content-Type"))
		}
	}
}

func sent(s inspect.ResourceStatus) map[string]int64 {
	all := map[string]int64{}
	for _, c := range s.Callers {
		all[c.Agent] = c.Sent
	}
	return all
}

func TestKeysAreLentToBearersOnly(t *testing.T) {
	sum := sha256.Sum256([]byte("tok"))
	r := begin(t, perMinute(1000), hello, func(o *proxy.Options) {
		o.Tokens = []proxy.Token{{Name: "one", Hash: hex.EncodeToString(sum[:])}}
		api := o.Resources["api"]
		api.InjectHeader, api.InjectValue = "X-Api-Key", "the-key"
		o.Resources["api"] = api
		o.Via = "store"
	})
	if resp, text := r.get("/@a/api/"); resp.StatusCode != http.StatusUnauthorized || strings.Contains(text, "the-key") {
		t.Errorf("without a token: %d %s", resp.StatusCode, text)
	}
	resp, _ := r.get("/@a/api/", "X-Api-Key", "tok", "Authorization", "Bearer theirs", "X-Sluice-Via", "store")
	q := <-r.seen
	if resp.StatusCode != 200 || q.Header.Get("X-Api-Key") != "the-key" || q.Header.Get("Authorization") != "" {
		t.Errorf("with one: %d %v", resp.StatusCode, q.Header)
	}
	if s := r.status(); s.Sent != 1 {
		t.Errorf("%d were counted: nobody gets past the gate with its key", s.Sent)
	}
}

func TestNoWebPageSpendsTheKey(t *testing.T) {
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) { o.Hosts = []string{"gate.example"} })
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 403},
		{[]string{"Host", "evil.example"}, 421},
		{[]string{"Host", "evil.example:7979"}, 421},
		{[]string{"Host", "127.0.0.1.evil.example"}, 421},
		{[]string{"Host", "localhost:7979"}, 200},
		{[]string{"Host", "[::1]:7979"}, 200},
		{[]string{"Host", "Gate.Example:7979"}, 200},
	} {
		if resp, text := r.get("/@a/api/", c.header...); resp.StatusCode != c.status {
			t.Errorf("%v: %d %s", c.header, resp.StatusCode, text)
		}
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	r := begin(t, perMinute(100), hello, nil)
	if resp, text := r.get("/@a/api/", "Connection", "Upgrade", "Upgrade", "websocket"); resp.StatusCode != http.StatusNotImplemented || !strings.Contains(text, "WebSocket") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if resp, _ := r.send(http.MethodTrace, "/@a/api/", nil); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Error(resp.StatusCode)
	}
	if s := r.status(); s.Sent != 0 {
		t.Errorf("%d were counted", s.Sent)
	}
}

// Java's HttpClient and curl --http2 offer HTTP/2 with each plain request. The offer is ignored, so the request passes, and
// the provider sees nothing of it.
func TestAnOfferOfHTTP2IsIgnored(t *testing.T) {
	r := begin(t, perMinute(100), hello, nil)
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAEAAEAA"}, 200},
		{[]string{"Connection", "Upgrade", "Connection", "X-Mine, http2-settings", "Upgrade", "H2C", "HTTP2-Settings", "AAEAAEAA", "X-Mine", "1"}, 200},
		{[]string{"Connection", "Upgrade", "Upgrade", "h2c", "HTTP2-Settings", "AAEAAEAA"}, 200},
		{[]string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c, websocket", "HTTP2-Settings", "AAEAAEAA"}, 501},
		{[]string{"Connection", "Upgrade", "Upgrade", "h2c2"}, 501},
	} {
		resp, text := r.send(http.MethodPost, "/@a/api/", strings.NewReader("body"), c.header...)
		if resp.StatusCode != c.status {
			t.Errorf("%q: %d %s", c.header, resp.StatusCode, text)
		}
		if c.status != http.StatusOK {
			continue
		}
		got := (<-r.seen).Header
		for _, name := range []string{"Connection", "Upgrade", "Http2-Settings", "X-Mine"} {
			if got[name] != nil {
				t.Errorf("%q: the provider gets %s: %q", c.header, name, got[name])
			}
		}
	}
}

// A client that cannot be served in time is told when to retry, soon enough for clients that give up at a minute.
func TestWhoCannotGoIsTold(t *testing.T) {
	hour := []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 1, Window: time.Hour}}
	r := begin(t, hour, hello, func(o *proxy.Options) {
		api := o.Resources["api"]
		api.Deadline = 50 * time.Millisecond
		o.Resources["api"] = api
	})
	if resp, _ := r.get("/@a:p0/api/", "X-Sluice-Emergency", "1"); resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode)
	}
	resp, text := r.get("/@a:p0/api/", "X-Sluice-Emergency", "1")
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "59" || !strings.Contains(text, "hour") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	if n := len(r.seen); n != 1 {
		t.Errorf("the provider has seen %d", n)
	}
}

// Pieces of a response arrive when they are sent, not when it ends.
func TestPiecesComeAtOnce(t *testing.T) {
	next := make(chan struct{})
	r := begin(t, perMinute(100), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Trailer", "X-End")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
		w.Header().Set("X-End", "yes")
	}, nil)
	resp, err := r.proxy.Client().Get(r.proxy.URL + "/@a/api/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := in.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = in.ReadString('\n')
		next <- struct{}{}
	}
	if _, err := io.Copy(io.Discard, in); err != nil || resp.Trailer.Get("X-End") != "yes" {
		t.Errorf("%v, trailer %v", err, resp.Trailer)
	}
}

// A request that has passed a gate of the same store is not charged again.
func TestNobodyPaysTwice(t *testing.T) {
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) { o.Via = "store" })
	r.get("/@a/api/", "X-Sluice-Via", "store") // which is not what a gate says
	via := (<-r.seen).Header.Get("X-Sluice-Via")
	if via == "" || via == "store" {
		t.Errorf("the next gate is told %q", via)
	}
	r.get("/@a/api/", "X-Sluice-Via", via)
	if s := r.status(); s.Sent != 1 {
		t.Errorf("%d were counted", s.Sent)
	}
}

func TestAProviderThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) {
		api := o.Resources["api"]
		api.Upstream = &url.URL{Scheme: "http", Host: gone}
		api.Retry.Attempts = 1
		o.Resources["api"] = api
	})
	if resp, text := r.get("/@a/api/?secret=1"); resp.StatusCode != http.StatusBadGateway || strings.Contains(text, "secret") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if s := r.status(); s.InFlight != 0 {
		t.Errorf("%d in flight", s.InFlight)
	}
}

// The GitHub CLI sends plain HTTP for the provider's own host through a Unix socket.
func TestUnixSocket(t *testing.T) {
	r := begin(t, perMinute(100), hello, nil)
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r.proxy.Config.Handler, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	defer func() { _ = server.Close(); <-served }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", l.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for at, path := range map[string]string{"http://127.0.0.1/user": "/base/user", "http://somewhere/@a/api/user": "/base/user"} {
		resp, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if q := <-r.seen; resp.StatusCode != 200 || q.URL.Path != path {
			t.Errorf("%s: %d %s", at, resp.StatusCode, q.URL.Path)
		}
	}
	resp, err := client.Get("http://elsewhere/user")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Error(resp.StatusCode)
	}
}

// A request that states that it is a retry is sent once.
func TestRetriesDoNotNest(t *testing.T) {
	for _, header := range []string{"X-Sluice-Retry", "X-Stainless-Retry-Count"} {
		r := begin(t, perMinute(100), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, nil)
		if resp, _ := r.get("/@a/api/", header, "1"); resp.StatusCode != http.StatusServiceUnavailable || len(r.seen) != 1 {
			t.Errorf("%s: %d, sent %d times", header, resp.StatusCode, len(r.seen))
		}
		if s := r.status(); s.Retried != 1 {
			t.Errorf("%s: %d retries were counted", header, s.Retried)
		}
	}
}
