package mock_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/sim/mock"
)

// hanging sends n requests that hang until release, which waits for their end. It needs a synctest bubble.
func hanging(t *testing.T, s *mock.Server, n int, method, path, body string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
			r.Header.Set("X-Mock", "hang")
			s.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	synctest.Wait()
	return func() { cancel(); all.Wait() }
}

const (
	plainMessage  = `{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`
	streamMessage = `{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// overTheWire sends a request through a socket.
func overTheWire(t *testing.T, o mock.Options, path, body, fault string) (*mock.Server, *http.Response, []byte, error) {
	t.Helper()
	s := server(t, o)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	r, err := http.NewRequestWithContext(t.Context(), "POST", h.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Mock", fault)
	r.Header.Set("Accept-Encoding", "identity") // the body as it is sent
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return s, resp, got, err
}

func TestForcedStatus(t *testing.T) {
	for _, c := range []struct {
		provider, path, fault string
		status                int
		has                   string
	}{
		{"anthropic", "/v1/messages", "status=529", 529, `"type":"overloaded_error"`},
		{"anthropic", "/v1/messages", "status=429, retry-after=17", 429, `"type":"rate_limit_error"`},
		{"anthropic", "/v1/messages", "status=402", 402, `"type":"billing_error"`},
		{"openai", "/v1/chat/completions", "status=503", 503, `"code":"server_is_overloaded"`},
		{"openai", "/v1/chat/completions", "status=401", 401, `"code":"invalid_api_key"`},
		{"generic", "/x", "status=500", 500, `"title":"Internal Server Error"`},
	} {
		s := server(t, mock.Options{Provider: c.provider})
		w := send(s, "POST", c.path, plainMessage, "X-Mock: "+c.fault)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: %d %s", c.provider, c.fault, w.Code, w.Body)
		}
		if strings.Contains(c.fault, "retry-after") != (w.Header().Get("Retry-After") == "17") {
			t.Errorf("%s: %v", c.fault, w.Header())
		}
		if st := s.Stats(); st.Arrived != 1 || st.Accepted != 0 || st.Throttled+st.Failed != 1 || len(st.Ledger) != 0 {
			t.Errorf("%s %s: %+v", c.provider, c.fault, st)
		}
	}
}

func TestUnknownFaultsAreRefused(t *testing.T) {
	s := server(t, mock.Options{Provider: "generic"})
	for _, fault := range []string{
		"explode", "status", "status=200", "status=abc", "body=", "body=GB", "body=1XB", "body=-1", "body=99999999999GB", "body=1GBK",
		"slow=1", "slow=-1s", "slow=100h", "hang=1", "cache-read=-1", "cache-write=x",
	} {
		if w := send(s, "GET", "/", "", "X-Mock: "+fault); w.Code != 400 || !strings.Contains(w.Body.String(), "X-Mock") {
			t.Errorf("%s: %d %s", fault, w.Code, w.Body)
		}
	}
	if w := send(s, "GET", "/", "", "X-Mock: , no-usage,,"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestGarbageHeaders(t *testing.T) {
	w := send(server(t, mock.Options{Provider: "anthropic", Published: true}), "POST", "/v1/messages", plainMessage, "X-Mock: garbage-headers")
	if w.Code != 200 || w.Header().Get("Retry-After") != "soon" || w.Header().Get("Anthropic-Ratelimit-Requests-Limit") == "1000" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if at(decoded(t, w.Body.Bytes()), "type") != "message" {
		t.Errorf("%s", w.Body)
	}
}

// Hanging requests end when the server is closed.
func TestHangEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, mock.Options{Provider: "generic"})
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			send(s, "GET", "/", "", "X-Mock: hang")
		}()
		synctest.Wait()
		s.Close()
		if got := <-ended; got != http.ErrAbortHandler {
			t.Errorf("%v", got)
		}
		if st := s.Stats(); st.InFlight != 0 || st.Aborted != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestCloseEarly(t *testing.T) {
	for _, body := range []string{plainMessage, streamMessage, `{"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"x"}]}`} {
		s, _, got, err := overTheWire(t, mock.Options{Provider: "anthropic"}, "/v1/messages", body, "close-early")
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 0 || strings.Contains(string(got), "message_stop") {
			t.Errorf("%v after %q", err, got)
		}
		if st := s.Stats(); st.Accepted != 1 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	}
}

func TestErrorIn200(t *testing.T) {
	for _, c := range []struct{ provider, path, body, has, not string }{
		{"anthropic", "/v1/messages", plainMessage, `"type":"overloaded_error"`, "usage"},
		{"anthropic", "/v1/messages", streamMessage, "event: error\ndata: {\"type\":\"error\"", "message_stop"},
		{"openai", "/v1/chat/completions", plainMessage, `{"error":{"message":`, "usage"},
		{"openai", "/v1/chat/completions", streamMessage, `data: {"error":{"message":`, "[DONE]"},
		{"openai", "/v1/responses", `{"model":"m","input":"x","stream":true}`, `data: {"type":"error","code":"server_error"`, "response.completed"},
		{"github", "/graphql", `{"query":"{viewer{login}}"}`, `"errors":[`, "login"},
		{"generic", "/", "", `{"error":`, "path"},
	} {
		s := server(t, mock.Options{Provider: c.provider})
		w := send(s, "POST", c.path, c.body, "X-Mock: error-in-200")
		if w.Code != 200 || !strings.Contains(w.Body.String(), c.has) || strings.Contains(w.Body.String(), c.not) {
			t.Errorf("%s %s: %d %s", c.provider, c.path, w.Code, w.Body)
		}
		if st := s.Stats(); st.InFlight != 0 || st.Accepted != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// counting counts the bytes of a response and keeps only the last ones.
type counting struct {
	header http.Header
	status int
	n      int64
	last   []byte
}

func (c *counting) Header() http.Header    { return c.header }
func (c *counting) WriteHeader(status int) { c.status = status }
func (c *counting) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	c.last = append(c.last[:0], p[max(0, len(p)-200):]...)
	return len(p), nil
}

func TestLargeBodies(t *testing.T) {
	for _, provider := range mock.Providers {
		path := map[string]string{"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "gemini": "/v1beta/models/m:generateContent", "github": "/graphql", "generic": "/"}[provider]
		body := strings.Replace(plainMessage, "{", `{"query":"{viewer}","contents":[],`, 1)
		s := server(t, mock.Options{Provider: provider})
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("X-Mock", "body=3GB")
		w := &counting{header: http.Header{}}
		s.ServeHTTP(w, r)
		if w.status != 200 || w.n != 3e9 || w.header.Get("Content-Length") != "3000000000" || !strings.HasSuffix(string(w.last), "}") {
			t.Errorf("%s: %d, %d bytes, %v, ends with %q", provider, w.status, w.n, w.header, w.last)
		}
		small := send(s, "POST", path, body, "X-Mock: body=64KiB")
		decoded(t, small.Body.Bytes())
		if small.Body.Len() != 64<<10 {
			t.Errorf("%s: %d bytes", provider, small.Body.Len())
		}
		if got := send(s, "POST", path, body, "X-Mock: body=7").Body.Len(); got != 7 {
			t.Errorf("%s: %d bytes, want 7", provider, got)
		}
	}
	w := send(server(t, mock.Options{Provider: "anthropic"}), "POST", "/v1/messages", streamMessage, "X-Mock: body=1MB")
	if got := strings.Count(w.Body.String(), "x"); got < 1e6 || got > 1e6+2000 {
		t.Errorf("%d bytes in a stream", got)
	}
}

func TestTrailersAndGzip(t *testing.T) {
	for _, body := range []string{plainMessage, streamMessage} {
		_, _, plain, err := overTheWire(t, mock.Options{Provider: "anthropic"}, "/v1/messages", body, "")
		if err != nil {
			t.Fatal(err)
		}
		_, resp, got, err := overTheWire(t, mock.Options{Provider: "anthropic"}, "/v1/messages", body, "trailers")
		if err != nil || resp.Trailer.Get("X-Mock-Trailer") != "end" || string(got) != string(plain) {
			t.Errorf("%v, trailers %v", err, resp.Trailer)
		}
		_, resp, got, err = overTheWire(t, mock.Options{Provider: "anthropic"}, "/v1/messages", body, "gzip, trailers")
		if err != nil || resp.Header.Get("Content-Encoding") != "gzip" || resp.Trailer.Get("X-Mock-Trailer") != "end" {
			t.Fatalf("%v, %v", err, resp.Header)
		}
		z, err := gzip.NewReader(strings.NewReader(string(got)))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != string(plain) {
			t.Errorf("%v in %q", err, text)
		}
	}
}

func TestNoUsage(t *testing.T) {
	for _, c := range []struct{ provider, path, body string }{
		{"anthropic", "/v1/messages", plainMessage}, {"anthropic", "/v1/messages", streamMessage},
		{"openai", "/v1/chat/completions", plainMessage},
		{"openai", "/v1/chat/completions", strings.Replace(streamMessage, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)},
		{"openai", "/v1/responses", `{"model":"m","input":"x","stream":true}`},
	} {
		s := server(t, mock.Options{Provider: c.provider})
		w := send(s, "POST", c.path, c.body, "X-Mock: no-usage")
		if strings.Contains(w.Body.String(), "_tokens\":1") || w.Code != 200 || strings.Contains(w.Body.String(), "total_tokens") {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
		if s.Stats().Ledger["m"].OutputTokens == 0 {
			t.Error("the ledger has no usage")
		}
	}
}
