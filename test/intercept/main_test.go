//go:build linux

package intercept_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/proxy/forward"
)

// sluiceBinary is what is run.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

var watched = sync.OnceValue(func() error { return built.Watch() })

// canary is the key that every program sends. It must be in no file.
const canary = "canary-key-of-nobody"

// perSecond is what the provider allows in any second.
const perSecond = 5

// rig is a provider, another host, and a configuration that gates the provider.
type rig struct {
	*testing.T
	home     string
	tmp      string // of the programs, for temporary files
	provider *provider
	other    *httptest.Server
	env      []string
}

// worldly are the hosts that the servers may stand for.
var worldly = []string{"127.0.0.1", "localhost", "api.openai.com", "api.anthropic.com"} // the first is for clients that name no host

// authority signs the certificates of the servers. It stands for those that everybody trusts.
var authority = sync.OnceValues(func() (*forward.Authority, error) {
	return forward.NewAuthority("stands for the world", worldly, time.Hour)
})

// begin starts the servers. serve answers for the provider; nil echoes.
func begin(t *testing.T, serve http.Handler, config string) *rig {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, home: t.TempDir(), tmp: t.TempDir()}
	t.Cleanup(r.findKey)
	if serve == nil {
		serve = http.HandlerFunc(echo)
	}
	r.provider = &provider{serve: serve}
	r.provider.Server = r.server(r.provider)
	r.other = r.server(named("other"))
	world, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	trusted := filepath.Join(r.home, "world.pem")
	if err := os.WriteFile(trusted, world.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources:\n"+
		"  openai: {provider: openai, upstream: '%[1]s', guard: strict, limits: [{name: second, size: %[2]d/s}]}\n"+
		"  anthropic: {provider: anthropic, upstream: '%[1]s'}\n"+
		"  github: {provider: github, upstream: '%[1]s'}\n"+
		"  forge: {upstream: '%[1]s/forge', limits: [{name: minute, size: 1000/min}]}\n%[3]s", r.provider.URL, perSecond, config)
	file := r.configure(text)
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "XDG_STATE_HOME=" + r.home, "XDG_CONFIG_HOME=" + r.home, "TMPDIR=" + r.tmp, "SLUICE_CONFIG=" + file, "SSL_CERT_FILE=" + trusted,
		"OPENAI_API_KEY=" + canary, "ANTHROPIC_API_KEY=" + canary, "GH_TOKEN=" + canary, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"SLUICE_STORE=file:" + filepath.Join(r.home, "state"),
	}
	return r
}

// configure writes the configuration.
func (r *rig) configure(text string) (file string) {
	r.Helper()
	file = filepath.Join(r.home, "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	return file
}

// server starts a TLS server with a certificate that the world trusts.
func (r *rig) server(h http.Handler) *httptest.Server {
	r.Helper()
	world, err := authority()
	if err != nil {
		r.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	var leaves []tls.Certificate
	for _, host := range worldly {
		leaf, err := world.Leaf(host)
		if err != nil {
			r.Fatal(err)
		}
		leaves = append(leaves, *leaf)
	}
	s.TLS = &tls.Config{Certificates: leaves}
	s.StartTLS()
	r.Cleanup(s.Close)
	return s
}

// echo tells what arrived.
func echo(w http.ResponseWriter, q *http.Request) {
	_, _ = io.Copy(io.Discard, q.Body)
	fmt.Fprintf(w, "provider %s %s\n", q.Method, q.URL.RequestURI())
}

// named tells who was asked. It reads the body first: a server of HTTP/2 that answers before it has the whole body resets the
// stream, and curl takes that for an error.
func named(who string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		fmt.Fprintf(w, "%s %s\n", who, q.URL.Path)
	}
}

// provider allows perSecond requests in any second, and refuses others.
type provider struct {
	*httptest.Server
	serve http.Handler

	mu       sync.Mutex
	arrived  []time.Time // what was let in
	refused  int
	withKey  int
	requests []string
}

func (p *provider) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	p.mu.Lock()
	now := time.Now()
	p.requests = append(p.requests, q.Method+" "+q.URL.RequestURI())
	for _, v := range []string{q.Header.Get("Authorization"), q.Header.Get("X-Api-Key")} {
		if strings.Contains(v, canary) {
			p.withKey++
		}
	}
	limited := strings.HasPrefix(q.URL.Path, "/v1/limited")
	if n := len(p.arrived); limited && n >= perSecond && now.Sub(p.arrived[n-perSecond]) < time.Second {
		p.refused++
		p.mu.Unlock()
		_, _ = io.Copy(io.Discard, q.Body)
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if limited {
		p.arrived = append(p.arrived, now)
	}
	p.mu.Unlock()
	p.serve.ServeHTTP(w, q)
}

// got returns what arrived, and how many requests were refused or had the key.
func (p *provider) got() (requests []string, refused, withKey int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...), p.refused, p.withKey
}

// need fails a test whose program is missing: make test installs it.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%s is missing; scripts/need-intercept-tools %s installs it", program, program)
	}
}

// sluice runs the command to its end, and wants an exit code.
func (r *rig) sluice(exit int, args ...string) (stdout, stderr string) {
	r.Helper()
	cmd := proctest.Command(r.T, sluiceBinary, args...)
	cmd.Env = r.env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var ended *exec.ExitError
	if code := cmd.ProcessState.ExitCode(); code != exit || err != nil && !errors.As(err, &ended) {
		r.Fatalf("sluice %q exits with %d, want %d: %v\n%s%s", args, code, exit, err, out.Bytes(), said.Bytes())
	}
	return out.String(), said.String()
}

// intercepted runs a program under sluice run --intercept.
func (r *rig) intercepted(argv ...string) (stdout string) {
	r.Helper()
	stdout, _ = r.sluice(0, append([]string{"run", "--intercept", "--agent", "tester", "--quiet", "--"}, argv...)...)
	return stdout
}

// findKey looks for the key in every file that is left, and for files that should be gone.
func (r *rig) findKey() {
	for _, dir := range []string{r.home, r.tmp} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			if strings.HasPrefix(d.Name(), "sluice-ca-") {
				r.Errorf("%s is left", path)
			}
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(canary)) {
				r.Errorf("the key is in %s", path)
			}
			if bytes.Contains(text, []byte("PRIVATE KEY")) && d.Name() != "ca.pem" {
				r.Errorf("a private key is in %s", path)
			}
			return err
		})
		if err != nil {
			r.Error(err)
		}
	}
}

// otherAt is the other host by name, which is not gated.
func (r *rig) otherAt() string {
	_, port, err := net.SplitHostPort(r.other.Listener.Addr().String())
	if err != nil {
		r.Fatal(err)
	}
	return "localhost:" + port
}
