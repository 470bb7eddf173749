//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/proxy/forward"
)

// unknownIssuer is what a person is told of a certificate of the company.
const unknownIssuer = `the certificate was issued by "Example Corp Root CA", which this machine does not trust`

// company has an authority of its own, and servers with its certificates.
type company struct {
	t         *testing.T
	authority *forward.Authority
	ca        string // the authority's certificate
	dir       string
	provider  string // a URL
}

func newCompany(t *testing.T) *company {
	t.Helper()
	authority, err := forward.NewAuthority("Example Corp Root CA", []string{"127.0.0.1", "provider.test"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := &company{t: t, authority: authority, dir: t.TempDir()}
	c.ca = c.write("ca.pem", string(authority.Certificate()))
	c.provider = c.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "from the provider over "+r.Proto)
			return
		}
		if socket, err := websocket.Accept(w, r, nil); err == nil {
			_, _, _ = socket.Read(r.Context())
			_ = socket.CloseNow()
		}
	}), true)
	return c
}

func (c *company) write(name, text string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// serve starts a server that speaks TLS.
func (c *company) serve(h http.Handler, http2 bool) (url string) {
	c.t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS, s.EnableHTTP2 = &tls.Config{}, http2
	for _, host := range []string{"127.0.0.1", "provider.test"} { // the first is for clients that name no host
		leaf, err := c.authority.Leaf(host)
		if err != nil {
			c.t.Fatal(err)
		}
		s.TLS.Certificates = append(s.TLS.Certificates, *leaf)
	}
	s.StartTLS()
	c.t.Cleanup(s.Close)
	return s.URL
}

// proxy starts a proxy that speaks TLS, and connects to the provider whatever it is asked for.
func (c *company) proxy() (url string) {
	return c.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", strings.TrimPrefix(c.provider, "https://")) //nolint:noctx // it is closed below
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		here, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, rw); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}), false)
}

// noTrust unsets the variables that name certificates, and those that name proxies.
var noTrust = []string{
	"NODE_EXTRA_CA_CERTS=", "REQUESTS_CA_BUNDLE=", "CURL_CA_BUNDLE=", "SSL_CERT_FILE=", "SSL_CERT_DIR=", "AWS_CA_BUNDLE=", "DENO_CERT=", "GIT_SSL_CAINFO=", "CARGO_HTTP_CAINFO=",
	"HTTPS_PROXY=", "HTTP_PROXY=", "ALL_PROXY=", "https_proxy=", "http_proxy=", "all_proxy=", "NO_PROXY=", "no_proxy=", "SLUICE_FORWARD=",
}

// sluice runs the command to its end.
func (c *company) sluice(code int, env []string, args ...string) (stdout, stderr string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), proctest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sluice", args...)
	cmd.Env = append(append(append(os.Environ(), "XDG_STATE_HOME="+c.dir, "SLUICE_STORE=mem:"), noTrust...), env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) || cmd.ProcessState.ExitCode() != code {
		c.t.Errorf("sluice %q: %v, want exit code %d\n%s%s", args, err, code, out.Bytes(), said.Bytes())
	}
	return out.String(), said.String()
}

// run trusts at the provider what its command would trust there, whichever variable says so.
func TestRunTrustsWhatItsCommandTrusts(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	one, two := filepath.Join(c.dir, "one"), filepath.Dir(c.write("two/6b99d060.0", string(c.authority.Certificate())))
	if err := os.Mkdir(one, 0o700); err != nil {
		t.Fatal(err)
	}
	get := func(env ...string) (stdout, stderr string) {
		t.Helper()
		env = append([]string{"OPENAI_BASE_URL=" + c.provider + "/v1", "ANTHROPIC_BASE_URL=" + c.provider}, env...)
		return c.sluice(0, env, "run", "--quiet", "--", child(t), "get", "${OPENAI_BASE_URL}/models", "${ANTHROPIC_BASE_URL}/v1/models")
	}
	const both = "200 from the provider over HTTP/2.0\n200 from the provider over HTTP/2.0\n"
	for _, set := range []string{
		"NODE_EXTRA_CA_CERTS=" + c.ca, "REQUESTS_CA_BUNDLE=" + c.ca, "CURL_CA_BUNDLE=" + c.ca, "SSL_CERT_FILE=" + c.ca, "AWS_CA_BUNDLE=" + c.ca, "DENO_CERT=" + c.ca,
		"SSL_CERT_DIR=" + one + ":" + two, "REQUESTS_CA_BUNDLE=" + two,
	} {
		if out, said := get(set); out != both || said != "" {
			t.Errorf("%s: %s%s", set, out, said)
		}
	}
	if out, said := get("CURL_CA_BUNDLE="+c.dir+"/none.pem", "NODE_EXTRA_CA_CERTS="+c.ca); out != both || strings.Count(said, "warning: certificates are left out: CURL_CA_BUNDLE: ") != 1 {
		t.Errorf("a file that is not there: %s%s", out, said)
	}
	out, _ := get()
	for _, words := range []string{"502 ", `"error":{"message":"sluice: `, "TLS to " + strings.TrimPrefix(c.provider, "https://") + ": " + strings.ReplaceAll(unknownIssuer, `"`, `\"`), "upstream_ca", "NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR"} {
		if !strings.Contains(out, words) {
			t.Errorf("%q is missing in %s", words, out)
		}
	}
	if _, said := c.sluice(0, []string{"CURL_CA_BUNDLE=" + c.dir + "/none.pem"}, "run", "--quiet", "--", "true"); said != "" {
		t.Errorf("certificates were read before they were needed: %s", said)
	}
}

// With --intercept the same is trusted, and also by a gate inside.
func TestInterceptTrustsWhatItsCommandTrusts(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	file := c.write("sluice.yaml", "resources: {openai: {provider: openai, upstream: \""+c.provider+"\"}}\n")
	configured := c.write("with.yaml", "upstream_ca: ca.pem\nresources: {openai: {provider: openai, upstream: \""+c.provider+"\"}}\n")
	get := []string{child(t), "get", "https://api.openai.com/v1/models"}
	through := func(file string) []string { return []string{"run", "--intercept", "--quiet", "--config", file, "--"} }
	nested := append([]string{"sluice"}, append(through(file), get...)...)
	for _, set := range []string{"NODE_EXTRA_CA_CERTS=" + c.ca, "SSL_CERT_DIR=" + filepath.Dir(c.ca)} {
		for _, argv := range [][]string{get, nested, {"sluice", "ping", "openai", "--config", file, "--json"}} {
			out, said := c.sluice(0, []string{set, "OPENAI_API_KEY=key"}, append(through(file), argv...)...)
			if !strings.Contains(out, "200") || said != "" {
				t.Errorf("%s, %s: %s%s", set, argv[1], out, said)
			}
		}
	}
	if out, said := c.sluice(0, nil, append(through(file), get...)...); !strings.HasPrefix(out, "502 ") || !strings.Contains(out, "Example Corp Root CA") || said != "" {
		t.Errorf("%s%s", out, said)
	}
	if _, said := c.sluice(0, []string{"DENO_CERT=" + c.dir + "/none.pem"}, append(through(file), get...)...); strings.Count(said, "certificates are left out") != 1 {
		t.Errorf("a file that is not there: %s", said)
	}
	t.Run("a path of the configuration starts at the working directory", func(t *testing.T) {
		if _, said := c.sluice(exitConfig, nil, append(through(configured), get...)...); !strings.Contains(said, "with.yaml:1:14: upstream_ca: \"ca.pem\" cannot be read") {
			t.Errorf("%s", said)
		}
		inside := append([]string{"-c", `cd "$0" && exec "$@"`, c.dir, "sluice"}, append(through(configured), get...)...)
		out, said := c.sluice(0, nil, append([]string{"run", "--no-gate", "--quiet", "--", "sh"}, inside...)...)
		if !strings.HasPrefix(out, "200 ") {
			t.Errorf("%s%s", out, said)
		}
	})
}

// A proxy that speaks TLS is trusted by the same certificates, and blamed if it is not.
func TestProxyWithACertificateOfTheCompany(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	file := c.write("sluice.yaml", "resources: {openai: {provider: openai, upstream: \"https://provider.test\"}}\n")
	env := []string{"HTTPS_PROXY=" + c.proxy(), "OPENAI_BASE_URL=https://provider.test/v1", "OPENAI_API_KEY=key"}
	calls := map[string][]string{
		"run":             {"run", "--quiet", "--config", file, "--", child(t), "get", "${OPENAI_BASE_URL}/models"},
		"run --intercept": {"run", "--intercept", "--quiet", "--config", file, "--", child(t), "get", "https://provider.test/v1/models"},
		"ping":            {"ping", "openai", "--config", file},
	}
	for name, args := range calls {
		if out, said := c.sluice(0, append(env, "REQUESTS_CA_BUNDLE="+c.ca), args...); !strings.Contains(out, "200") {
			t.Errorf("%s: %s%s", name, out, said)
		}
		code := 0
		if name == "ping" {
			code = exitUnavailable
		}
		out, said := c.sluice(code, env, args...)
		if !strings.Contains(strings.ReplaceAll(out, `\"`, `"`), "TLS to the proxy on the way to provider.test: "+unknownIssuer) {
			t.Errorf("%s: %s%s", name, out, said)
		}
	}
}

// serve trusts upstream_ca, also for realtime connections. A reload takes other certificates, and keeps the old ones if the
// new ones are wrong.
func TestServeTrustsUpstreamCA(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	const without = "resources: {openai: {provider: openai, upstream: \"%s\"}}\n"
	use := func(ca string) string {
		text := fmt.Sprintf(without, c.provider)
		if ca != "" {
			text = "upstream_ca: " + ca + "\n" + text
		}
		return c.write("sluice.yaml", text)
	}
	file := use(c.ca)
	p := start(t, append(noTrust, "SLUICE_STORE=file:"+filepath.Join(c.dir, "state")), "serve", "--config", file, "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	if code := sendTo(t, at+"/openai/v1/chat/completions"); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	socket, resp, err := websocket.Dial(t.Context(), at+"/openai/v1/realtime?model=gpt-realtime", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer key"}}})
	if err != nil {
		t.Fatalf("a realtime connection: %v, %v", err, resp)
	}
	_ = socket.CloseNow()
	for _, wrong := range []string{c.dir + "/none.pem", c.write("text.pem", "hello"), c.write("broken.pem", "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n")} {
		use(wrong)
		if code, text := post(t, at+"/-/reload", ""); code != http.StatusBadRequest || !strings.Contains(text, `"line":1`) || !strings.Contains(text, `"field":"upstream_ca"`) {
			t.Errorf("%s: %d %s", wrong, code, text)
		}
		if code := sendTo(t, at+"/openai/v1/chat/completions"); code != http.StatusOK {
			t.Errorf("%s: status %d after a reload that failed", wrong, code)
		}
	}
	other, err := forward.NewAuthority("Other Corp", []string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	use(c.write("ca.pem", string(other.Certificate()))) // another certificate in the same file
	if code, text := post(t, at+"/-/reload", ""); code != http.StatusOK || !strings.Contains(text, `"changed":[]`) {
		t.Fatalf("%d %s", code, text)
	}
	p.warns("other certificates are trusted")
	if code := sendTo(t, at+"/openai/v1/chat/completions"); code != http.StatusBadGateway {
		t.Errorf("status %d with the certificate of another company", code)
	}
	use("")
	if code, text := post(t, at+"/-/reload", ""); code != http.StatusOK || !strings.Contains(text, `"changed":["upstream_ca"]`) {
		t.Fatalf("%d %s", code, text)
	}
	if code := sendTo(t, at+"/openai/v1/chat/completions"); code != http.StatusBadGateway {
		t.Errorf("status %d without upstream_ca", code)
	}
	p.warns(unquote(unknownIssuer))
	out, _ := c.sluice(0, []string{"SLUICE_STORE=file:" + filepath.Join(c.dir, "state")}, "status", "--config", file)
	if !strings.Contains(out, "openai  failing\n") || !strings.Contains(out, "TLS to "+strings.TrimPrefix(c.provider, "https://")+": "+unknownIssuer) {
		t.Errorf("status prints %s", out)
	}
	if code, text := post(t, at+"/openai/v1/models", "{}"); code != http.StatusBadGateway || !strings.Contains(text, "Example Corp Root CA") {
		t.Errorf("%d %s", code, text)
	}
}

// unquote is text as the log prints it inside quotes.
func unquote(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }

// Commands that send to providers refuse an upstream_ca that cannot be read, and say where it is. Others do not read it.
func TestUpstreamCAIsChecked(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	file := c.write("sluice.yaml", "resources: {mine: {provider: openai, upstream: \""+c.provider+"\"}}\nupstream_ca: "+c.dir+"/none.pem\n")
	for _, args := range [][]string{{"config", "check", file}, {"run", "--", "true"}, {"run", "--intercept", "--", "true"}, {"serve", "--listen", "127.0.0.1:0"}, {"ping", "mine"}} {
		_, said := c.sluice(exitConfig, []string{"SLUICE_CONFIG=" + file}, args...)
		if !strings.HasPrefix(said, "error: "+file+":2:14: upstream_ca: ") || !strings.Contains(said, "\n>  2 | upstream_ca: ") || !strings.Contains(said, "\nhint: ") {
			t.Errorf("%q: %s", args, said)
		}
	}
	for _, args := range [][]string{{"status"}, {"config", "show"}, {"run", "--no-gate", "--", "true"}} {
		c.sluice(0, []string{"SLUICE_CONFIG=" + file}, args...)
	}
}

// ping says whose certificate is not trusted, and what to do.
func TestPingNamesTheIssuer(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	file := c.write("sluice.yaml", "resources: {mine: {provider: openai, upstream: \""+c.provider+"\"}}\n")
	for _, key := range []string{"OPENAI_API_KEY=key", "OPENAI_API_KEY="} {
		_, said := c.sluice(exitUnavailable, []string{key}, "ping", "mine", "--config", file)
		if !strings.HasPrefix(said, "error: mine: TLS to "+strings.TrimPrefix(c.provider, "https://")+": "+unknownIssuer+"\nhint: ") || !strings.Contains(said, "upstream_ca") {
			t.Errorf("%s: %s", key, said)
		}
		if out, said := c.sluice(0, []string{key, "AWS_CA_BUNDLE=" + c.ca}, "ping", "mine", "--config", file); !strings.Contains(out, "tls      ok ") || said != "" {
			t.Errorf("%s: %s%s", key, out, said)
		}
	}
}
