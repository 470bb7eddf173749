//go:build unix

package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// served starts a mock and returns the address that it prints.
func served(t *testing.T, args ...string) (p *process, url string) {
	t.Helper()
	p = start(t, nil, append([]string{"mock", "--json", "--listen", "127.0.0.1:0"}, args...)...)
	line, err := p.stdout.ReadString('\n')
	var said struct{ Address, URL string }
	if err != nil || json.Unmarshal([]byte(line), &said) != nil || said.URL != "http://"+said.Address {
		rest, _ := io.ReadAll(p.stderr)
		t.Fatalf("it said %q (%v); on stderr %q", line, err, rest)
	}
	return p, said.URL
}

// fetch asks a mock with a client that keeps no connection.
func fetch(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestMockIsServed(t *testing.T) {
	t.Parallel()
	p, url := served(t, "anthropic", "--requests", "2/h", "--algorithm", "rolling")
	for i, want := range []int{200, 200, 429} {
		resp, body := fetch(t, "POST", url+"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "X-Api-Key: secret", "X-Agent-Id: w1")
		if resp.StatusCode != want || resp.Header.Get("Anthropic-Ratelimit-Requests-Limit") != "2" || resp.Header.Get("Anthropic-Ratelimit-Input-Tokens-Limit") != "" {
			t.Errorf("request %d: %d %v %s", i, resp.StatusCode, resp.Header, body)
		}
	}
	_, body := fetch(t, "GET", url+"/_mock/stats", "")
	if !strings.HasPrefix(body, `{"arrived":3,"accepted":2,"throttled":1,"worst_window":2,"by_agent":{"w1":2},`) {
		t.Errorf("%s", body)
	}
	p.signal(syscall.SIGTERM)
	p.ends(exitOK)
	if rest, err := io.ReadAll(p.stderr); err != nil || len(rest) > 0 {
		t.Errorf("on stderr %q, %v", rest, err)
	}
}

func TestMockSaysWhereItIs(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", ":0", "localhost:0"} {
		p := start(t, nil, "mock", "generic", "--listen", listen)
		line, err := p.stdout.ReadString('\n')
		m := regexp.MustCompile(`^mock generic listens on (http://(127\.0\.0\.1|\[::1\]):[1-9][0-9]*)\n$`).FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: it said %q, %v", listen, line, err)
		}
		if _, body := fetch(t, "PUT", m[1]+"/x", "123"); body != `{"method":"PUT","path":"/x","size":3}` {
			t.Errorf("%s", body)
		}
		p.signal(syscall.SIGINT)
		p.ends(exitOK)
	}
}

// A request that hangs does not keep the server from ending.
func TestMockEndsWhileARequestHangs(t *testing.T) {
	t.Parallel()
	p, url := served(t, "generic")
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Mock: hang\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	for {
		if _, body := fetch(t, "GET", url+"/_mock/stats", ""); strings.Contains(body, `"in_flight":1`) {
			break
		}
	}
	p.signal(syscall.SIGTERM)
	if rest, err := io.ReadAll(conn); len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	p.ends(exitOK)
}

func TestMockOnATakenPort(t *testing.T) {
	t.Parallel()
	_, url := served(t, "generic")
	p := start(t, nil, "mock", "generic", "--listen", strings.TrimPrefix(url, "http://"))
	p.warns("error: --listen")
	p.warns("hint: ")
	p.ends(exitUnavailable)
}

func TestMockSpeaksHTTP2(t *testing.T) {
	t.Parallel()
	_, url := served(t, "openai")
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &only}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Errorf("%s %d", resp.Proto, resp.StatusCode)
	}
}
