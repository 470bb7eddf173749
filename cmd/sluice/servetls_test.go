//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// listening starts a daemon and returns the addresses that it prints.
func listening(t *testing.T, args ...string) (p *process, urls []string) {
	t.Helper()
	p = start(t, nil, append([]string{"serve", "--json"}, args...)...)
	line, err := p.stdout.ReadString('\n')
	var said struct{ Listen []string }
	if err != nil || json.Unmarshal([]byte(line), &said) != nil {
		rest, _ := io.ReadAll(p.stderr)
		t.Fatalf("it said %q (%v); on stderr %q", line, err, rest)
	}
	return p, said.Listen
}

// With a certificate the daemon speaks TLS on its address, and plain HTTP on its socket.
func TestServeWithTLS(t *testing.T) {
	t.Parallel()
	c, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("tls: {cert: "+c.Cert+", key: "+c.Key+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for name, args := range map[string][]string{"by flags": {"--tls-cert", c.Cert, "--tls-key", c.Key}, "by the file": {"--config", file}} {
		p, urls := listening(t, append(args, "--listen", "127.0.0.1:0", "--listen", "unix:"+socket)...)
		if len(urls) != 2 || !strings.HasPrefix(urls[0], "https://127.0.0.1:") || urls[1] != "unix:"+socket {
			t.Errorf("%s: %v", name, urls)
		}
		for url, transport := range map[string]*http.Transport{
			urls[0]: {TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true},
			"http://localhost": {DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			}},
		} {
			resp, err := (&http.Client{Transport: transport, Timeout: proctest.Patience}).Get(url + "/healthz")
			if err != nil {
				t.Errorf("%s: %s: %v", name, url, err)
				continue
			}
			if _ = resp.Body.Close(); resp.StatusCode != 200 || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("%s: %s: %d %v", name, url, resp.StatusCode, resp.Header)
			}
		}
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(p.stderr); err != nil || len(said) > 0 {
			t.Errorf("%s: on stderr %q (%v)", name, said, err)
		}
	}
	// Empty flags turn it off, whatever the file says.
	if _, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0", "--tls-cert", "", "--tls-key", ""); !strings.HasPrefix(urls[0], "http://") {
		t.Errorf("%v", urls)
	}
}

// The daemon warns about tokens that travel unencrypted.
func TestServeInTheClear(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("tokens: [{name: t, hash: "+strings.Repeat("0", 64)+"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, warns := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false} {
		p, _ := listening(t, "--config", file, "--listen", address)
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(p.stderr)
		if got := strings.Contains(string(said), " level=WARN ") && strings.Contains(string(said), "not encrypted"); got != warns || err != nil {
			t.Errorf("%s: %q (%v)", address, said, err)
		}
	}
}
