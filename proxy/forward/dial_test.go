package forward_test

import (
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
)

// between is a proxy that wants a password, and connects to other whatever it was asked for. asked gets what that was.
func between(t *testing.T, other *httptest.Server, asked chan<- string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:pass")) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		asked <- q.Method + " " + q.Host
		if q.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "from the proxy")
			return
		}
		there, err := net.Dial("tcp", strings.TrimPrefix(other.URL, "https://"))
		if err != nil {
			t.Error(err)
			return
		}
		here, rw, _ := http.NewResponseController(w).Hijack()
		_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, rw); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	})
}

// Outgoing connections use the proxy of the environment, with its credentials.
func TestThroughAProxyOfTheEnvironment(t *testing.T) {
	other := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer other.Close()
	asked := make(chan string, 10)
	between := httptest.NewServer(between(t, other, asked))
	defer between.Close()
	environment := func(user string) func(string) string {
		return func(name string) string {
			return map[string]string{"all_proxy": strings.Replace(between.URL, "//", "//"+user+"@", 1), "NO_PROXY": "direct.test"}[name]
		}
	}
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) { o.Proxy = forward.FromEnvironment(environment("me:pass")) })
	c := r.client(false, func(tr *http.Transport) {
		tr.TLSClientConfig.RootCAs = trusting(other).TLSClientConfig.RootCAs
		tr.TLSClientConfig.ServerName = "example.com" // that of httptest's certificate
	})
	if _, text := r.get(c, "https://elsewhere.test/x"); text != "hello /x" || <-asked != "CONNECT elsewhere.test:443" {
		t.Errorf("%q", text)
	}
	if _, text := r.get(c, "http://elsewhere.test/x"); text != "from the proxy" || <-asked != "GET elsewhere.test" {
		t.Errorf("%q", text)
	}
	refused := begin(t, hello, func(o *forward.Options, _ *proxy.Options) { o.Proxy = forward.FromEnvironment(environment("me:wrong")) })
	if _, err := refused.client(false).Get("https://elsewhere.test/x"); err == nil || !strings.Contains(err.Error(), "Bad Gateway") {
		t.Errorf("with a wrong password: %v", err)
	}
	self := forward.FromEnvironment(environment("me:pass"), strings.TrimPrefix(between.URL, "http://"))
	if p, err := self(&url.URL{Scheme: "https", Host: "elsewhere.test"}); p != nil || err != nil {
		t.Errorf("its own proxy is %v, %v", p, err)
	}
}

// A proxy of the environment that speaks TLS needs a certificate that the gate trusts. If it has none, the client is told
// who issued it.
func TestThroughAProxyThatSpeaksTLS(t *testing.T) {
	other := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer other.Close()
	asked := make(chan string, 10)
	between := httptest.NewUnstartedServer(between(t, other, asked))
	between.Config.ErrorLog = log.New(io.Discard, "", 0)
	between.StartTLS()
	defer between.Close()
	var trusted atomic.Pointer[x509.CertPool]
	r := begin(t, hello, func(o *forward.Options, _ *proxy.Options) {
		o.Proxy = forward.FromEnvironment(func(name string) string {
			return map[string]string{"ALL_PROXY": strings.Replace(between.URL, "//", "//me:pass@", 1)}[name]
		})
		o.Roots = trusted.Load
	})
	c := r.client(false, func(tr *http.Transport) {
		tr.TLSClientConfig.RootCAs = trusting(other).TLSClientConfig.RootCAs
		tr.TLSClientConfig.ServerName = "example.com" // that of httptest's certificate
	})
	const words = `the certificate of "Acme Co" is self-signed, and this machine does not trust it`
	resp, text := r.get(c, "http://elsewhere.test/x")
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, words) || !strings.Contains(text, "hint: ") || !strings.Contains(text, "NODE_EXTRA_CA_CERTS") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	conn := r.raw("CONNECT elsewhere.test:443 HTTP/1.1\r\nHost: elsewhere.test:443\r\n\r\n")
	refused, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(refused), " 502 ") || !strings.Contains(string(refused), "TLS to "+between.Listener.Addr().String()+": "+words) || strings.Contains(string(refused), "pass@") {
		t.Errorf("%s, %v", refused, err)
	}
	trusted.Store(trusting(between).TLSClientConfig.RootCAs) // as a reload does
	if _, text := r.get(c, "https://elsewhere.test/x"); text != "hello /x" || <-asked != "CONNECT elsewhere.test:443" {
		t.Errorf("%q", text)
	}
	if _, text := r.get(c, "http://elsewhere.test/x"); text != "from the proxy" || <-asked != "GET elsewhere.test" {
		t.Errorf("%q", text)
	}
}
