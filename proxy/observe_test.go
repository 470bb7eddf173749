package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/proxy"
)

// In the mode observe a request through the proxy arrives once, without Sluice's own headers and otherwise as it came.
func TestObservedRequestsPassTheProxyAsTheyCame(t *testing.T) {
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Observe: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	r := begin(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
	}, func(o *proxy.Options) { o.Gate, o.Via = gate, "a store" })
	for range 20 {
		req, err := http.NewRequest(http.MethodPost, r.proxy.URL+"/@me/api/v1/x?y=%20z", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Sluice-Class": {"p1"}, "X-Sluice-Parent": {"boss"}, "X-Other": {"1", "2"}, "Accept-Encoding": {"br"}, "User-Agent": {"test"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "86400" || resp.Header.Get("X-Sluice-Refused") != "" {
			t.Fatalf("the client got %d %v", resp.StatusCode, resp.Header)
		}
	}
	if n := len(r.seen); n != 20 {
		t.Errorf("%d arrivals, want 20", n)
	}
	seen := <-r.seen
	if seen.Method != http.MethodPost || seen.URL.Path != "/base/v1/x" || seen.URL.RawQuery != "y=%20z" || len(seen.Header["X-Other"]) != 2 {
		t.Errorf("%s %s %v arrived", seen.Method, seen.URL, seen.Header)
	}
	for name := range seen.Header {
		if strings.HasPrefix(name, "X-Sluice") {
			t.Errorf("the provider sees %s", name)
		}
	}
	if len(seen.Header) != 4 { // Accept-Encoding, Content-Length, User-Agent, X-Other
		t.Errorf("the provider sees %v", seen.Header)
	}
	if agents, err := gate.Status(t.Context()); err != nil || len(agents.Resources[0].Gates) > 0 {
		t.Errorf("%+v, %v", agents, err)
	}
	http.DefaultClient.CloseIdleConnections()
}
