package daemon_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/redisrun"
)

func certs(t *testing.T) redisrun.Certs {
	t.Helper()
	c, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secure serves a daemon with TLS, and returns its address and the TLS config of its clients.
func (r *rig) secure(c redisrun.Certs) (string, *tls.Config) {
	r.Helper()
	cert, err := daemon.LoadCertificate(c.Cert, c.Key, nil)
	if err != nil {
		r.Fatal(err)
	}
	plain, err := daemon.Listen(r.Context(), "127.0.0.1:0", false)
	if err != nil {
		r.Fatal(err)
	}
	l := cert.Secure(plain)
	ctx, stop := context.WithCancel(r.Context())
	served := make(chan error, 1)
	go func() { served <- r.daemon.Serve(ctx, ctx, l) }()
	r.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			r.Error(err)
		}
	})
	url := daemon.URL(l)
	if !strings.HasPrefix(url, "https://127.0.0.1:") {
		r.Errorf("it says it is at %s", url)
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		r.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return url, &tls.Config{RootCAs: pool}
}

// client returns a client for one version of HTTP.
func (r *rig) client(config *tls.Config, http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: config.Clone(), Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	r.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (r *rig) get(c *http.Client, url string, header ...string) (*http.Response, string) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, url, nil)
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp, string(body)
}

func TestTLS(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	url, config := r.secure(certs(t))
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		c := r.client(config, http2)
		resp, body := r.get(c, url+"/v1/status")
		if resp.StatusCode != 200 || resp.Proto != version || resp.TLS == nil || resp.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%s: %d %s %s", version, resp.StatusCode, resp.Proto, body)
		}
		// A page of this site is one that came by TLS: a plain one of the same name may be anybody's.
		for origin, status := range map[string]int{url: 200, "http" + strings.TrimPrefix(url, "https"): 403, "https://evil.example": 403, "null": 403} {
			if resp, body := r.get(c, url+"/v1/status", "Origin", origin); resp.StatusCode != status {
				t.Errorf("%s, a page of %s: %d %s", version, origin, resp.StatusCode, body)
			}
		}
	}
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if c, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), old); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if resp, body := r.get(r.client(config, false), "http"+strings.TrimPrefix(url, "https")+"/v1/status"); resp.StatusCode != 400 {
		t.Errorf("without TLS: %d %s", resp.StatusCode, body)
	}
}

// Without TLS a page of this site is plain, or the browser vouches for it because TLS ends on the way.
func TestOriginWithoutTLS(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	r.want(200, "GET", "/v1/status", "", "Origin", "http://localhost")
	r.want(403, "GET", "/v1/status", "", "Origin", "https://localhost")
	r.want(200, "GET", "/v1/status", "", "Origin", "https://localhost", "Sec-Fetch-Site", "same-origin")
	r.want(403, "GET", "/v1/status", "", "Origin", "https://localhost", "Sec-Fetch-Site", "same-site")
	r.want(403, "GET", "/v1/status", "", "Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin")
}

// Links in a provider's responses lead back over the same scheme.
func TestLinksByTLS(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "<http://"+r.Host+"/next?page=2>; rel=\"next\"")
	}))
	defer upstream.Close()
	r := begin(t, "generic", "resources: {api: {upstream: \"${PAGES}\"}}\n", map[string]string{"PAGES": upstream.URL})
	url, config := r.secure(certs(t))
	for _, http2 := range []bool{false, true} {
		resp, body := r.get(r.client(config, http2), url+"/@a/api/first")
		if want := "<" + url + "/@a/api/next?page=2>; rel=\"next\""; resp.Header.Get("Link") != want {
			t.Errorf("%s: %d %s: %s, not %s", resp.Proto, resp.StatusCode, body, resp.Header.Get("Link"), want)
		}
	}
}

// A Unix socket does not leave the machine: it stays plain.
func TestSocketsStayPlain(t *testing.T) {
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := certs(t)
	cert, err := daemon.LoadCertificate(c.Cert, c.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := daemon.Listen(t.Context(), "unix:"+filepath.Join(dir, "s"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if l := cert.Secure(socket); l != socket || daemon.URL(l) != "unix:"+filepath.Join(dir, "s") || daemon.InTheClear(l) {
		t.Errorf("%T %s", l, daemon.URL(l))
	}
}

func TestInTheClear(t *testing.T) {
	c := certs(t)
	cert, err := daemon.LoadCertificate(c.Cert, c.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true, ":0": true} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if got := daemon.InTheClear(l); got != want {
			t.Errorf("%s: %v", address, got)
		}
		if daemon.InTheClear(cert.Secure(l)) {
			t.Errorf("%s with TLS", address)
		}
		_ = l.Close()
	}
}

func TestBadCertificates(t *testing.T) {
	one, two := certs(t), certs(t)
	large, junk := filepath.Join(t.TempDir(), "large"), filepath.Join(t.TempDir(), "junk")
	for file, n := range map[string]int{large: 2 << 20, junk: 100} {
		if err := os.WriteFile(file, bytes.Repeat([]byte("x"), n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, cert, key, says string }{
		{"no certificate", filepath.Join(t.TempDir(), "missing"), one.Key, "the certificate cannot be read"},
		{"no key", one.Cert, filepath.Join(t.TempDir(), "missing"), "the key cannot be read"},
		{"a directory", t.TempDir(), one.Key, "no regular file"},
		{"another's key", one.Cert, two.Key, "does not match"},
		{"the wrong way round", one.Key, one.Cert, one.Key},
		{"no PEM", junk, one.Key, "failed to find any PEM"},
		{"too large", large, one.Key, "more than"},
		{"nothing in it", os.DevNull, one.Key, "no regular file"},
	} {
		_, err := daemon.LoadCertificate(c.cert, c.key, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "tls: ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A renewed certificate is used without a restart; a half-written or missing one is not.
func TestRenewedCertificates(t *testing.T) {
	first, second := certs(t), certs(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		cert, err := daemon.LoadCertificate(first.Cert, first.Key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		shown := func() []byte {
			c, err := cert.Config().GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				t.Fatal(err)
			}
			return c.Certificate[0]
		}
		move := func(from, to string) {
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := shown()
		move(second.Cert, first.Cert)
		if !bytes.Equal(shown(), before) {
			t.Error("it looks at every handshake")
		}
		time.Sleep(10 * time.Second)
		if !bytes.Equal(shown(), before) || !strings.Contains(log.String(), "could not be read again") {
			t.Errorf("a certificate without its key is shown: %s", &log)
		}
		time.Sleep(10 * time.Second)
		if shown(); strings.Count(log.String(), "could not be read again") != 1 {
			t.Errorf("it says so again: %s", &log)
		}
		move(second.Key, first.Key)
		time.Sleep(10 * time.Second)
		after := shown()
		if bytes.Equal(after, before) {
			t.Error("it is not taken")
		}
		if err := os.Remove(first.Cert); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if !bytes.Equal(shown(), after) || strings.Count(log.String(), "could not be read again") != 2 {
			t.Errorf("without a file: %s", &log)
		}
	})
}

func TestExpiredCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := certs(t) // for a day
		cert, err := daemon.LoadCertificate(c.Cert, c.Key, nil)
		if err != nil {
			t.Fatal(err)
		}
		if at, expired := cert.Expired(); expired {
			t.Errorf("expired at %s", at)
		}
		time.Sleep(25 * time.Hour)
		if _, expired := cert.Expired(); !expired {
			t.Error("it does not expire")
		}
	})
}
