//go:build linux || darwin

package clients_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// What the tests' tokens are. Bob's is for one agent and the lowest class.
const (
	anyToken = "test-token-of-anybody"
	lowToken = "test-token-of-bob"
)

// gate is the configuration. Each case has resources of its own.
const gate = `
resources:
  wide: {limits: [{name: inflight, concurrency: 1000}]}
  hourly: {limits: [{name: hour, size: 2/h}], light: "off", breaker: "off"}
  rule: {limits: [{name: inflight, concurrency: 1}, {name: hour, size: 1000/h}], guard: "off", light: "off", breaker: "off"}
  place: {limits: [{name: inflight, concurrency: 1}]}
  aborted: {limits: [{name: inflight, concurrency: 1}]}
  crowd: {limits: [{name: inflight, concurrency: 3}]}
  tasks: {limits: [{name: inflight, concurrency: 2}]}
  paused: {limits: [{name: inflight, concurrency: 10}]}
  throttled: {limits: [{name: inflight, concurrency: 10}]}
  hub: {provider: github, limits: [{name: inflight, concurrency: 10}]}
  sends: {provider: openai, abort: free, limits: [{name: inflight, concurrency: 1}, {name: input, unit: input_tokens, size: 1000000/h}], guard: "off", light: "off", breaker: "off"}
  again: {limits: [{name: inflight, concurrency: 5}], light: "off", breaker: "off"}
  models: {provider: anthropic, limits: [{name: inflight, concurrency: 10}]}
  single: {limits: [{name: inflight, concurrency: 1}]}
  chats: {provider: openai, abort: free, upstream: "http://chats.invalid", limits: [{name: inflight, concurrency: 100}, {name: tokens, size: 10000000/min, unit: output_tokens}], light: "off", breaker: "off", backoff: {start: 1s}}
budgets: [{name: each, per: agent, size: 100 usd/day}]
routes: {simple: [wide/small]}
shares: "off"
`

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

const bearers = "tokens: [{name: any, hash: %any%}, {name: low, hash: %low%, agent: bob, class: p2}]\n"

func guarded() string {
	return gate + strings.NewReplacer("%any%", hash(anyToken), "%low%", hash(lowToken)).Replace(bearers)
}

// daemon is one that runs.
type daemon struct {
	url  string
	home string // of its configuration and state
	stop func()
}

// serve starts a daemon with a file store of its own. It is stopped when the test ends, if not before.
func serve(t *testing.T, config string, more ...string) *daemon {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "sluice.yaml")
	if err := os.WriteFile(file, []byte("store: file:"+filepath.Join(home, "state")+"\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--json"}, more...)
	cmd := exec.Command(sluiceBinary, args...)
	cmd.Env = built.Env(home)
	line, stop := built.Serve(t, cmd)
	var said struct{ Listen []string }
	if err := json.Unmarshal(line, &said); err != nil || len(said.Listen) == 0 {
		t.Fatalf("sluice serve says %q", line)
	}
	return &daemon{url: said.Listen[0], home: home, stop: stop}
}
