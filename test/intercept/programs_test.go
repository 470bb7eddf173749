//go:build linux

package intercept_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// sent asks the gate how many requests a resource has sent.
func (r *rig) sent(resource string) (n int) {
	r.Helper()
	out, _ := r.sluice(0, "status", "--json")
	var s struct {
		Resources []struct {
			Name            string
			Sent, Throttled int
		}
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		r.Fatal(err)
	}
	for _, x := range s.Resources {
		if x.Name == resource {
			n = x.Sent
		}
	}
	return n
}

// call is a body that names a model. Without one, a request is not metered and takes no turn.
const call = `{"model": "m"}`

func TestCurl(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	auth := "Authorization: Bearer " + canary
	for _, version := range []string{"--http1.1", "--http2"} {
		got := r.intercepted("curl", "-sS", version, "-H", auth, "-d", call, "https://api.openai.com/v1/embeddings?a=b")
		if got != "provider POST /v1/embeddings?a=b\n" {
			t.Errorf("%s: %q", version, got)
		}
	}
	if got := r.intercepted("curl", "-sS", "https://"+r.otherAt()+"/x"); got != "other /x\n" {
		t.Errorf("another host: %q", got)
	}
	_, refused, withKey := r.provider.got()
	if n := r.sent("openai"); n != 2 || refused != 0 || withKey != 2 {
		t.Errorf("the gate sent %d, the provider refused %d and got the key %d times", n, refused, withKey)
	}
	r.sluice(56, "run", "--intercept", "--only-gated", "--quiet", "--", "curl", "-sS", "https://elsewhere.test/") // CONNECT refused
	if _, stderr := r.sluice(64, "run", "--intercept", "--tunnel", "api.opena.com", "--", "true"); !strings.Contains(stderr, "api.openai.com") {
		t.Errorf("--tunnel with a mistake: %s", stderr)
	}
	r.sluice(64, "run", "--only-gated", "--", "true")
	r.sluice(64, "run", "--intercept", "--no-gate", "--", "true")
}

// Git clones over HTTPS, from an address that is gated as an upstream of the configuration.
func TestGit(t *testing.T) {
	t.Parallel()
	need(t, "git")
	where, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(where)), "git-http-backend")
	if _, missing := os.Stat(backend); err != nil || missing != nil {
		t.Fatal("git-http-backend is missing; it comes with git")
	}
	repos := t.TempDir()
	r := begin(t, &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + repos, "GIT_HTTP_EXPORT_ALL=1"}}, "")
	git := func(args ...string) {
		t.Helper()
		cmd := proctest.Command(t, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t.test", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Env = r.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	work := filepath.Join(r.home, "work")
	git("init", "-q", work)
	if err := os.WriteFile(filepath.Join(work, "file"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("-C", work, "add", ".")
	git("-C", work, "commit", "-qm", "one")
	git("clone", "-q", "--bare", work, filepath.Join(repos, "forge", "repo.git"))
	r.intercepted("git", "clone", "-q", r.provider.URL+"/forge/repo.git", filepath.Join(r.home, "clone"))
	if text, err := os.ReadFile(filepath.Join(r.home, "clone", "file")); err != nil || string(text) != "content\n" {
		t.Errorf("the clone has %q, %v", text, err)
	}
	requests, _, _ := r.provider.got()
	if n := r.sent("forge"); n != len(requests) || n < 2 {
		t.Errorf("the gate sent %d, the provider got %q", n, requests)
	}
}

// python is a program for Python 3. It prints what its statements print.
func (r *rig) python(program string) string {
	r.Helper()
	need(r.T, "python3")
	file := filepath.Join(r.home, "program.py")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		r.Fatal(err)
	}
	return r.intercepted("python3", file)
}

const viaURLLib = `
import os, urllib.request
for i in range(3):
    q = urllib.request.Request("https://api.openai.com/v1/things", data=b'{"model": "m"}', headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    print(urllib.request.urlopen(q).read().decode(), end="")
`

func TestPython(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	if got := r.python(viaURLLib); got != strings.Repeat("provider POST /v1/things\n", 3) {
		t.Errorf("it prints %q", got)
	}
	if _, _, withKey := r.provider.got(); r.sent("openai") != 3 || withKey != 3 {
		t.Errorf("the gate sent %d, the provider got %d with a key", r.sent("openai"), withKey)
	}
}

// certificateOf is a program that prints the SHA-256 of the certificate that a host shows through the proxy.
const certificateOf = `
import base64, hashlib, http.client, os, ssl, sys, urllib.parse
p = urllib.parse.urlparse(os.environ["HTTPS_PROXY"])
c = http.client.HTTPSConnection(p.hostname, p.port, context=ssl.create_default_context())
c.set_tunnel(HOST, PORT, {"Proxy-Authorization": "Basic " + base64.b64encode((p.username + ":" + p.password).encode()).decode()})
c.connect()
print(hashlib.sha256(c.sock.getpeercert(True)).hexdigest())
`

// A host that is not gated shows its own certificate, a gated one that of the run.
func TestCertificates(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "")
	program := func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		return strings.NewReplacer("HOST", fmt.Sprintf("%q", host), "PORT", port).Replace(certificateOf)
	}
	world, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := world.Leaf("localhost")
	if err != nil {
		t.Fatal(err)
	}
	own := sha256.Sum256(leaf.Certificate[0])
	if got := strings.TrimSpace(r.python(program(r.otherAt()))); got != hex.EncodeToString(own[:]) {
		t.Errorf("another host shows %s, not its own", got)
	}
	gated, err := world.Leaf("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	own = sha256.Sum256(gated.Certificate[0])
	if got := strings.TrimSpace(r.python(program(r.provider.Listener.Addr().String()))); len(got) != 64 || got == hex.EncodeToString(own[:]) {
		t.Errorf("a gated host shows %s", got)
	}
}

// The command alone can use the proxy, and what it trusts is gone with it.
func TestOnlyTheCommandUsesTheProxy(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	out := r.intercepted("sh", "-c", `
		stat -c %a "$SSL_CERT_FILE" 2>/dev/null || stat -f %Lp "$SSL_CERT_FILE"
		env -u HTTPS_PROXY -u https_proxy curl -s -o /dev/null -w '%{http_connect}\n' -x "http://$SLUICE_FORWARD" https://api.openai.com/
		env -u HTTPS_PROXY -u https_proxy curl -s -o /dev/null -w '%{http_connect}\n' -x "http://sluice:wrong@$SLUICE_FORWARD" https://api.openai.com/
		env | grep -c BASE_URL
		echo "$SSL_CERT_FILE $NO_PROXY"; true`)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 || lines[0] != "600" || lines[1] != "407" || lines[2] != "407" || lines[3] != "0" {
		t.Fatalf("the command prints %q", lines)
	}
	bundle, noProxy, _ := strings.Cut(lines[4], " ")
	if _, err := os.Stat(bundle); err == nil {
		t.Errorf("%s is left", bundle)
	}
	if noProxy != "localhost,::1" { // 127.0.0.1 is gated here
		t.Errorf("NO_PROXY is %q", noProxy)
	}
}

// A provider whose certificate does not hold is not reached: the gate must not hide it.
func TestABadCertificateOfTheProvider(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	r.env = append(r.env, "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/dev/null") // its authority is not trusted
	got := r.intercepted("curl", "-sS", "-w", "%{http_code}", "https://api.openai.com/v1/models")
	if !strings.Contains(got, "the certificate was issued by") || !strings.Contains(got, "stands for the world") || !strings.HasSuffix(got, "502") {
		t.Errorf("the command got %q", got)
	}
	if requests, _, _ := r.provider.got(); len(requests) != 0 {
		t.Errorf("the provider got %q", requests)
	}
}

// Several commands share one limit, on every kind of store, and the provider refuses none of their requests.
func TestCommandsShareTheLimit(t *testing.T) {
	need(t, "curl")
	for name, store := range map[string]func(r *rig) string{
		"file":   func(r *rig) string { return "file:" + filepath.Join(r.home, "state") },
		"redis":  func(r *rig) string { return redisrun.New(r.T).URL() + "?timeout=20s" }, // a busy machine may take more than 2 s
		"daemon": func(r *rig) string { return r.serve(nil, "--listen", "127.0.0.1:0").Listen[0] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "")
			r.env = append(r.env, "SLUICE_STORE="+store(r))
			const runs, each = 3, 4
			var all sync.WaitGroup
			for range runs {
				all.Go(func() {
					if got := r.intercepted("curl", "-sS", "-d", call, "https://api.openai.com/v1/limited/["+"1-"+strconv.Itoa(each)+"]"); strings.Count(got, "provider POST") != each {
						t.Errorf("a command got %q", got)
					}
				})
			}
			all.Wait()
			if requests, refused, _ := r.provider.got(); len(requests) != runs*each || refused != 0 {
				t.Errorf("%d requests arrived, %d were refused", len(requests), refused)
			}
		})
	}
}

// A run within a run passes both gates and is charged once, for its own agent.
func TestARunWithinARun(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	r := begin(t, nil, "")
	for _, inner := range [][]string{{"run", "--intercept"}, {"run"}} {
		before := r.sent("openai")
		at := "https://api.openai.com/v1/embeddings"
		argv := append([]string{sluiceBinary}, inner...)
		argv = append(argv, "--agent", "inner", "--quiet", "--", "curl", "-sS", "-d", call, at)
		if len(inner) == 1 {
			argv = append(argv[:len(argv)-5], "sh", "-c", `curl -sS -d '`+call+`' "$OPENAI_BASE_URL/embeddings"`)
		}
		if got := r.intercepted(argv...); got != "provider POST /v1/embeddings\n" {
			t.Errorf("%q: %q", inner, got)
		}
		if n := r.sent("openai") - before; n != 1 {
			t.Errorf("%q: it was charged %d times", inner, n)
		}
	}
	if out, _ := r.sluice(0, "report", "--json"); !strings.Contains(out, `"inner"`) || strings.Contains(out, `"tester"`) {
		t.Errorf("the report has %s", out)
	}
}
