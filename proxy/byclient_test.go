package proxy_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// named is one request, and what is counted for it.
type named struct {
	path   string
	header []string
	want   counted
}

const (
	codexAgent = "codex_exec/0.169.0 (Debian 12; x86_64)"
	openAIGo   = "OpenAI/Go 3.91.1"
	unnamed    = "proxy.test" // this program
)

// TestAgentsAreCalledByTheirClient: whoever names no agent is called by its client, in the class of those without a name.
func TestAgentsAreCalledByTheirClient(t *testing.T) {
	hash := func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }
	tokens := []proxy.Token{{Name: "any", Hash: hash("tok-any")}, {Name: "low", Hash: hash("tok-low"), Class: "p2"}, {Name: "high", Hash: hash("tok-high"), Class: "p0"}, {Name: "bob", Hash: hash("tok-bob"), Agent: "bob"}}
	for name, of := range map[string]struct {
		tokens []proxy.Token
		cases  []named
	}{
		"without tokens": {nil, []named{
			{"/api/", []string{"User-Agent", codexAgent}, counted{"codex", "p1"}}, // the configuration has p0 for it
			{"/api/", []string{"User-Agent", openAIGo}, counted{"sdk-openai", "p2"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Class", "p2"}, counted{"codex", "p2"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Class", "p0"}, counted{"codex", "p0"}}, // as with any name
			{"/@a/api/", []string{"User-Agent", codexAgent}, counted{"a", "p1"}},
			{"/@codex/api/", []string{"User-Agent", codexAgent}, counted{"codex", "p0"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Agent", "b"}, counted{"b", "p1"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Agent-Id", "c"}, counted{"c", "p1"}},
			{"/api/", []string{"User-Agent", "claude-cli/2.1.327 (external, cli)", "X-Claude-Code-Session-Id", "0123456789abcdef"}, counted{"claude-code-01234567", "p1"}},
			{"/api/", []string{"User-Agent", "curl/8.5.0"}, counted{unnamed, "p1"}},
		}},
		"with tokens": {tokens, []named{
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Token", "tok-any"}, counted{"codex", "p1"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Token", "tok-high"}, counted{"codex", "p1"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Token", "tok-bob"}, counted{"bob", "p1"}},
			{"/api/", []string{"User-Agent", codexAgent, "X-Sluice-Token", "tok-low"}, counted{unnamed, "p2"}}, // codex is above it
			{"/api/", []string{"User-Agent", openAIGo, "X-Sluice-Token", "tok-low"}, counted{"sdk-openai", "p2"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, done := classRig(t, of.tokens)
			for _, c := range of.cases {
				resp, text := r.get(c.path, c.header...)
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s %v: %d %s", c.path, c.header, resp.StatusCode, text)
					continue
				}
				if got := <-done; got != c.want {
					t.Errorf("%s %v: counted as %v, want %v", c.path, c.header, got, c.want)
				}
				if q := <-r.seen; q.UserAgent() != c.header[1] {
					t.Errorf("%s: the provider got %q", c.path, q.UserAgent())
				}
			}
		})
	}
}

// counted is how the gate has counted a request.
type counted struct{ agent, class string }

// classRig is a gate whose configuration lists codex in the highest class, one SDK in the lowest, and agents without an
// entry in the class between.
func classRig(t *testing.T, tokens []proxy.Token) (*rig, <-chan counted) {
	t.Helper()
	limits := perMinute(1000)
	gate, err := sluice.Open(t.Context(), sluice.Config{
		Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: limits}},
		Agents: map[string]sluice.Agent{"codex": {Class: "p0"}, "sdk-openai": {Class: "p2"}, "*": {Class: "p1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	done := make(chan counted, 1)
	return begin(t, limits, hello, func(o *proxy.Options) {
		o.Gate, o.Tokens = gate, tokens
		o.Done = func(e sluicehttp.Exchange) { done <- counted{e.Agent, cmp.Or(e.Class, gate.Class(e.Agent))} }
	}), done
}
