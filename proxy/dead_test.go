package proxy_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// deadAddress returns an address where nothing listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// A client of a dead provider soon gets an error in the provider's own format, and the status says why.
func TestDeadProviders(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	resets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}))
	t.Cleanup(resets.Close)
	const again = "the gate tries every new request"
	for _, c := range []struct {
		name, upstream, kind, words, told, hint string
	}{
		{"refused", deadAddress(t), "refused", "connection refused by 127.0.0.1:", "connection refused", again},
		{"unknown host", "http://nowhere.invalid", "dns", "nowhere.invalid does not resolve", "its name does not resolve", again},
		{
			"tls", secure.URL, "tls", "TLS to " + strings.TrimPrefix(secure.URL, "https://") + ": the certificate of \"Acme Co\" is self-signed, and this machine does not trust it",
			`the certificate of \"Acme Co\" is self-signed`, "upstream_ca",
		},
		{"reset", resets.URL, "reset", "the connection broke before an answer came", "the connection broke before an answer came", again},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var events []inspect.Event
			gate, err := sluice.Open(t.Context(), sluice.Config{
				Resources: map[string]sluice.Resource{"anthropic": {Limits: perMinute(1000)}},
				Events: func(e inspect.Event) {
					mu.Lock()
					defer mu.Unlock()
					events = append(events, e)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = gate.Close() })
			up, err := url.Parse(c.upstream)
			if err != nil {
				t.Fatal(err)
			}
			dialect, _ := provider.Lookup("anthropic")
			base := sluicehttp.Tuned()
			base.Proxy = nil
			t.Cleanup(base.CloseIdleConnections)
			p, err := proxy.New(proxy.Options{
				Gate: gate, Classes: []string{"p0", "p1", "p2"}, Base: base,
				Resources: map[string]proxy.Resource{"anthropic": {Upstream: up, Limits: perMinute(1000), Dialect: dialect}},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Settle)
			server := httptest.NewServer(p)
			t.Cleanup(server.Close)
			r := &rig{T: t, gate: gate, proxy: server}
			resp, body := r.send(http.MethodPost, "/anthropic/v1/messages", strings.NewReader(`{"model":"claude-opus-4-1","max_tokens":5,"messages":[]}`), "X-Api-Key", "sk-ant-secret")
			if resp.StatusCode != http.StatusBadGateway || !strings.Contains(body, `"type":"error"`) || !strings.Contains(body, c.told) || !strings.Contains(body, c.hint) {
				t.Errorf("status %d, %s, want 502 in the provider's own shape, with %q and %q", resp.StatusCode, body, c.told, c.hint)
			}
			s, err := gate.Resource(t.Context(), "anthropic")
			if err != nil || s.State != inspect.StateFailing || !strings.Contains(s.Reason, c.words) {
				t.Errorf("the state is %s: %s (%v), want failing: %s", s.State, s.Reason, err, c.words)
			}
			mu.Lock()
			defer mu.Unlock()
			var failed, failing bool
			for _, e := range events {
				failed = failed || e.Kind == inspect.EventUpstream && e.Reason == c.kind
				failing = failing || e.Kind == inspect.EventState && e.State == inspect.StateFailing && strings.Contains(e.Reason, c.words)
			}
			if !failed || !failing {
				t.Errorf("events: failed %v, failing %v, of %+v", failed, failing, events)
			}
		})
	}
}

// A gate that can open no more files is at fault itself: 503 with a reason, where it answered 502 and said that the provider
// fails.
func TestAGateWithoutFilesBlamesItself(t *testing.T) {
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) {
		api := o.Resources["api"]
		api.Retry.Attempts = 1
		o.Resources["api"] = api
		o.Base = roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		})
	})
	resp, text := r.get("/@a/api/")
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "can open no more files") || !strings.Contains(text, "ulimit -n") || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	if s := r.status(); s.State == inspect.StateFailing {
		t.Errorf("the provider is blamed: %s", s.Reason)
	}
}
