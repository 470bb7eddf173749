package proxy_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// observing returns a gate that observes an exhausted resource.
func observing(t *testing.T) *sluice.Gate {
	t.Helper()
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Observe: true, Limits: onePlace()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	return gate
}

// A client that goes away during an observed request, before the response or within it, ends that request at the
// provider. It is not sent again, the next one goes at once, and when the exchange is over nothing is in flight.
func TestObservedClientGoesAway(t *testing.T) {
	for _, answers := range []bool{false, true} {
		begun, gone, over := make(chan struct{}, 9), make(chan struct{}, 9), make(chan struct{}, 9)
		gate := observing(t)
		r := begin(t, nil, func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/base/slow" {
				return
			}
			if answers {
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
			}
			begun <- struct{}{}
			<-q.Context().Done()
			gone <- struct{}{}
		}, func(o *proxy.Options) {
			res := o.Resources["api"]
			res.Free = true // its place does not outlive it
			o.Gate, o.Resources["api"], o.Done = gate, res, func(sluicehttp.Exchange) { over <- struct{}{} }
		})
		r.gate = gate
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.proxy.URL+"/@a/api/slow", nil)
			if err == nil {
				var resp *http.Response
				if resp, err = r.proxy.Client().Do(req); err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
			ended <- err
		}()
		await(t, begun, "the request arrives")
		cancel()
		if err := <-ended; err == nil {
			t.Error("the client has an answer")
		}
		await(t, gone, "the provider is told")
		await(t, over, "the exchange is over")
		if s := r.status(); s.InFlight != 0 || s.Sent != 1 || s.PausedUntil != nil {
			t.Errorf("answers %v: %+v", answers, s)
		}
		if resp, _ := r.get("/@a/api/next"); resp.StatusCode != http.StatusOK || len(r.seen) != 2 {
			t.Errorf("answers %v: the next gets %d; %d arrivals, want 2", answers, resp.StatusCode, len(r.seen))
		}
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("not within a minute: %s", what)
	}
}

// Nested gates, as in nested runs: an observed request counts once, and the provider sees no trace of either gate. A
// gate in gate mode does not believe that a request was observed.
func TestNestedObservedGatesCountOnce(t *testing.T) {
	for _, outerObserves := range []bool{true, false} {
		outerGate, innerGate := observing(t), observing(t)
		outer := begin(t, onePlace(), hello, func(o *proxy.Options) {
			if o.Via = "a store"; outerObserves {
				o.Gate = outerGate
			} else {
				outerGate = o.Gate
			}
		})
		outer.gate = outerGate
		up, err := url.Parse(outer.proxy.URL + "/@a/api")
		if err != nil {
			t.Fatal(err)
		}
		inner := begin(t, nil, hello, func(o *proxy.Options) {
			res := o.Resources["api"]
			res.Upstream = up
			o.Gate, o.Via, o.Resources["api"] = innerGate, "a store", res
		})
		inner.gate = innerGate
		if resp, text := inner.get("/@a/api/x"); resp.StatusCode != 200 || text != "hello" {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		want := map[bool]int64{true: 0, false: 1}[outerObserves] // by the outer one
		if in, out := inner.status().Sent, outer.status().Sent; in != 1 || out != want {
			t.Errorf("outer observes %v: %d and %d were counted, want 1 and %d", outerObserves, in, out, want)
		}
		if via := (<-outer.seen).Header["X-Sluice-Via"]; outerObserves && len(via) > 0 {
			t.Errorf("the provider sees %v", via)
		}
	}
}

// In observe mode a request through the proxy arrives once, without Sluice's own headers and otherwise unchanged.
func TestObservedRequestsPassTheProxyAsTheyCame(t *testing.T) {
	gate := observing(t)
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
