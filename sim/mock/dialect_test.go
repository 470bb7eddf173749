package mock_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/store"
)

func observe(t *testing.T, dialect string, w *httptest.ResponseRecorder, now time.Time) provider.Observation {
	t.Helper()
	d, ok := provider.Lookup(dialect)
	if !ok {
		t.Fatalf("there is no dialect %s", dialect)
	}
	return d.Observe(&provider.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes(), Received: now}, now)
}

// The dialects understand the mocks: limits, remaining quota, refusals and when to retry.
func TestDialectsUnderstandTheMocks(t *testing.T) {
	for _, c := range []struct {
		options      mock.Options
		method, path string
		body         string
		unit         string
		verdict      store.Verdict
	}{
		{mock.Options{Provider: "anthropic", Requests: perMinute(3)}, "POST", "/v1/messages", plainMessage, "requests", store.VerdictThrottled},
		{mock.Options{Provider: "openai", Requests: perMinute(3)}, "POST", "/v1/chat/completions", plainMessage, "requests", store.VerdictThrottled},
		{mock.Options{Provider: "github", Requests: sim.Rate{N: 3, Window: time.Hour}}, "GET", "/user", "", "core", store.VerdictExhausted},
		{mock.Options{Provider: "generic", Requests: perMinute(3)}, "GET", "/", "", "requests", store.VerdictThrottled},
	} {
		clock := newClock()
		c.options.Now = clock.Now
		s := server(t, c.options)
		var o provider.Observation
		for left := int64(2); left >= 0; left-- {
			o = observe(t, c.options.Provider, send(s, c.method, c.path, c.body), clock.Now())
			if o.Verdict != store.VerdictOK || o.Ignored != 0 || len(o.Limits) != 1 || o.Limits[0].Unit != c.unit || o.Limits[0].Size != 3 || o.Limits[0].Remaining != left {
				t.Errorf("%s: %+v", c.options.Provider, o)
			}
		}
		w := send(s, c.method, c.path, c.body)
		o = observe(t, c.options.Provider, w, clock.Now())
		if o.Verdict != c.verdict || !o.Hinted || o.RetryAfter <= 0 {
			t.Errorf("%s: %d %+v", c.options.Provider, w.Code, o)
		}
		clock.advance(o.RetryAfter)
		if w := send(s, c.method, c.path, c.body); w.Code != 200 {
			t.Errorf("%s: %d after %v", c.options.Provider, w.Code, o.RetryAfter)
		}
	}
}

// The usage that the dialects read equals the mocks' ledgers.
func TestDialectsReadTheUsage(t *testing.T) {
	withUsage := strings.Replace(streamMessage, "{", `{"stream_options":{"include_usage":true},`, 1)
	for _, c := range []struct{ provider, path, body, fault string }{
		{"anthropic", "/v1/messages", plainMessage, ""}, {"anthropic", "/v1/messages", streamMessage, ""},
		{"anthropic", "/v1/messages", streamMessage, "cache-read=2, cache-write=3"}, {"anthropic", "/v1/messages", plainMessage, "body=100KB"},
		{"openai", "/v1/chat/completions", plainMessage, "cache-read=2"}, {"openai", "/v1/chat/completions", withUsage, ""},
		{"openai", "/v1/responses", `{"model":"m","input":"hi"}`, ""}, {"openai", "/v1/responses", `{"model":"m","input":"hi","stream":true}`, "cache-read=1"},
		{"gemini", "/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, ""},
		{"gemini", "/v1beta/models/m:streamGenerateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, ""},
	} {
		s := server(t, mock.Options{Provider: c.provider})
		w := send(s, "POST", c.path, c.body, "X-Mock: "+c.fault)
		d, _ := provider.Lookup(c.provider)
		speaker := d.(provider.Speaker)
		asked := speaker.Ask(&provider.Call{Method: "POST", Path: c.path, Body: []byte(c.body), Whole: true, Size: int64(len(c.body))})
		r := speaker.Usage(&asked, w.Header().Get("Content-Type"))
		if r == nil {
			t.Errorf("%s %s: nothing to read", c.provider, c.path)
			continue
		}
		r.Write(w.Body.Bytes())
		u, want := r.Usage(), s.Stats().Ledger["m"]
		got := mock.Usage{Requests: 1, InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
		if !u.Final || got != want {
			t.Errorf("%s %s %q: read %+v, used %+v", c.provider, c.path, c.fault, u, want)
		}
	}
}
