//go:build linux

package intercept_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// served is what sluice serve --json says.
type served struct {
	Listen      []string
	Forward, CA string
}

// serve starts sluice serve, with further variables, until the test ends.
func (r *rig) serve(env []string, args ...string) (said served) {
	r.Helper()
	cmd := exec.Command(sluiceBinary, append([]string{"serve", "--json"}, args...)...)
	cmd.Env = append(r.env, env...)
	line, _ := built.Serve(r.T, cmd)
	if err := json.Unmarshal(line, &said); err != nil {
		r.Fatalf("%q: %v", line, err)
	}
	return said
}

// curl runs curl without sluice around it, with a proxy and an authority that it trusts. It returns what it prints, with the status of CONNECT.
func (r *rig) curl(proxy, ca string, more ...string) string {
	r.Helper()
	cmd := proctest.Command(r.T, "curl", append([]string{"-sS", "-w", "%{http_connect}", "-x", proxy, "--cacert", ca}, more...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home}
	out, _ := cmd.CombinedOutput() // how it failed is what it prints
	return string(out)
}

// The forward proxy of serve needs a token, keeps its authority in the state directory, and takes a new one while it runs.
func TestServeForward(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	const token = "token-of-the-indexer"
	sum := sha256.Sum256([]byte(token))
	r := begin(t, nil, fmt.Sprintf("tokens: [{name: one, class: p1, agent: indexer, hash: %s}]\n", hex.EncodeToString(sum[:])))
	r.sluice(69, "ca", "show") // there is none yet
	said := r.serve(nil, "--listen", "127.0.0.1:0", "--forward-listen", "127.0.0.1:0")
	at, err := url.Parse(said.Forward)
	if err != nil || at.Host == "" || len(said.CA) != 64 {
		t.Fatalf("serve says %+v", said)
	}
	ca := filepath.Join(r.home, "gate.pem")
	keep := func() {
		t.Helper()
		out, _ := r.sluice(0, "ca", "show")
		if strings.Contains(out, "PRIVATE") || !strings.Contains(out, "api.openai.com") {
			t.Errorf("ca show prints %s", out)
		}
		if err := os.WriteFile(ca, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	proxy := func(user string) string { return "http://" + user + "@" + at.Host }
	const models = "https://api.openai.com/v1/models"
	for user, want := range map[string]string{
		"indexer:" + token:    "provider GET /v1/models\n200",
		":" + token:           "provider GET /v1/models\n200",
		token + ":":           "provider GET /v1/models\n200",
		"indexer:p2:" + token: "provider GET /v1/models\n200",
		"indexer:wrong":       "407",
		"nobody:":             "407",
	} {
		if got := r.curl(proxy(user), ca, models); !strings.HasSuffix(got, want) {
			t.Errorf("as %s: %q", user, got)
		}
	}
	if got := r.curl(proxy("other:"+token), ca, models); !strings.Contains(got, "the token is agent indexer's") {
		t.Errorf("as another agent: %q", got)
	}
	if got := r.curl(said.Forward, ca, "https://"+r.otherAt()+"/"); !strings.HasSuffix(got, "407") {
		t.Errorf("a tunnel without a token: %q", got)
	}
	if got := r.curl(proxy("indexer:"+token), filepath.Join(r.home, "world.pem"), "https://"+r.otherAt()+"/x"); got != "other /x\n200" {
		t.Errorf("a tunnel: %q", got)
	}
	info, err := os.Stat(filepath.Join(r.home, "state", "ca.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the authority's file: %v, %v", info, err)
	}
	var rotated struct{ SHA256, File string }
	out, _ := r.sluice(0, "ca", "rotate", "--json")
	if err := json.Unmarshal([]byte(out), &rotated); err != nil || rotated.SHA256 == said.CA || strings.Contains(out, "PRIVATE") {
		t.Errorf("ca rotate prints %s, %v", out, err)
	}
	keep()
	for end := time.Now().Add(proctest.Patience); ; time.Sleep(100 * time.Millisecond) { // it looks at the file every few seconds
		got := r.curl(proxy("indexer:"+token), ca, models)
		if got == "provider GET /v1/models\n200" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("with the new authority: %q", got)
		}
	}
}

// With a certificate clients speak TLS to the proxy itself. A run's command needs no token, whatever the configuration says.
func TestServeForwardOverTLS(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("token"))
	r := begin(t, nil, fmt.Sprintf("tokens: [{name: one, class: p1, hash: %s}]\n", hex.EncodeToString(sum[:])))
	world, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := world.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // not where keys are looked for
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := r.serve(nil, "--listen", "127.0.0.1:0", "--forward-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	at, err := url.Parse(said.Forward)
	if err != nil || at.Scheme != "https" {
		t.Fatalf("serve says %+v", said)
	}
	at.User = url.UserPassword("walker", "token")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(world.Certificate())
	out, _ := r.sluice(0, "ca", "show")
	roots.AppendCertsFromPEM([]byte(out))
	way := &http.Transport{Proxy: http.ProxyURL(at), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer way.CloseIdleConnections()
	resp, err := (&http.Client{Transport: way, Timeout: proctest.Patience}).Get("https://api.openai.com/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if _ = resp.Body.Close(); err != nil || string(text) != "provider GET /v1/models\n" || resp.ProtoMajor != 2 {
		t.Errorf("%s %q, %v", resp.Proto, text, err)
	}
	need(t, "curl")
	if got := r.intercepted("curl", "-sS", "https://api.openai.com/v1/models"); got != "provider GET /v1/models\n" {
		t.Errorf("a run without a token: %q", got)
	}
}

// Without tokens the forward proxy is for this machine alone.
func TestServeForwardWithoutTokens(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	_, stderr := r.sluice(64, "serve", "--listen", "127.0.0.1:0", "--forward-listen", "0.0.0.0:0")
	if !strings.Contains(stderr, "there are no tokens") || !strings.Contains(stderr, "hint: ") {
		t.Errorf("it says %s", stderr)
	}
	r.sluice(64, "serve", "--only-gated")
	// It must not be its own proxy, whatever the environment says.
	said := r.serve([]string{"HTTPS_PROXY=http://127.0.0.1:1"}, "--listen", "127.0.0.1:0", "--forward-listen", "127.0.0.1:0", "--tunnel", "api.groq.com", "--only-gated")
	ca := filepath.Join(r.home, "gate.pem")
	out, _ := r.sluice(0, "ca", "show")
	if err := os.WriteFile(ca, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := r.curl(strings.Replace(said.Forward, "//", "//walker:p1@", 1), ca, "-d", call, "https://api.openai.com/v1/embeddings"); got != "provider POST /v1/embeddings\n200" {
		t.Errorf("without tokens: %q", got)
	}
	if got := r.curl(said.Forward, ca, "https://api.groq.com/v1/models"); !strings.HasSuffix(got, "403") {
		t.Errorf("a host that is left out, with --only-gated: %q", got)
	}
	if out, _ := r.sluice(0, "report", "--json"); !strings.Contains(out, `"walker"`) {
		t.Errorf("the report has %s", out)
	}
}

// curl --http2 offers HTTP/2 with a plain request. The proxy, the API and the forward proxy answer it in HTTP/1.1.
func TestCurlOffersHTTP2(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	said := r.serve(nil, "--listen", "127.0.0.1:0", "--forward-listen", "127.0.0.1:0")
	for _, argv := range [][]string{
		{said.Listen[0] + "/openai/v1/chat/completions", "-d", `{"model": "gpt-5"}`},
		{said.Listen[0] + "/v1/status"},
		{strings.Replace(r.provider.URL, "https://", "http://", 1) + "/v1/models", "-x", said.Forward},
	} {
		cmd := proctest.Command(t, "curl", append([]string{"-sS", "--http2", "-o", os.DevNull, "-w", "%{http_code} %{http_version}", "-H", "Authorization: Bearer " + canary}, argv...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "200 1.1" {
			t.Errorf("%q: %q %v", argv, out, err)
		}
	}
}
