//go:build linux

package matrix_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy/forward"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// bedrockHost is where Bedrock is in one region.
const bedrockHost = "bedrock-runtime.us-east-1.amazonaws.com"

// tokens are those that went in and came out.
type tokens struct{ in, out int64 }

// world is a strict provider, and the ways to it.
type world struct {
	host       string // of the provider
	states     bool   // the provider states its limits
	plain, tls *httptest.Server
	company    *company
	trusted    string // file with the authority of tls, alone in its directory

	model *mock.Server
	serve http.Handler
	blind bool

	mu   sync.Mutex
	own  tokens // counted here, by models without books
	odd  []string
	free bool // the model keeps no books
}

// newWorld starts a provider that allows so many calls of a model in any five seconds. A blind one does not state it.
func newWorld(t *testing.T, name string, perWindow int64, blind bool) *world {
	t.Helper()
	w := &world{blind: blind, host: bedrockHost}
	d, _ := provider.Lookup(name)
	if s, ok := d.(provider.Speaker); ok && s.Address() != "" {
		u, err := url.Parse(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		w.host = u.Host
	}
	kind := map[string]string{"anthropic": "anthropic", "gemini": "gemini", "github": "github", "cohere": "generic", "bedrock": "generic"}[name]
	if kind == "" {
		kind = "openai"
	}
	w.states = slices.Contains([]string{"anthropic", "openai", "github"}, name)
	if !w.states {
		w.blind = true // Groq's headers speak of a day, not of a few seconds; the configuration states the limit
	}
	var err error
	w.model, err = mock.New(mock.Options{Provider: kind, Requests: sim.Rate{N: perWindow, Window: 5 * time.Second}, Says: says})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Close)
	w.serve = w.model
	switch {
	case name == "groq":
		w.serve = http.StripPrefix("/openai", stating(w.model, asGroqDoes))
	case name == "mistral":
		w.serve = stating(w.model, asMistralDoes)
	case kind == "openai" && name != "openai":
		w.serve = stating(w.model, func(event []byte) []byte { return event })
	case name == "cohere":
		w.serve, w.free = w.admitted(cohere), true
	case name == "bedrock":
		w.serve, w.free = w.admitted(converse), true
	}
	authority, err := forward.NewAuthority("stands for the world", []string{w.host, "127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.trusted = filepath.Join(t.TempDir(), "world.pem")
	if err := os.WriteFile(w.trusted, authority.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	w.plain = httptest.NewServer(w)
	t.Cleanup(w.plain.Close)
	w.tls = httptest.NewUnstartedServer(w)
	w.tls.EnableHTTP2 = true
	w.tls.TLS = &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if h.ServerName == "" {
			return authority.Leaf("127.0.0.1")
		}
		return authority.Leaf(h.ServerName)
	}}
	var own []tls.Certificate // httptest adds one of its own to an empty list
	for _, host := range []string{"127.0.0.1", w.host} {
		leaf, err := authority.Leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, *leaf)
	}
	w.tls.TLS.Certificates = own
	w.tls.StartTLS()
	t.Cleanup(w.tls.Close)
	w.company = newCompany(t, w.host+":443", w.tls.Listener.Addr().String())
	return w
}

// ServeHTTP answers as the provider does, and notes what it cannot answer.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" {
		w.serve.ServeHTTP(rw, r)
		return
	}
	seen := &watched{ResponseWriter: rw, blind: w.blind}
	w.serve.ServeHTTP(seen, r)
	if seen.status >= http.StatusBadRequest {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.odd = append(w.odd, fmt.Sprintf("%s %s (%d)", r.Method, r.URL.Path, seen.status))
	}
}

// seen returns how many calls the provider answered and refused, and their tokens.
func (w *world) seen() (calls, refused int64, all tokens) {
	s := w.model.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	all = w.own
	if !w.free {
		for _, u := range s.Ledger {
			all.in += u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
			all.out += u.OutputTokens
		}
	}
	return s.Accepted, s.Throttled, all
}

// strange lists the requests that the provider did not answer well.
func (w *world) strange() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.odd)
}

// watched notes the status, and leaves out what states limits if it is blind.
type watched struct {
	http.ResponseWriter
	blind  bool
	status int
}

func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

func (w *watched) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

func (w *watched) WriteHeader(status int) {
	w.status = status
	if w.blind {
		for name := range w.Header() {
			if strings.Contains(strings.ToLower(name), "ratelimit") {
				w.Header().Del(name)
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// stating answers like providers that state the usage at the end of every stream, asked or not. change rewrites each event.
func stating(next http.Handler, change func(event []byte) []byte) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(body, &all) == nil && string(all["stream"]) == "true" {
			all["stream_options"] = json.RawMessage(`{"include_usage":true}`)
			body, _ = json.Marshal(all) // as it was read
		}
		q := r.Clone(r.Context())
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(rewriting{rw, change}, q)
	}
}

// rewriting changes what is written.
type rewriting struct {
	http.ResponseWriter
	change func([]byte) []byte
}

func (w rewriting) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w rewriting) Write(p []byte) (int, error) {
	_, err := w.ResponseWriter.Write(w.change(p))
	return len(p), err
}

// lastUsage is the usage at the end of a stream.
var lastUsage = regexp.MustCompile(`"choices":\[\],"usage":(\{.*\})\}`)

// asGroqDoes moves the usage of a stream to where Groq states it.
func asGroqDoes(event []byte) []byte {
	return lastUsage.ReplaceAll(event, []byte(`"choices":[],"x_groq":{"id":"req_heron","usage":$1}}`))
}

// asMistralDoes states the usage of a stream beside its last choice.
func asMistralDoes(event []byte) []byte {
	event = bytes.ReplaceAll(event, []byte(`,"usage":null`), nil)
	return lastUsage.ReplaceAll(event, []byte(`"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":$1}`))
}

// admitted answers what the model's limit lets in. It counts the tokens itself.
func (w *world) admitted(answer func(rw http.ResponseWriter, path string, stream bool, used tokens) bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		first := httptest.NewRecorder()
		q := r.Clone(r.Context())
		q.Body = io.NopCloser(bytes.NewReader(body))
		w.model.ServeHTTP(first, q)
		if first.Code == http.StatusTooManyRequests {
			rw.Header().Set("Retry-After", first.Header().Get("Retry-After"))
			http.Error(rw, `{"message":"too many requests"}`, first.Code)
			return
		}
		var asked struct{ Stream bool }
		_ = json.Unmarshal(body, &asked) // Bedrock's have no such field
		used := tokens{int64(len(body)), int64(len(strings.Fields(says)))}
		if !answer(rw, r.URL.Path, asked.Stream, used) {
			http.Error(rw, `{"message":"not found"}`, http.StatusNotFound)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.own.in += used.in
		w.own.out += used.out
	}
}

// cohere answers a chat of Cohere's second version.
func cohere(w http.ResponseWriter, path string, stream bool, used tokens) bool {
	if path != "/v2/chat" {
		return false
	}
	usage := fmt.Sprintf(`{"billed_units":{"input_tokens":%[1]d,"output_tokens":%[2]d},"tokens":{"input_tokens":%[1]d,"output_tokens":%[2]d}}`, used.in, used.out)
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"heron","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":%q}]},"usage":%s}`, says, usage)
		return true
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind, rest string) { fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, rest) }
	event("message-start", `"id":"heron","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}`)
	event("content-start", `"index":0,"delta":{"message":{"content":{"type":"text","text":""}}}`)
	for i, word := range strings.Fields(says) {
		if i > 0 {
			word = " " + word
		}
		event("content-delta", fmt.Sprintf(`"index":0,"delta":{"message":{"content":{"text":%q}}}`, word))
		_ = http.NewResponseController(w).Flush()
	}
	event("content-end", `"index":0`)
	event("message-end", `"delta":{"finish_reason":"COMPLETE","usage":`+usage+`}`)
	return true
}

// converse answers Bedrock's operation Converse.
func converse(w http.ResponseWriter, path string, _ bool, used tokens) bool {
	if !strings.HasPrefix(path, "/model/") || !strings.HasSuffix(path, "/converse") {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"output":{"message":{"role":"assistant","content":[{"text":%q}]}},"stopReason":"end_turn","usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d},"metrics":{"latencyMs":1}}`,
		says, used.in, used.out, used.in+used.out)
	return true
}

// company is a proxy with credentials. It leads to the provider, and nowhere else.
type company struct {
	*httptest.Server
	to, at string
}

func newCompany(t *testing.T, to, at string) *company {
	c := &company{to: to, at: at}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// address returns the proxy's address with credentials.
func (c *company) address() string { return strings.Replace(c.URL, "http://", "http://me:secret@", 1) }

func (c *company) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:secret")):
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	case r.Method != http.MethodConnect || r.Host != c.to:
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	there, err := net.Dial("tcp", c.at)
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
