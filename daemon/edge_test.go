package daemon_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a Unix socket the host name selects the resource, even if the provider's paths look like the daemon's own.
func TestAProvidersPathsOnASocket(t *testing.T) {
	r := begin(t, "anthropic", routed, nil)
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: r.daemon}}
	server.Start()
	defer server.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", l.Addr().String())
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	resp, err := client.Post("http://127.0.0.1/v1/messages", "application/json", strings.NewReader(messages("claude-haiku-4-5")))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 200 || r.mock.Stats().Accepted != 1 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// The configuration decides the user of a token's agent: another user would have another budget.
func TestABoundAgentHasItsUser(t *testing.T) {
	sum := sha256.Sum256([]byte("tok"))
	r := begin(t, "anthropic", routed+`
agents: {bob: {user: me}}
tokens: [{name: bob, hash: `+hex.EncodeToString(sum[:])+`, agent: bob}]
budgets: [{name: each, per: user, size: 0.000001 usd/day}]
`, nil)
	w, text := r.post("/anthropic/v1/messages", messages("claude-opus-4-5"), "X-Sluice-Token", "tok", "X-Sluice-User", "somebody")
	if w.Code != http.StatusForbidden || strings.Contains(text, "somebody") || !strings.Contains(text, "me") {
		t.Errorf("%d %s", w.Code, text)
	}
}

// A client that has hung up half way, and can still read, must not mistake silence for a grant.
func TestNobodyIsToldThatItIsWell(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	held, _ := r.want(200, "POST", "/v1/tickets", `{"resource":"places","agent":"a"}`)["ticket"].(string)
	server := httptest.NewServer(r.daemon)
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"resource":"places","agent":"b","wait_ms":60000}`
	request := "POST /v1/tickets HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 49\r\n\r\n" + body
	if len(body) != 49 {
		t.Fatal(len(body))
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err == nil {
		t.Errorf("it was told %q", line)
	}
	r.want(204, "POST", "/v1/tickets/"+held+"/close", ``)
}
