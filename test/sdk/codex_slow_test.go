//go:build slow && linux

package sdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// codexConfig points Codex to an address.
const codexConfig = `model = "gpt-6.1-sol"
model_provider = "gate"
[model_providers.gate]
name = "gate"
base_url = %q
env_key = "OPENAI_API_KEY"
wire_api = "responses"
supports_websockets = %t
`

// TestCodex: Codex from npm passes the gate, over a WebSocket and over HTTP.
func TestCodex(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), installWithin)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, "@openai/codex")
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("Codex could not be installed: %v\n%s", err, out)
	}
	for _, c := range []struct {
		name    string
		sockets bool // Codex is told that it can use them
		refuse  int  // status with which the provider refuses them; 0: it does not
	}{
		{name: "WebSocket", sockets: true},
		{name: "HTTP"},
		{name: "HTTP after a refusal", sockets: true, refuse: http.StatusUpgradeRequired},
	} {
		t.Run(c.name, func(t *testing.T) {
			var upgrades atomic.Int64
			var mock atomic.Pointer[httputil.ReverseProxy]
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Upgrade") != "" {
					upgrades.Add(1)
					if c.refuse != 0 {
						w.WriteHeader(c.refuse)
						return
					}
				}
				mock.Load().ServeHTTP(w, r)
			}))
			defer provider.Close()
			r := begin(t, openai, setup{resource: priced.resource, upstream: provider.URL})
			to, err := url.Parse(r.mock)
			if err != nil {
				t.Fatal(err)
			}
			mock.Store(httputil.NewSingleHostReverseProxy(to))
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, "config.toml"), fmt.Appendf(nil, codexConfig, r.gate+"/v1", c.sockets), 0o600); err != nil {
				t.Fatal(err)
			}
			env := append(r.env(""), "CODEX_HOME="+home)
			out := output(t, env, home, filepath.Join(dir, "node_modules", ".bin", "codex"), "exec", "--skip-git-repo-check", "Say something about rivers.")
			if len(strings.TrimSpace(string(out))) == 0 {
				t.Error("it prints nothing")
			}
			r.until("the gate counts everything", func() bool { return r.status().InFlight == 0 }) // Codex ends before its connection does
			stats, caller := r.stats(), r.caller()
			theirs := int64(0)
			for _, u := range stats.Ledger {
				theirs += u.InputTokens + u.OutputTokens
			}
			if ours := caller.Units["input_tokens"] + caller.Units["output_tokens"]; stats.Accepted == 0 || stats.Throttled != 0 || ours != theirs {
				t.Errorf("the gate counts %d tokens, the provider %d in %d responses", ours, theirs, stats.Accepted)
			}
			if sent := caller.FirstSends + caller.Retries; sent != stats.Accepted { // no warm-up, and no list of models
				t.Errorf("the gate counts %d sends, the provider %d responses", sent, stats.Accepted)
			}
			if (upgrades.Load() > 0) != c.sockets {
				t.Errorf("%d connections were to be upgraded", upgrades.Load())
			}
			t.Logf("%d responses, %d free requests; %s", stats.Accepted, stats.Free, out)
		})
	}
}
