//go:build slow && linux

package intercept_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/proxy/forward"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

const installWithin = 10 * time.Minute

// install runs an installer in a directory of its own, which it returns.
func install(t *testing.T, name string, argv ...string) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), installWithin)
	defer cancel()
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, "DIR", dir)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s could not be installed: %v\n%s", name, err, out)
	}
	return dir
}

// npm installs packages of npm and returns the directory of modules.
func npm(t *testing.T, packages ...string) string {
	t.Helper()
	dir := install(t, packages[0], append([]string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", "DIR"}, packages...)...)
	return filepath.Join(dir, "node_modules")
}

// platform is what npm calls this one.
func platform(t *testing.T) string {
	t.Helper()
	arch, known := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if !known {
		t.Fatalf("npm has no such package for %s", runtime.GOARCH)
	}
	return runtime.GOOS + "-" + arch
}

// pip installs packages of PyPI and returns where Python finds them.
func pip(t *testing.T, packages ...string) string {
	t.Helper()
	return install(t, packages[0], append([]string{"python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "DIR"}, packages...)...)
}

const viaRequests = `
import os, requests
s = requests.Session()
for i in range(3):
    print(s.post("https://api.openai.com/v1/things", data='` + call + `', headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}).text, end="")
`

const viaFetch = `
for (let i = 0; i < 3; i++) {
  const r = await fetch("https://api.openai.com/v1/things", {method: "POST", body: '` + call + `', headers: {authorization: "Bearer " + process.env.OPENAI_API_KEY}});
  process.stdout.write(await r.text());
}
`

// fetch runs Node's fetch with one of its versions.
func (r *rig) fetch(node string) {
	r.Helper()
	file := filepath.Join(r.home, "program.mjs")
	if err := os.WriteFile(file, []byte(viaFetch), 0o600); err != nil {
		r.Fatal(err)
	}
	if got := r.intercepted(node, file); got != strings.Repeat("provider POST /v1/things\n", 3) {
		r.Errorf("it prints %q", got)
	}
	if _, _, withKey := r.provider.got(); r.sent("openai") != 3 || withKey != 3 {
		r.Errorf("the gate sent %d, the provider got %d with a key", r.sent("openai"), withKey)
	}
}

func TestNodeFetchFromNPM(t *testing.T) {
	t.Parallel()
	node := filepath.Join(npm(t, "node-"+platform(t)+"@24"), "node-"+platform(t), "bin", "node")
	begin(t, nil, "").fetch(node)
}

func TestRequestsFromPyPI(t *testing.T) {
	t.Parallel()
	dir := pip(t, "requests")
	r := begin(t, nil, "")
	r.env = append(r.env, "PYTHONPATH="+dir)
	if got := r.python(viaRequests); got != strings.Repeat("provider POST /v1/things\n", 3) {
		t.Errorf("it prints %q", got)
	}
	if n := r.sent("openai"); n != 3 {
		t.Errorf("the gate sent %d", n)
	}
}

const bedrockHost = "bedrock-runtime.us-east-1.amazonaws.com"

const viaBoto = `
import boto3
c = boto3.client("bedrock-runtime", region_name="us-east-1", aws_access_key_id="AKIAEXAMPLE", aws_secret_access_key="canary-key-of-nobody")
for i in range(3):
    print(c.converse(modelId="amazon.nova-lite-v1:0", messages=[{"role": "user", "content": [{"text": "hi"}]}])["output"]["message"]["content"][0]["text"])
`

// boto3 calls Bedrock at its real address. A proxy of the environment leads that to a server here, so the gate's own way out is
// through a proxy too.
func TestBoto3(t *testing.T) {
	t.Parallel()
	dir := pip(t, "boto3")
	aws, err := forward.NewAuthority("stands for Amazon's", []string{bedrockHost}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := aws.Leaf(bedrockHost)
	if err != nil {
		t.Fatal(err)
	}
	signed := make(chan bool, 100)
	bedrock := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		signed <- strings.HasPrefix(q.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ") && q.Host == bedrockHost
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`)
	}))
	bedrock.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	bedrock.StartTLS()
	t.Cleanup(bedrock.Close)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect || q.Host != bedrockHost+":443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", bedrock.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		here, rw, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, rw); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(between.Close)
	r := begin(t, nil, "  bedrock: {provider: bedrock, upstream: 'https://"+bedrockHost+"', limits: [{name: minute, size: 60/min}]}\n")
	trusted := filepath.Join(r.home, "aws.pem")
	if err := os.WriteFile(trusted, aws.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append(r.env, "PYTHONPATH="+dir, "HTTPS_PROXY="+between.URL, "SSL_CERT_FILE="+trusted)
	program := filepath.Join(t.TempDir(), "boto.py") // it has the key: not where keys are looked for
	if err := os.WriteFile(program, []byte(viaBoto), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.intercepted("python3", program); got != "hello\nhello\nhello\n" {
		t.Errorf("it prints %q", got)
	}
	if n := r.sent("bedrock"); n != 3 || len(signed) != 3 || !<-signed {
		t.Errorf("the gate sent %d, %d arrived", n, len(signed))
	}
}

func TestGitHubCLI(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gh"); err != nil {
		t.Fatal("gh is missing: run scripts/need-intercept-tools gh")
	}
	r := begin(t, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"login":"me","path":%q}`, q.URL.Path)
	}), "")
	if got := r.intercepted("gh", "api", "user", "--jq", ".login + .path"); got != "me/user\n" {
		t.Errorf("gh api prints %q", got)
	}
	if _, _, withKey := r.provider.got(); r.sent("github") != 1 || withKey != 1 {
		t.Errorf("the gate sent %d, the provider got the token %d times", r.sent("github"), withKey)
	}
}

// Claude Code, as npm has it, knows no base URL and passes the gate.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	claude := filepath.Join(npm(t, "@anthropic-ai/claude-code"), "@anthropic-ai", "claude-code-"+platform(t), "claude")
	provider, err := mock.New(mock.Options{Provider: "anthropic", Requests: sim.Rate{N: 1000, Window: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	r := begin(t, provider, "")
	r.env = append(r.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CONFIG_DIR="+t.TempDir())
	got := r.intercepted(claude, "-p", "Say a word.", "--output-format", "text")
	requests, refused, withKey := r.provider.got()
	messages := 0
	for _, q := range requests {
		if strings.HasPrefix(q, "POST /v1/messages") {
			messages++
		}
	}
	if got == "" || messages == 0 || refused != 0 || withKey == 0 || r.sent("anthropic") < messages {
		t.Errorf("it prints %q; the provider got %q, the key %d times; the gate sent %d", got, requests, withKey, r.sent("anthropic"))
	}
}

// On a subscription Claude Code works as usual, and the gate knows from its answers how the windows stand.
func TestClaudeCodeOnASubscription(t *testing.T) {
	t.Parallel()
	claude := filepath.Join(npm(t, "@anthropic-ai/claude-code"), "@anthropic-ai", "claude-code-"+platform(t), "claude")
	provider, err := mock.New(mock.Options{Provider: "anthropic", Plan: []mock.Window{{Length: 5 * time.Hour, Tokens: 1_000_000}, {Length: 7 * 24 * time.Hour, Tokens: 10_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	r := begin(t, provider, "")
	r.env = append(r.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CONFIG_DIR="+t.TempDir())
	got := r.intercepted(claude, "-p", "Say a word.", "--output-format", "text")
	requests, refused, _ := r.provider.got()
	if got == "" || refused != 0 {
		t.Errorf("it prints %q; the provider got %q and refused %d", got, requests, refused)
	}
	status, _ := r.sluice(0, "status")
	for _, want := range []string{"5 h window", "7-day window", "% used, resets in"} {
		if !strings.Contains(status, want) {
			t.Errorf("status does not say %q:\n%s", want, status)
		}
	}
}

const viaJava = `
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

public class Ask {
	public static void main(String[] at) throws Exception {
		HttpClient client = HttpClient.newHttpClient();
		for (int i = 0; i < at.length; i++) {
			HttpRequest.Builder ask = HttpRequest.newBuilder(URI.create(at[i])).header("Authorization", "Bearer " + System.getenv("OPENAI_API_KEY"));
			if (i > 0) {
				ask.header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString("{\"model\": \"gpt-5\"}"));
			}
			System.out.println(client.send(ask.build(), HttpResponse.BodyHandlers.ofString()).statusCode());
		}
	}
}
`

// Java's HttpClient, as it is without settings, offers HTTP/2 with each plain request. Its calls to the API and to a provider
// succeed.
func TestJavaHTTPClient(t *testing.T) {
	t.Parallel()
	need(t, "java")
	r := begin(t, nil, "")
	at := r.serve(nil, "--listen", "127.0.0.1:0").Listen[0]
	program := filepath.Join(r.home, "Ask.java")
	if err := os.WriteFile(program, []byte(viaJava), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, "java", program, at+"/v1/status", at+"/openai/v1/chat/completions", at+"/openai/v1/chat/completions")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "OPENAI_API_KEY=" + canary}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "200\n200\n200\n" {
		t.Errorf("%q %v", out, err)
	}
	if n := r.sent("openai"); n != 2 {
		t.Errorf("the gate counted %d", n)
	}
}
