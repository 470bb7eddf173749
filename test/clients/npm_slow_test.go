//go:build slow && linux

package clients_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// newNode is what current packages need.
const newNode = "22.23.3"

// gateForAdapters is the configuration of the daemon that the adapters ask. The provider takes 120 requests a second.
const gateForAdapters = `
resources:
  openai: {provider: openai, upstream: "%mock%", abort: free, limits: [{name: own, size: 100/s}, {name: inflight, concurrency: 50}], light: "off", breaker: "off"}
  api: {limits: [{name: inflight, concurrency: 10}], light: "off", breaker: "off"}
  place: {limits: [{name: inflight, concurrency: 1}], light: "off", breaker: "off"}
`

// The packages for npm install into an empty project: npx runs the command, scripts go through it, and every line of docs/typescript.md
// works with the real packages that it names.
func TestNPMPackages(t *testing.T) {
	dist, app := t.TempDir(), copied(t, "testdata/npm")
	app = filepath.Join(app, "npm")
	do(t, "../..", "go", "run", "./scripts/packages", "-only", "npm", "-version", "v0.1.0", "-targets", runtime.GOOS+"/"+runtime.GOARCH, "-out", dist)
	tarballs, err := filepath.Glob(filepath.Join(dist, "*.tgz"))
	if err != nil || len(tarballs) != 2 {
		t.Fatal(tarballs, err)
	}
	node := "node-linux-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	do(t, app, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", node + "@" + newNode}, tarballs...)...)
	for _, path := range []string{"LICENSE", "../sluice-linux-" + strings.TrimPrefix(node, "node-linux-") + "/LICENSE"} {
		same(t, filepath.Join(app, "node_modules/@sluicehq/sluice", path), "../../LICENSE")
	}
	if said := do(t, app, "npx", "sluice", "version"); !strings.Contains(said, "sluice v0.1.0 ") {
		t.Errorf("npx sluice version says %q", said)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", os.Getenv("HOME"))
	script := "const { Client } = require('@sluicehq/sluice'); console.log(typeof Client, process.env.SLUICE_AGENT)"
	if err := os.WriteFile(filepath.Join(app, "script.cjs"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := do(t, app, "npx", "@sluicehq/sluice", "run", "--quiet", "--agent", "me", "--", "node", "script.cjs"); !strings.Contains(said, "function me") {
		t.Errorf("npx @sluicehq/sluice run says %q", said)
	}

	redis, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	command := exec.Command(sluiceBinary, "mock", "openai", "--listen", "127.0.0.1:0", "--requests", "120/s", "--latency", "20ms", "--json")
	command.Env = built.Env(t.TempDir())
	line, _ := built.Serve(t, command)
	var mock struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(line, &mock); err != nil || mock.URL == "" {
		t.Fatalf("%s %v", line, err)
	}
	gate := serve(t, strings.ReplaceAll(gateForAdapters, "%mock%", mock.URL))
	page, err := filepath.Abs("../../docs/typescript.md")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	tests := exec.CommandContext(ctx, filepath.Join(app, "node_modules", node, "bin", "node"), "--test", "lines.test.mjs")
	tests.Dir, tests.WaitDelay = app, built.StopWithin
	tests.Env = built.Env(t.TempDir(), "SLUICE_URL="+gate.url, "OPENAI_BASE_URL="+mock.URL+"/v1", "OPENAI_API_KEY=k", "TEST_REDIS="+redis.URL(), "TEST_PAGE="+page)
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
