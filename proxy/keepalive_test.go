package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
)

// heldRig returns a proxy with a paused resource that keeps streams alive.
func heldRig(t *testing.T, dialect string, every time.Duration, answer http.HandlerFunc, more ...func(*proxy.Options)) *rig {
	t.Helper()
	r := begin(t, perMinute(100), answer, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Dialect, _ = provider.Lookup(dialect)
		res.KeepAlive, res.Deadline = every, 10*time.Minute
		o.Resources["api"] = res
		for _, change := range more {
			change(o)
		}
	})
	if err := r.gate.Pause(t.Context(), "api", 5*time.Minute, "to hold it"); err != nil {
		t.Fatal(err)
	}
	return r
}

// open sends a request that will be held, with pairs of names and values for its header, and returns the response when it
// has begun.
func (r *rig) open(ctx context.Context, path, body string, header ...string) *http.Response {
	r.Helper()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.proxy.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := r.proxy.Client().Do(q)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// signs reads n identical events.
func signs(t *testing.T, in *bufio.Reader, n int, event string) {
	t.Helper()
	for range n {
		got := make([]byte, len(event))
		if _, err := io.ReadFull(in, got); err != nil || string(got) != event {
			t.Fatalf("%q %v, want %q", got, err, event)
		}
	}
}

const (
	ping    = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	blank   = "\n\n"
	comment = ": keep-alive\n\n"
	soon    = 10 * time.Millisecond
)

func TestHeldStreamIsKeptAlive(t *testing.T) {
	const messages, chat = "/@a/api/v1/messages", "/@a/api/v1/chat/completions"
	const gemini = "/@a/api/v1beta/models/m:streamGenerateContent?alt=sse"
	own := ownClients(t, "name: mine\nkind: agent\nway: base\nuser_agents: [mine/]\nkeep_alive: {openai: comment, anthropic: blank}\n")
	for name, of := range map[string]struct{ dialect, path, userAgent, sign string }{
		"anthropic":                  {"anthropic", messages, "", ping},
		"anthropic's chat":           {"anthropic", chat, "", blank}, // a ping would be a chunk without choices
		"openai":                     {"openai", chat, "", blank},
		"openai's client":            {"openai", chat, "OpenAI/Python 2.54.0", blank},
		"gemini":                     {"gemini", gemini, "", blank},
		"gemini's client":            {"gemini", gemini, "google-genai-sdk/3.3.0 gl-python/3.11.7", blank},
		"litellm":                    {"gemini", gemini, "litellm/1.106.2", blank},
		"one's own client":           {"openai", chat, "mine/1", comment},
		"one's own, another dialect": {"anthropic", messages, "mine/1", blank},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := heldRig(t, of.dialect, soon, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: {\"x\":1}\n\ndata: {\"x\":2}\n\n")
			}, func(o *proxy.Options) { o.Clients = own })
			resp := r.open(t.Context(), of.path, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"messages":[]}`, "User-Agent", of.userAgent)
			if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") || resp.Header.Get("X-Sluice-Held") != "1" {
				t.Errorf("%d %v", resp.StatusCode, resp.Header)
			}
			in := bufio.NewReader(resp.Body)
			signs(t, in, 3, of.sign)
			if err := r.gate.Resume(t.Context(), "api"); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(in)
			for strings.HasPrefix(string(rest), of.sign) {
				rest = rest[len(of.sign):]
			}
			if got := string(rest); err != nil || got != "data: {\"x\":1}\n\ndata: {\"x\":2}\n\n" {
				t.Errorf("%q %v", got, err)
			}
		})
	}
}

// ownClients returns the table with a client of one's own.
func ownClients(t *testing.T, file string) *clients.Table {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := clients.Builtin().With(dir)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// After the first keep-alive the status is 200. Later errors arrive in the stream, in the provider's format.
func TestHeldStreamIsToldOfErrors(t *testing.T) {
	for dialect, of := range map[string]struct{ path, sign, body, want string }{
		"anthropic": {
			"/@a/api/v1/messages", ping, "{\n \"type\":\"error\", \"error\":{\"type\":\"invalid_request_error\",\"message\":\"no\"}}",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"no\"}}\n\n",
		},
		"openai": {"/@a/api/v1/chat/completions", blank, `{"error":{"message":"no"}}`, "data: {\"error\":{\"message\":\"no\"}}\n\n"},
		"mistral": {
			"/@a/api/v1/chat/completions", blank, "<html>bad</html>", "Bad Request, and not with a stream",
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			r := heldRig(t, dialect, soon, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, of.body)
			})
			resp := r.open(t.Context(), of.path, `{"model":"m","stream":true,"messages":[]}`)
			in := bufio.NewReader(resp.Body)
			signs(t, in, 1, of.sign)
			if err := r.gate.Resume(t.Context(), "api"); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(in)
			if got := string(rest); err != nil || !strings.Contains(got, of.want) {
				t.Errorf("%q %v, want %q", got, err, of.want)
			}
		})
	}
}

// A gate that shuts down tells waiting streams too.
func TestHeldStreamIsToldThatTheGateEnds(t *testing.T) {
	r := heldRig(t, "anthropic", soon, hello)
	resp := r.open(t.Context(), "/@a/api/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[]}`)
	in := bufio.NewReader(resp.Body)
	signs(t, in, 1, ping)
	if err := r.gate.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if got := strings.ReplaceAll(string(rest), ping, ""); err != nil || !strings.HasPrefix(got, "event: error\ndata: {\"type\":\"error\",") || !strings.Contains(got, "sluice: ") {
		t.Errorf("%q %v", got, err)
	}
}

// A client that goes away while it is held leaves the queue.
func TestHeldStreamOfAClientThatIsGone(t *testing.T) {
	r := heldRig(t, "anthropic", soon, hello)
	ctx, leave := context.WithCancel(t.Context())
	resp := r.open(ctx, "/@a/api/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[]}`)
	signs(t, bufio.NewReader(resp.Body), 1, ping)
	if n := r.status().Waiting["p2"]; n != 1 {
		t.Errorf("%d wait", n)
	}
	leave()
	for r.status().Waiting["p2"] > 0 { // until the test's own time is over
		time.Sleep(soon)
	}
}

// Requests that are no streams, or need no keep-alive, get nothing while they wait.
func TestOnlyHeldStreamsAreKeptAlive(t *testing.T) {
	for name, of := range map[string]struct {
		dialect, path, body string
		every               time.Duration
		client              string // of Google
	}{
		"no stream": {"anthropic", "/@a/api/v1/messages", `{"model":"m","max_tokens":9,"messages":[]}`, soon, ""},
		"off":       {"anthropic", "/@a/api/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[]}`, time.Hour, ""},
		"an array":  {"gemini", "/@a/api/v1beta/models/m:streamGenerateContent", `{"contents":[]}`, soon, ""},
		"frames":    {"bedrock", "/@a/api/model/m/converse-stream", `{"messages":[]}`, soon, ""},
		"cohere":    {"cohere", "/@a/api/v2/chat", `{"model":"m","stream":true,"messages":[]}`, soon, ""},
		"a client that bears nothing": {
			"gemini", "/@a/api/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[]}`, soon, "genai-js/0.24.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := heldRig(t, of.dialect, of.every, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprint(w, "{}")
			})
			go func() {
				for r.status().Waiting["p2"] == 0 && t.Context().Err() == nil {
					time.Sleep(soon)
				}
				time.Sleep(5 * soon)
				_ = r.gate.Resume(context.Background(), "api")
			}()
			if resp := r.open(t.Context(), of.path, of.body, "X-Goog-Api-Client", of.client); resp.StatusCode != http.StatusTeapot {
				t.Errorf("%d", resp.StatusCode)
			}
		})
	}
}
