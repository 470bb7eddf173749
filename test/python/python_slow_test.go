//go:build slow && linux

package python_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

// packages are the libraries, as they were when the adapters were last changed for them.
var packages = []string{
	"aiohttp==3.14.5", "celery==5.7.0", "httpx==0.28.1", "httpx2==2.16.2", "langchain-core==1.7.2", "langchain-openai==1.7.3", "litellm==1.83.0",
	"llama-index-core==0.14.25", "openai==3.51.0", "openai-agents==0.24.0", "pydantic-ai-slim[openai]==2.68.0", "requests==2.34.2", "temporalio==1.35.0",
}

// do runs a program and returns what it prints.
func do(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	out, err := try(t, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func try(t *testing.T, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.WaitDelay = env, built.StopWithin
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// root is the repository.
const root = "../.."

// wheel builds the wheel of this machine around the binary under test.
var wheel = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-wheel")
	if err != nil {
		return "", err
	}
	target := "linux_" + runtime.GOARCH
	if err := os.Mkdir(filepath.Join(dir, target), 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, target, "THIRD_PARTY_LICENSES.txt"), []byte("texts"), 0o600); err != nil {
		return "", err
	}
	binary, err := os.ReadFile(sluiceBinary)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, target, "sluice"), binary, 0o700); err != nil { //nolint:gosec // it is run
		return "", err
	}
	cmd := exec.Command("go", "run", "./scripts/packages", "-built", "-only", "wheels", "-version", "v1.2.3", "-out", dir, "-targets", strings.Replace(target, "_", "/", 1))
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("%v, %w", files, err)
	}
	return files[0], nil
})

// environment makes a new one with the wheel and packages, and returns its directory of programs.
func environment(t *testing.T, packages ...string) string {
	t.Helper()
	file, err := wheel()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "env")
	do(t, os.Environ(), "python3", "-m", "venv", dir)
	do(t, os.Environ(), filepath.Join(dir, "bin", "pip"), append([]string{"install", "-q", "--disable-pip-version-check", file}, packages...)...)
	return filepath.Join(dir, "bin")
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// serve starts a command of sluice that listens, and returns its address.
func serve(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(sluiceBinary, append(args, "--listen", "127.0.0.1:0")...)
	cmd.Env = built.Env(home)
	line, _ := built.Serve(t, cmd)
	at := address.Find(line)
	if at == nil {
		t.Fatalf("%v says %q", args, line)
	}
	return string(at)
}

// again uses a gate whose daemon has ended because it was idle.
const again = `
import os, threading; os.environ.pop("SLUICE_URL", None)
import sluice, sluice._start as s
from sluice._exchange import Call
s.IDLE, s._listens_on_tcp = "1s", lambda: False
gate, ask = sluice.Gate(), Call("GET", "/v1/status", report=False)
gate.tell(ask)
for _ in range(600):
    if not s._listens(s.socket_path()):
        break
    threading.Event().wait(0.1)
else:
    raise SystemExit("the daemon does not end")
gate.tell(ask)
print(gate.client.url)
`

// In an environment with the wheel alone, the command runs under both names and as a module, and the client starts a daemon of its
// own, which others find.
func TestWheelInAFreshEnvironment(t *testing.T) {
	bin, home := environment(t, "uv==0.13.8"), t.TempDir()
	sockets, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(sockets) }()
	env := append(built.Env(home), "XDG_RUNTIME_DIR="+sockets)
	python := filepath.Join(bin, "python")
	for _, command := range [][]string{{filepath.Join(bin, "sluice"), "version"}, {filepath.Join(bin, "sluice-gate"), "version"}, {python, "-m", "sluice", "version"}} {
		if out := do(t, env, command[0], command[1:]...); !strings.HasPrefix(out, "sluice ") {
			t.Errorf("%v: %s", command, out)
		}
	}
	if out := do(t, env, python, "-c", "import sluice; print(sluice.__version__)"); out != "1.2.3" {
		t.Errorf("the client is %s", out)
	}
	file, _ := wheel()
	if out := do(t, env, filepath.Join(bin, "uv"), "tool", "run", "--offline", "--from", file, "sluice-gate", "version"); !strings.HasSuffix(out, do(t, env, filepath.Join(bin, "sluice"), "version")) {
		t.Errorf("uvx runs %s", out)
	}
	const start = "import os; os.environ.pop('SLUICE_URL', None)\nimport sluice, sluice._start as s; s.IDLE = '2s'; s._listens_on_tcp = lambda: False\nc = sluice.Gate().client; print(c.url, len(c.status()['resources']))"
	one, two := do(t, env, python, "-c", start), do(t, env, python, "-c", start)
	if !strings.HasPrefix(one, "unix:"+sockets) || one != two {
		t.Errorf("started %s, then %s", one, two)
	}
	if out := do(t, env, python, "-c", again); !strings.HasPrefix(out, "unix:"+sockets) {
		t.Errorf("a daemon that has ended is not started again: %s", out)
	}
	off := append(env, "SLUICE_START=off", "XDG_RUNTIME_DIR="+t.TempDir())
	if out, err := try(t, off, python, "-c", start); err == nil || !strings.Contains(out, "Unavailable") || !strings.Contains(out, "sluice serve") {
		t.Errorf("%v %s", err, out)
	}
}

const gate = `
resources:
  openai: {provider: openai, upstream: "%s", limits: [%s]}
  single: {limits: [{name: inflight, concurrency: 1}]}
  none-left: {limits: [{name: hour, size: 1/h}], light: "off", breaker: "off"}
`

// begin starts a provider and a gate before it, and returns the environment of programs and the provider's address.
func begin(t *testing.T, limits string, mock ...string) (env []string, provider string) {
	t.Helper()
	home := t.TempDir()
	provider = serve(t, home, append([]string{"mock", "openai"}, mock...)...)
	file := filepath.Join(home, "sluice.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, gate, provider, limits), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, home, "serve", "--config", file, "--store", "file:"+filepath.Join(home, "state"))
	return append(built.Env(home), "SLUICE_URL="+url, "TEST_OPENAI_URL="+provider+"/v1", "OPENAI_BASE_URL="+provider+"/v1", "OPENAI_API_KEY=k"), provider
}

// The lines of docs/python.md run against the real packages, and their calls pass the gate. 200 calls at once of two programs, one with
// LangChain and one with OpenAI's SDK, get no 429 from a provider whose limits are stated, and at most three if nobody stated them.
func TestTheRealPackages(t *testing.T) {
	bin := environment(t, packages...)
	python := filepath.Join(bin, "python")
	t.Run("lines", func(t *testing.T) {
		env, _ := begin(t, "{name: out, size: 10000000/min, unit: output_tokens}, {name: places, concurrency: 1000}", "--requests", "10000/min")
		t.Log(do(t, env, python, "-B", "lines.py", "-v"))
	})
	for name, c := range map[string]struct {
		limits string
		most   int
	}{"stated": {"{name: window, size: 50/4s}", 0}, "unstated": {"", 3}} {
		t.Run(name, func(t *testing.T) {
			env, provider := begin(t, c.limits, "--requests", "50/4s", "--algorithm", "rolling", "--latency", "50ms")
			var both sync.WaitGroup
			for _, program := range []string{"langchain", "openai"} {
				both.Go(func() {
					if out, err := try(t, env, python, "-B", "both.py", program); err != nil {
						t.Errorf("%s: %v\n%s", program, err, out)
					}
				})
			}
			both.Wait()
			var stats struct {
				Accepted, Throttled int
				ByAgent             map[string]int `json:"by_agent"`
			}
			resp, err := http.Get(provider + "/_mock/stats") //nolint:noctx // a test
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			text, _ := io.ReadAll(resp.Body)
			if err := json.Unmarshal(text, &stats); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			t.Logf("%d accepted, %d throttled", stats.Accepted, stats.Throttled)
			if stats.Accepted != 200 || stats.ByAgent["langchain"] < 100 || stats.ByAgent["openai"] < 100 || stats.Throttled > c.most {
				t.Errorf("%s", text)
			}
		})
	}
}
