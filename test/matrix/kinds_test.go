//go:build linux

package matrix_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

const (
	// offlineVar leaves out what needs a network if it is 1.
	offlineVar = "SLUICE_OFFLINE"
	lockedDir  = "testdata/node"
	lockWithin = 5 * time.Minute
)

// locked installs the packages of a lock file, unless they are there.
func locked() error {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: run scripts/need-node, or set %s=1 to leave clients out", program, offlineVar)
		}
	}
	lock, err := os.ReadFile(filepath.Join(lockedDir, "package-lock.json"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want := []byte(hex.EncodeToString(sum[:]) + "\n")
	mark := filepath.Join(lockedDir, "node_modules", ".installed") // the last that is written
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	npm.Dir = lockedDir
	if out, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s\nThe clients come from npm: connect to a network, or set %s=1 to leave them out", err, out, offlineVar)
	}
	return os.WriteFile(mark, want, 0o600)
}

// A client of each kind passes the gate: an SDK that reads a base URL, a framework that expects another form of it, and an agent that
// reads none. make clients runs all others, at their current versions.
func TestAClientOfEachKind(t *testing.T) {
	if err := built.Watch("test/matrix"); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(offlineVar) == "1" {
		t.Logf("left out, because %s=1", offlineVar)
		return
	}
	if err := locked(); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(lockedDir)
	if err != nil {
		t.Fatal(err)
	}
	program := &tool{argv: []string{"node", "ask.mjs"}, dir: dir}
	agent := &tool{argv: []string{filepath.Join(dir, "node_modules", ".bin", "codex")}}
	for _, c := range []struct {
		setup
		tool *tool
	}{
		{setup{name: "openai", client: "sdk-openai", provider: "openai", model: "gpt-5.4", args: []string{"responses"}, trust: "NODE_EXTRA_CA_CERTS"}, program},
		{setup{name: "AI SDK", client: "sdk-anthropic", provider: "anthropic", model: "claude-sonnet-4-6", args: []string{"ai"}, trust: "NODE_EXTRA_CA_CERTS"}, program},
		{setup{name: "Codex", client: "codex", provider: "openai", agent: true, trust: "SSL_CERT_DIR"}, agent},
	} {
		for _, k := range []kind{inRun, inServe, inCompany, inPrivateCA} {
			if c.agent && k == inServe {
				continue // test/sdk has it
			}
			t.Run(c.name+" "+string(k), func(t *testing.T) {
				t.Parallel()
				if o := c.play(t, c.tool, k); len(o.wrong) > 0 {
					t.Error(strings.Join(o.wrong, "\n"))
				}
			})
		}
	}
}

// ignores speaks to its provider over a socket of its own: it reads no variable, and knows no proxy.
const ignores = `
const u = new URL(process.argv[1]), body = '{"model":"gpt-5.4","messages":[{"role":"user","content":"hi"}]}';
const c = require("net").connect(u.port, u.hostname);
c.write("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + body.length + "\r\n\r\n" + body);
c.pipe(process.stdout);
`

// A program that ignores every variable and every proxy is reported as what it is.
func TestAProgramThatIgnoresEverything(t *testing.T) {
	if os.Getenv(offlineVar) == "1" {
		t.Logf("left out, because %s=1", offlineVar)
		return
	}
	b := &bench{T: t, setup: &setup{name: "a socket", provider: "openai"}, tool: &tool{}, kind: inRun, home: t.TempDir()}
	b.world = newWorld(t, b.provider, b.perWindow(), false)
	b.configure()
	cmd := proctest.Command(t, sluiceBinary, "run", "--", "node", "-e", ignores, b.world.plain.URL)
	cmd.Env = b.env
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), says) {
		t.Fatalf("%v\n%s%s", err, out, said.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "sluice: no call passed the gate") {
		t.Errorf("run ends with %q", last)
	}
	if calls, _, _ := b.world.seen(); calls != 1 {
		t.Errorf("the provider had %d calls", calls)
	}
}
