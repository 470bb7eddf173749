package sluicehttp

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

// arrival is a request as the provider gets it.
type arrival struct {
	body   string
	header http.Header
}

// In mode observe a request arrives once and unchanged, and the client gets the provider's response.
func TestObservedRequestsGoOnceAsTheyCame(t *testing.T) {
	var mu sync.Mutex
	var arrived []arrival
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		arrived = append(arrived, arrival{string(body), r.Header})
		mu.Unlock()
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"code":"rate_limit_exceeded"}}`)
	}))
	defer server.Close()
	dialect, _ := provider.Lookup("openai")
	plain := &http.Transport{DisableCompression: true}
	defer plain.CloseIdleConnections()
	tr := &Transport{
		Gate: openGate(t, sluice.Resource{Observe: true, Limits: []sluice.Limit{{Name: "l", Kind: sluice.Rolling, Size: 1, Window: hour}}}), Resource: "api",
		Dialect: dialect, Base: plain, Caller: Caller{Agent: "a", Wait: time.Nanosecond},
		Route: func(context.Context, Caller, *provider.ParsedRequest) (string, error) { return "another", nil },
	}
	const call = `{"model":"gpt-5","stream":true,"messages":[]}`
	header := http.Header{
		"Accept-Encoding": {"br, gzip, zstd"}, "Content-Type": {"application/json"}, "X-Stainless-Retry-Count": {"1"}, "User-Agent": {"test"}, "Idempotency-Key": {"1"},
	}
	send := func(via http.RoundTripper, model string) {
		req, err := http.NewRequest(http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(strings.Replace(call, "gpt-5", model, 1)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = maps.Clone(header)
		resp, err := via.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3600" || !strings.Contains(string(body), "rate_limit_exceeded") {
			t.Errorf("the client got %d %v %s", resp.StatusCode, resp.Header, body)
		}
	}
	send(plain, "gpt-5") // what arrives without the gate
	began := time.Now()
	for range 19 {
		send(tr, "gpt-5")
	}
	send(tr, strings.Repeat("m", 5000))
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("20 requests took %v", took)
	}
	if len(arrived) != 21 {
		t.Fatalf("%d arrivals, want 1 and 20", len(arrived))
	}
	for _, a := range arrived[1:20] {
		if a.body != arrived[0].body || !maps.EqualFunc(a.header, arrived[0].header, slices.Equal) {
			t.Fatalf("it arrived as\n%v %s, want\n%v %s", a.header, a.body, arrived[0].header, arrived[0].body)
		}
	}
	status, err := tr.Gate.Resource(t.Context(), "api")
	if err != nil || status.Sent != 20 || status.Throttled != 20 || status.PausedUntil != nil || status.Retried != 20 { // the client says so itself
		t.Errorf("%+v, %v", status, err)
	}
}
